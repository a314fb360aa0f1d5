"""Every link between pages leads somewhere: to a file of the repository, and to a heading of it where it names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs.blocks import ROOT, name_of

PAGES = sorted(
    {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("[!.]*/README.md"), *ROOT.glob("*/*/README.md")}
)
_CODE = re.compile(r"^( *)```.*?^\1```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def links(text: str) -> set[str]:
    """Those that stay in the repository."""
    found = {first or second for first, second in _LINK.findall(_CODE.sub("", text))}
    return {link for link in found if not re.match(r"[a-z]+:", link)}


def anchors(text: str) -> set[str]:
    """Of the headings: in small letters, words joined by dashes, nothing else."""
    bare = [re.sub(r"[^\w\s-]", "", heading.lower()) for heading in _HEADING.findall(_FENCED.sub("", text))]
    return {re.sub(r"\s", "-", heading.strip()) for heading in bare}


def broken(page: Path, text: str) -> set[str]:
    wrong = set()
    for link in links(text):
        name, _, anchor = link.partition("#")
        path = page.parent / name if name else page
        there = text if path == page else path.read_text(encoding="utf-8") if path.suffix == ".md" else None
        if not path.exists() or (anchor and anchor not in anchors(there or "")):
            wrong.add(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_its_links_lead_somewhere(page: Path) -> None:
    assert broken(page, page.read_text(encoding="utf-8")) == set()


def test_a_link_that_leads_nowhere_is_noticed() -> None:
    good = "# A heading, one\n[a](README.md) [b](#a-heading-one) [c](docs/words.md#money) `[d](nowhere.md)`\n"
    text = good + "[e](#another) [f](docs/words.md#moneys)"
    assert broken(ROOT / "README.md", good) == set()
    assert broken(ROOT / "README.md", text) == {"#another", "docs/words.md#moneys"}
