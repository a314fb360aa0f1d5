"""`docker compose up` of `compose.yaml`, where a container engine answers and images can be had.

Where there is none this is skipped, and says so: then the same commands and environment run as processes in
`tests/integration/test_cluster.py`, and the Dockerfile's steps by hand in `test_image.py`. It was written without a
container engine at hand.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.cluster import SECRETS, SERVICES
from integration.rig import REPOSITORY

UP_WITHIN_S = 900.0  # the image is built
READY_WITHIN_S = 120.0
PAGES = [f"http://{SERVICES[name]['ports'][0].rpartition(':')[0]}" for name in ("web-1", "web-2")]
KEY = f"purse_{secrets.token_hex(24)}"

pytestmark = pytest.mark.timeout(UP_WITHIN_S + 4 * READY_WITHIN_S)


def missing() -> str:
    """Why it cannot run here, "" if it can."""
    if shutil.which("docker") is None:
        return "there is no docker here"
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        return "no container engine answers"
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode:
        return "docker has no compose here"
    return ""


class Project:
    """What is up, under a name of its own, in a copy of the tree that has its secrets."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._name = folder, f"purse-{secrets.token_hex(4)}"

    def compose(self, *arguments: str, within_s: float = READY_WITHIN_S) -> str:
        command = ["docker", "compose", "--project-name", self._name, *arguments]
        done = subprocess.run(
            command, cwd=self._folder, env=os.environ, capture_output=True, text=True, timeout=within_s, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("compose") / "tree"
    shutil.copytree(REPOSITORY, folder, ignore=shutil.ignore_patterns(".git", ".venv", "node_modules", "__pycache__"))
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in SECRETS.items()))
    (folder / "deploy" / "admin.key").write_text(KEY)
    (folder / "deploy" / "admin.key").chmod(0o644)
    made = Project(folder)
    try:
        made.compose("up", "--build", "--detach", within_s=UP_WITHIN_S)
        yield made
    finally:
        made.compose("down", "--volumes", "--remove-orphans")


def test_it_holds_at_one_web_settles_at_the_other_and_proves_it(project: Project) -> None:
    for page in PAGES:
        until_ready(page)
    held = ask(f"{PAGES[0]}/v1/holds", {"id": "call-1", "amounts": {"usd": "0.25"}, "labels": {"provider": "jev"}})
    assert held["outcome"] == "held"
    settled = ask(f"{PAGES[1]}/v1/holds/call-1/settle", {"amounts": {"usd": "0.20"}})
    assert (settled["outcome"], settled["charged"]) == ("settled", {"usd": "0.2"})
    audited = project.compose("exec", "--no-TTY", "projector", "purse", "audit", "today", "--json")
    assert json.loads(audited)["right"] is True


def test_it_goes_on_where_one_of_each_is_killed(project: Project) -> None:
    for name in ("web-1", "engine-1", "projector", "nats-1"):
        project.compose("kill", "--signal", "SIGKILL", name)
        project.compose("start", name)
    for page in PAGES:
        until_ready(page)
    life = ask(f"{PAGES[1]}/v1/holds/call-1", None)
    assert life["charged"] == {"usd": "0.2"}


def until_ready(page: str) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while True:
        try:
            with urllib.request.urlopen(f"{page}/readyz", timeout=5) as answer:
                assert answer.status == 200
                return
        except OSError:
            assert time.monotonic() < deadline, f"{page} is not ready"
            time.sleep(0.5)


def ask(url: str, body: object) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {KEY}", "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30) as answer:
        found = json.load(answer)
    assert isinstance(found, dict)
    return found
