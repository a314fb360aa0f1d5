"""The command as a person runs it, in this process: a clean environment, an empty folder, logs put back afterwards.

The fixtures act on every test of a module that imports them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner, Result

from commonpurse.__main__ import purse


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """The command sets what is logged, for its own process; here others come after it."""
    before, level = structlog.get_config(), logging.getLogger("nats").level
    yield
    structlog.configure(**before)
    logging.getLogger("nats").setLevel(level)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("PURSE_")] + ["NO_COLOR"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(purse, arguments, catch_exceptions=False)
