"""The last lines of a run say what was simulated: here, so that they are printed wherever the test itself ran."""

from __future__ import annotations

from typing import Any

import pytest

SIMULATED = "simulated"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for reports in list(terminalreporter.stats.values()):
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, said in report.user_properties:
                    if name == SIMULATED:
                        terminalreporter.write_line(str(said))
