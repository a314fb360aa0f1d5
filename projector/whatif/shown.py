"""The report of a what-if as people read it: lines of plain text. All that stands in them is in the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from projector.whatif.differences import WHATS
from projector.whatif.report import WhatIf

BUDGETS_SHOWN_MAX = 24
FIGURES = ("limit", "settled", "held", "extra", "peak")
NAMES = {
    "refused": "refused that were served",
    "served": "served that were refused",
    "otherwise": "granted otherwise",
    "reason": "refused for another reason",
}


def lines(report: WhatIf) -> Iterator[str]:
    """Line by line; headings end in a colon."""
    over = "" if report.over else f", not over yet (as of {report.as_of})"
    yield f"What if, on {report.day} ({report.zone}), wallet {report.wallet}{over}:"
    yield from (f"  {line}" for line in _change(report.change))
    yield ""
    if report.same:
        yield "Nothing would have been otherwise."
    else:
        yield from _differ(report)
    yield ""
    yield f"{'':28}{'as it was':>22}{'as it would be':>22}"
    yield from _holds(report.holds)
    yield from _headroom(report.headroom)
    for one in report.budgets[:BUDGETS_SHOWN_MAX]:
        yield from _budget(one)
    more = len(report.budgets) - BUDGETS_SHOWN_MAX + report.budgets_more
    if more > 0:
        yield f"  and {more:,} more periods (--json has them)"
    yield ""
    yield from _by(report.by)
    yield from _first(report)
    yield "What this rests on, beside the record:"
    yield from (f"  {line}" for line in report.rules)


def _change(change: dict[str, Any]) -> Iterator[str]:
    yield from change["plan"]
    if change["hold_factor"] != "1":
        yield f"holds of {change['hold_factor']} times the worst case"
    for model, factor in change["prices"].items():
        yield f"{model} costs {factor} times what it did"
    if not change["plan"] and change["hold_factor"] == "1" and not change["prices"]:
        yield "the plan that was in force"


def _differ(report: WhatIf) -> Iterator[str]:
    for kind in ("holds", "renewals"):
        for what in WHATS:
            count = report.differ[kind][what]
            if count:
                yield f"  {count:>9,}  {kind} {NAMES[what]}"


def _pair(name: str, was: object, would_be: object) -> str:
    return f"  {name:26}{was!s:>22}{would_be!s:>22}"


def _holds(holds: dict[str, Any]) -> Iterator[str]:
    was, would_be = holds["was"], holds["would_be"]
    yield _pair("holds served", f"{was['held']:,}", f"{would_be['held']:,}")
    for why in sorted({*was["refused"], *would_be["refused"]}):
        yield _pair(f"refused: {why}", f"{was['refused'].get(why, 0):,}", f"{would_be['refused'].get(why, 0):,}")


def _headroom(headroom: dict[str, Any]) -> Iterator[str]:
    for unit, both in headroom.items():
        for name, title in (("granted", "held"), ("returned", "came back unspent")):
            yield _pair(f"{title}, {unit}", both["was"][name], both["would_be"][name])


def _budget(one: dict[str, Any]) -> Iterator[str]:
    was, would_be = one["was"] or {}, one["would_be"] or {}
    yield f"  {one['budget']} of {one['period']} ({one['unit']})"
    for name in FIGURES:
        yield _pair(f"  {name}", was.get(name, "-"), would_be.get(name, "-"))
    for why in sorted({*was.get("refused", {}), *would_be.get("refused", {})}):
        yield _pair(f"  refused: {why}", was.get("refused", {}).get(why, 0), would_be.get("refused", {}).get(why, 0))
    exhausted = [world.get("first_exhausted_at") for world in (was, would_be)]
    if any(exhausted):
        yield _pair("  first exhausted", *(at or "-" for at in exhausted))


def _by(by: dict[str, Any]) -> Iterator[str]:
    for label, found in by.items():
        if not any(one["value"] is not None for one in found["top"]):
            continue
        yield f"By {label}:"
        for one in found["top"]:
            value = one["value"] if one["value"] is not None else f"(no {label})"
            said = ", ".join(f"{one[what]:,} {what}" for what in WHATS if one[what])
            yield f"  {value}  {said}"
        if found["others"]:
            yield f"  and {found['others']:,} others"
    yield ""


def _first(report: WhatIf) -> Iterator[str]:
    if not report.first:
        return
    yield "The first that differ:"
    for one in report.first:
        both = f"{_said(one['was'])} -> {_said(one['would_be'])}"
        yield f"  {one['seq']:>9,}  {one['at']}  {one['ask']} {one['id']}: {both}"
    if report.more:
        yield f"  and {report.more:,} more"
    yield ""


def _said(decided: dict[str, Any]) -> str:
    parts = [decided["outcome"]]
    parts += [f"{amount} {unit}" for unit, amount in decided.get("amounts", {}).items()]
    if decided.get("why"):
        parts.append(f"({decided['why']}{', ' + decided['budget'] if decided.get('budget') else ''})")
    return " ".join(parts)
