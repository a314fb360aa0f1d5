"""Fetches the clients that no other test needs, all at once: older and other Python ones, and
JavaScript's; and what the browser tests hold the pages against.

python tests/sdk/fetch.py FOLDER. What cannot be fetched is said, and its tests are skipped: never an error.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
WAIT_S = 600


def fetching(folder: Path) -> dict[str, tuple[Path, list[str]]]:
    """Name -> where it is fetched, and by what command."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
        "--no-deps",
    ]
    commands = {
        listed.stem: (HERE, [*pip, "--target", str(folder / f"{listed.stem}.part"), "-r", str(listed)])
        for listed in sorted(HERE.glob("*.txt"))
    }
    npm = shutil.which("npm")
    if npm is None:
        print("JavaScript's clients and axe-core are left out: there is no npm here", file=sys.stderr)
        return commands
    folders = {"npm": HERE, "npm-browser": HERE.parent / "browser"}
    return commands | {name: (folder, [npm, "ci", "--silent"]) for name, folder in folders.items()}


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
            shutil.rmtree(folder / name, ignore_errors=True)
            (folder / f"{name}.part").rename(folder / name)
    return whole


if __name__ == "__main__":
    there = Path(sys.argv[1]).resolve()
    there.mkdir(parents=True, exist_ok=True)
    if fetch(there):
        (there / ".done").touch()
