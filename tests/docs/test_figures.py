"""Figures that a page repeats are still those of the page that measured them."""

from __future__ import annotations

import re

from docs.blocks import ROOT

SCALING = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")


def test_what_one_wallet_does_was_measured() -> None:
    table = SCALING.partition("| what | figure |")[2].partition("\n\n")[0]
    figures = [figure for row in table.splitlines()[2:] for figure in re.findall(r"\d[\d,.]*\d", row.split("|")[2])]
    assert len(figures) >= 6
    assert [figure for figure in figures if figure not in MEASURED] == []
