"""Fetches the clients that no other test needs, all at once: older and other Python ones, and
JavaScript's; the source of one that has tests of its own; and what the browser tests hold the pages against.

python tests/sdk/fetch.py FOLDER. What cannot be fetched is said, and its tests are skipped: never an error.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).parent
WAIT_S = 600
SOURCE = "-source"
"""A list whose name ends so is fetched as its author published it, not installed."""


def fetching(folder: Path) -> dict[str, tuple[Path, list[str]]]:
    """Name -> where it is fetched, and by what command."""
    commands = {listed.stem: (HERE, pip(listed, folder)) for listed in sorted(HERE.glob("*.txt"))}
    npm = shutil.which("npm")
    if npm is None:
        print("JavaScript's clients and axe-core are left out: there is no npm here", file=sys.stderr)
        return commands
    folders = {"npm": HERE, "npm-browser": HERE.parent / "browser"}
    return commands | {name: (folder, [npm, "ci", "--silent"]) for name, folder in folders.items()}


def pip(listed: Path, folder: Path) -> list[str]:
    """What puts all of a list beside its place."""
    quietly = ["--quiet", "--disable-pip-version-check", "--no-deps", "-r", str(listed)]
    to = str(folder / f"{listed.stem}.part")
    if listed.stem.endswith(SOURCE):
        does = ["download", "--no-binary", ":all:", "--no-build-isolation", "--dest", to]
    else:
        does = ["install", "--no-compile", "--target", to]
    return [sys.executable, "-m", "pip", *does, *quietly]


def unpack(folder: Path) -> None:
    """Every source in it to a folder of its name, without its version."""
    for packed in folder.glob("*.tar.gz"):
        with tarfile.open(packed) as source:
            if hasattr(tarfile, "data_filter"):  # from 3.11.4 on
                source.extraction_filter = tarfile.data_filter
            source.extractall(folder)
        unpacked = folder / packed.name.removesuffix(".tar.gz")
        unpacked.rename(folder / unpacked.name.rpartition("-")[0])
        packed.unlink()


def fetch(folder: Path) -> bool:
    """Whether all of them are there now."""
    for part in folder.glob("*.part"):
        shutil.rmtree(part)
    running = {
        name: subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for name, (cwd, command) in fetching(folder).items()
    }
    whole = True
    for name, process in running.items():
        _, errors = process.communicate(timeout=WAIT_S)
        if process.returncode:
            whole = False
            print(f"{name} could not be fetched: {(errors.strip().splitlines() or ['?'])[-1]}", file=sys.stderr)
        elif not name.startswith("npm"):
            unpack(folder / f"{name}.part")
            shutil.rmtree(folder / name, ignore_errors=True)
            (folder / f"{name}.part").rename(folder / name)
    return whole


if __name__ == "__main__":
    there = Path(sys.argv[1]).resolve()
    there.mkdir(parents=True, exist_ok=True)
    if fetch(there):
        (there / ".done").touch()
