"""The command as a person runs it, in this process: a clean environment, an empty folder.

The fixtures act on every test of a module that imports them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from commonpurse.__main__ import purse


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("PURSE_")] + ["NO_COLOR"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(purse, arguments, catch_exceptions=False)
