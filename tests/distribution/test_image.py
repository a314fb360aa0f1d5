"""The image: what its Dockerfile must say, and what comes of doing by hand what it says, with no source tree around.

A network index is needed, as wherever an image is built; CI has one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from distribution.dockerfile import FILE, Image, arguments, left_in, stages
from integration.rig import REPOSITORY

WITHIN_S = 60.0
TEXT = FILE.read_text()
*MAKING, FINAL = stages(TEXT)
PINS = dict(line.split("==") for line in (REPOSITORY / "constraints.txt").read_text().split())

pytestmark = pytest.mark.timeout(300)  # half a minute where nothing else runs: packages are downloaded anew


def test_a_linter_for_dockerfiles_has_nothing_to_say() -> None:
    hadolint = Path(sysconfig.get_path("scripts")) / "hadolint"
    said = subprocess.run([hadolint, FILE], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout) == (0, "")


def test_every_stage_is_from_one_slim_base_that_a_digest_can_stand_for() -> None:
    assert {stage.base for stage in (*MAKING, FINAL)} == {"${BASE}"}
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", arguments(TEXT)["BASE"]), "a tag, and not the newest of all"


def test_it_does_not_run_as_root_and_what_it_keeps_is_not_for_others() -> None:
    assert FINAL.of("USER")[-1].rest == "10001:10001"
    assert "install -d -o purse -g purse -m 700 /data" in FINAL.of("RUN")[0].rest
    assert [step.rest for step in FINAL.of("VOLUME")] == ["/data"]


def test_nothing_that_was_needed_to_make_it_stays_in_it() -> None:
    assert [step.flags.get("from") for step in FINAL.of("COPY")] == ["build"], "only what the other stage has made"
    assert not any("pip" in step.rest or "apt" in step.rest for step in FINAL.of("RUN"))
    assert "PIP_NO_CACHE_DIR=1" in MAKING[0].of("ENV")[0].rest


def test_no_secret_is_an_argument_or_in_its_environment() -> None:
    named = " ".join(step.rest for stage in (*MAKING, FINAL) for word in ("ARG", "ENV") for step in stage.of(word))
    assert not re.search(r"PASSWORD|KEY|SECRET|TOKEN", named)


@pytest.mark.parametrize(
    "file", [".env", "deploy/admin.key", ".git/config", ".venv/bin/python", "data/admin.key", "tests/conftest.py",
             "web/charts/package.json", "web/__pycache__/app.pyc", "engine/core/__pycache__/plan.pyc", "docs/words.md"]
)  # fmt: skip
def test_what_has_no_business_in_an_image_is_not_even_sent_to_be_built(file: str) -> None:
    assert not left_in(Path(file))


@pytest.mark.parametrize("file", ["pyproject.toml", "LICENSE", "engine/core/plan.py", "web/static/uplot.js"])
def test_what_it_is_built_from_is_sent(file: str) -> None:
    assert left_in(Path(file))


# --- doing as it says -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, index: None) -> Image:
    made = Image(tmp_path_factory.mktemp("image"))
    made.build()
    return made


def test_it_has_what_was_pinned_and_nothing_that_only_developers_need(image: Image) -> None:
    code = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    found = json.loads(image.run("python", "-c", code).stdout)
    ours = found.pop("commonpurse")
    assert ours == json.loads(image.run("purse", "--version", "--json").stdout)["commonpurse"]
    assert {name: PINS.get(name) for name in found} == found
    assert not {"pip", "pytest", "hatchling", "duckdb"} & set(found)


def test_its_packages_are_the_installed_ones(image: Image) -> None:
    code = (
        "import engine.service, projector.service, web.app, commonpurse.sync as s; print(engine.__file__, s.__file__)"
    )
    for file in image.run("python", "-c", code).stdout.split():
        assert file.startswith(f"{image.root}/opt/purse/lib/")


def test_the_wheel_in_it_is_the_same_wherever_it_is_built(image: Image, tmp_path: Path) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": arguments(TEXT)["SOURCE_DATE_EPOCH"]}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, capture_output=True)
    (here,), (there,) = tmp_path.glob("*.whl"), (image.root / "build" / "dist").glob("*.whl")
    assert here.name == there.name
    assert hashlib.sha256(here.read_bytes()).digest() == hashlib.sha256(there.read_bytes()).digest()


def test_what_it_is_compiled_to_bears_no_time(image: Image) -> None:
    compiled = list((image.root / "opt/purse/lib").rglob("*.pyc"))
    assert len(compiled) > 1000
    assert all(file.read_bytes()[4] & 1 for file in compiled), "its source's hash instead"


class Wallet(NamedTuple):
    """What runs in a container of it, and where it answers on this machine."""

    process: subprocess.Popen[str]
    url: str
    key: str


@contextmanager
def started(image: Image) -> Iterator[Wallet]:
    """The image's own command, until the block ends."""
    program, *options = FINAL.of("CMD")[0].listed
    environment = image.environment | {"PURSE_PORT": "0"}
    process = subprocess.Popen(
        [image.program(program), *options],
        cwd=image.root / "data", env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        said: dict[str, str] = {}
        while said.keys() != {"page", "admin key"}:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            if found := re.match(r"\s+(page|admin key)\s+(\S+)", line):
                said[found[1]] = found[2]
        yield Wallet(process, said["page"].rstrip("/"), said["admin key"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WITHIN_S)


def test_its_command_is_a_whole_wallet_that_holds_settles_shows_and_proves(image: Image) -> None:
    with started(image) as wallet:
        check = FINAL.of("HEALTHCHECK")[0].rest.removeprefix("CMD ")
        own = [word.replace("http://127.0.0.1:8080", wallet.url) for word in json.loads(check)]
        assert own != json.loads(check)
        assert image.run(*own).returncode == 0, "it is healthy"
        at = ("purse", "--url", wallet.url, "--key", wallet.key, "--json")
        label = ("--label", "provider=jev")
        held = image.run(*at, "hold", "--id", "call-1", "--amount", "usd=0.25", *label)
        assert (held.returncode, json.loads(held.stdout)["outcome"]) == (0, "held")
        assert image.run(*at, "settle", "call-1", "--amount", "usd=0.20").returncode == 0
        assert settled_by_a_program(image, wallet) == "0.05"
        budgets = json.loads(image.run(*at, "status").stdout)["budgets"]
        assert [one["settled"] for one in budgets if one["name"] == "jev"] == ["0.25"]
        assets = re.findall(r'(?:src|href)="(/static/[^"]+)"', read(f"{wallet.url}/").decode())
        assert len(assets) >= 2
        assert all(read(wallet.url + asset) for asset in assets)
        assert json.loads(read(f"{wallet.url}/openapi.json"))["openapi"].startswith("3.")
    assert wallet.process.returncode == 0
    audited = image.run("purse", "audit", "today", "--json")
    assert audited.returncode == 0, audited.stdout + audited.stderr


def settled_by_a_program(image: Image, wallet: Wallet) -> str:
    """What one guarded block was charged, as a program with the client over HTTP has it."""
    program = """
import os
from commonpurse.sync import Purse
with Purse(os.environ["URL"], key=os.environ["KEY"]) as purse:
    with purse.holding({"usd": "0.10"}, id="call-2", labels={"provider": "jev"}) as hold:
        hold.cost(usd="0.05")
    print(purse.settle("call-2", {"usd": "0.05"}).charged["usd"])
"""
    done = image.run("python", "-c", program, URL=wallet.url, KEY=wallet.key)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=WITHIN_S) as answer:
        found: bytes = answer.read()
    return found
