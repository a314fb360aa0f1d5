"""What a backfill found, and what it did, as lines for people and as one document for programs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from projector.backfill.judging import CLASSES, LEFT, TO_DO, Class, Finding
from projector.backfill.rows import Rows

WORDS: Mapping[Class, str] = {
    "new": "settles an open hold",
    "corrects": "corrects a lapse or an estimate",
    "beyond": "adjusts what the wallet has forgotten",
    "stray": "charges a call nobody held",
    "there": "is there already",
    "blank": "says no cost yet",
    "conflict": "CONFLICT, nothing is done",
    "unknown_unit": "UNKNOWN UNIT, nothing is done",
    "refused": "CANNOT BE TAKEN, nothing is done",
    "unreadable": "CANNOT BE READ, nothing is done",
}


def counted(findings: Sequence[Finding]) -> Counter[Class]:
    return Counter(finding.found for finding in findings)


def left(findings: Sequence[Finding]) -> int:
    """Rows that a person has to look at."""
    return sum(counted(findings)[found] for found in LEFT)


def lines(rows: Rows, findings: Sequence[Finding], *, first: int) -> Iterator[str]:
    """The findings by class, of each the first few rows."""
    counts = counted(findings)
    for found in CLASSES:
        if not counts[found]:
            continue
        yield f"{counts[found]:>9,}  {WORDS[found]}"
        shown = [finding for finding in findings if finding.found == found][:first]
        for finding in shown:
            yield f"           {_line(finding)}"
        if shown and counts[found] > len(shown):
            yield f"           and {counts[found] - len(shown):,} more (--rows shows more, --json all)"
    if rows.repeated:
        yield f"{rows.repeated:>9,}  rows say what an earlier row says, and count once"


def _line(finding: Finding) -> str:
    cost = _amounts(finding.amounts)
    was = f", charged {_amounts(finding.charged)} so far" if finding.charged and finding.found != "there" else ""
    why = f": {finding.why}" if finding.why else ""
    named = f"{finding.hold} {cost}".strip()
    return f"line {finding.line:,}{f'  {named}' if named else ''}{was}{why}"


def _amounts(said: Mapping[str, str]) -> str:
    return ", ".join(f"{amount} {unit}" for unit, amount in said.items())


def summary(findings: Sequence[Finding], *, applied: bool) -> str:
    """What it came to, in one line."""
    counts = counted(findings)
    done = sum(counts[found] for found in TO_DO)
    others = sum(counts[found] for found in LEFT) - counts["conflict"]
    more = f", {others:,} not usable" if others else ""
    said = f"{done:,} new, {counts['there']:,} already there, {counts['conflict']:,} conflicts{more}"
    return said if applied else f"{said}. Nothing was changed: --apply does it"


def document(rows: Rows, findings: Sequence[Finding], *, applied: bool, price_book: str | None) -> dict[str, Any]:
    """Everything, each row once."""
    counts = counted(findings)
    return {
        "applied": applied,
        "counts": {found: counts[found] for found in CLASSES},
        "repeated": rows.repeated,
        "priced": rows.priced,
        "price_book": price_book,
        "rows": [_as_plain(finding) for finding in findings],
    }


def _as_plain(finding: Finding) -> dict[str, Any]:
    return {
        "line": finding.line,
        "hold": finding.hold,
        "found": finding.found,
        "amounts": finding.amounts,
        "charged": finding.charged,
        "why": finding.why,
        "asks": [msgspec.to_builtins(ask) for ask in finding.asks],
    }
