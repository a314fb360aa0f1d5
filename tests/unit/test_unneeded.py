"""An engine process leaves out what it never uses, and nothing it uses minds."""

import subprocess
import sys

SHOWS = """
import sys
from engine.unneeded import UNNEEDED, leave_out
leave_out()
import engine.__main__
print([name for name in UNNEEDED if sys.modules[name] is not None])
"""


def test_an_engine_starts_without_what_it_leaves_out() -> None:
    shown = subprocess.run([sys.executable, "-c", SHOWS], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout == "[]\n"


def test_who_only_imports_an_engine_loses_nothing() -> None:
    shows = "import engine.__main__, aiohttp, rich.table; print(aiohttp.ClientSession.__name__)"
    shown = subprocess.run([sys.executable, "-c", shows], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout == "ClientSession\n"
