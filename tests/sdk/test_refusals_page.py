"""The page that tells what a refusal is to a client says what the tests of every client hold it to."""

from __future__ import annotations

from pathlib import Path

from sdk.clients import CLIENTS
from sdk.refusals import RAISES, errors, situations

PAGE = (Path(__file__).parents[2] / "docs" / "refusals.md").read_text()
HEADS = ("| status", "| the call is refused")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(HEADS)]


def test_the_page_of_refusals_has_the_rows_that_are_tested_and_no_others() -> None:
    assert [*situations(), *errors()] == ROWS


def test_the_page_of_refusals_names_every_family_of_clients() -> None:
    (head,) = [line for line in PAGE.splitlines() if line.startswith("| status")]
    families = [name.strip().replace("`", "") for name in head.strip("|").split("|")[1:]]
    assert families == list(RAISES)
    assert {client.family for client in CLIENTS} == set(RAISES)
