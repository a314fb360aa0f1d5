"""For all tests: what is logged is put back after each, and the last lines of a run say what was simulated."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

SIMULATED = "simulated"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for reports in list(terminalreporter.stats.values()):
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, said in report.user_properties:
                    if name == SIMULATED:
                        terminalreporter.write_line(str(said))


@pytest.fixture(scope="session")
def logs_at_first() -> tuple[dict[str, Any], int]:
    return structlog.get_config(), logging.getLogger("nats").level


@pytest.fixture(autouse=True)
def logs_put_back(logs_at_first: tuple[dict[str, Any], int]) -> Iterator[None]:
    """A command or a process that is run in here sets what is logged, as if nobody came after it."""
    yield
    config, level = logs_at_first
    structlog.configure(**config)
    logging.getLogger("nats").setLevel(level)
