"""All that is made from the code for `docs/reference`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from reference.asks_page import asks_page
from reference.cli_page import cli_page
from reference.configuration_page import configuration_page
from reference.errors_page import errors_page
from reference.http_page import http_page
from reference.limits_page import limits_page
from reference.metrics_page import metrics_page
from reference.types_file import types_file

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"

PAGES: Mapping[str, Callable[[], str]] = {
    "http.md": http_page,
    "errors.md": errors_page,
    "types.ts": types_file,
    "cli.md": cli_page,
    "configuration.md": configuration_page,
    "asks-and-outcomes.md": asks_page,
    "metrics.md": metrics_page,
    "limits.md": limits_page,
}
