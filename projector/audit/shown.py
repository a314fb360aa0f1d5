"""The report of an audit as people read it: lines of plain text. All that stands in them is in the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from projector.audit.report import Report

BUDGETS_SHOWN_MAX = 24
ACTS_SHOWN_MAX = 12
WRONG_SHOWN_MAX = 5


def lines(report: Report) -> Iterator[str]:
    """Line by line; headings end in a colon."""
    read = report.read
    over = "" if report.over else f", not over yet (as of {read['as_of']})"
    yield f"Audit of {report.day} ({report.zone}), wallet {report.wallet}: {report.start} until {report.end}{over}"
    yield ""
    yield from _verdict(report)
    yield ""
    yield f"The day: {report.asks:,} asks in {report.messages:,} messages."
    yield from _budgets(report)
    yield from _spent(report)
    yield from _flags("What is worth a look, with its first sequences:", report.flags)
    yield from _flags("What counted to the day after it was over:", report.after)
    yield from _operators(report)
    yield from _open(report)
    yield from _seals(report)
    if (written := report.export) is not None:
        yield f"Exported: {written['rows']:,} rows to {written['file']}, from {written['from']} until {written['to']}"
        yield ""
    yield "Checked:"
    yield from (f"  {line}" for line in report.checked)
    yield "Not checked:"
    yield from (f"  {line}" for line in report.unchecked)


def _verdict(report: Report) -> Iterator[str]:
    read = report.read
    if report.right:
        yield (
            f"All is right: {read['messages']:,} messages with {read['asks']:,} asks were read, up to sequence "
            f"{read['last']:,}. Receipt: {read['told']}:{read['chain']}"
        )
        return
    where = f"first at sequence {report.first_wrong:,}" if report.first_wrong is not None else "only in the totals"
    yield f"SOMETHING IS OFF, {where}."
    if (found := report.difference) is not None:
        place = f", outcome {found.outcome + 1}" if found.outcome is not None else ""
        yield f"  Message {found.seq:,}{place} was told (at {found.told:,}) otherwise than the rules decide:"
        yield f"    told     {found.said}"
        yield f"    decided  {found.decided}"
        if report.differences > 1:
            yield f"  and {report.differences - 1:,} more messages (the first one may be why)"
    for wrong in report.wrong[:WRONG_SHOWN_MAX]:
        yield f"  Message {wrong.seq:,}: {wrong.what}"
    if report.wrongs > WRONG_SHOWN_MAX:
        yield f"  and {report.wrongs - WRONG_SHOWN_MAX:,} more like that"
    for one in report.totals_differ[:WRONG_SHOWN_MAX]:
        yield (
            f"  {one.budget} of {one.period}: settled, held, extra are {one.by_the_rules} by the rules, "
            f"{one.by_adding_up} by adding up"
        )
    if report.impossible:
        yield f"  {report.impossible}"


def _budgets(report: Report) -> Iterator[str]:
    for one in report.budgets[:BUDGETS_SHOWN_MAX]:
        of = f" for each {one['each']}" if one["each"] else ""
        yield f"  {one['budget']} of {one['period']} ({one['unit']}{of})"
        yield (
            f"    limit {one['limit']}, settled {one['settled']}, held {one['held']}, extra {one['extra']}, "
            f"peak {one['peak']}"
        )
        if one["each"]:
            yield f"    {one['meters']:,} meters; most by {one['fullest']['value']}: {one['fullest']['used']}"
        yield f"    {one['holds']:,} holds, {one['settles']:,} settlements{_refused(one)}"
        if one["first_exhausted_at"]:
            yield f"    first exhausted at {one['first_exhausted_at']}"
        if one["after_events"]:
            yield f"    of the settled, {one['after']} came after the period was over ({one['after_events']:,} times)"
    more = len(report.budgets) - BUDGETS_SHOWN_MAX + report.budgets_more
    if more > 0:
        yield f"  and {more:,} more periods (--json has them)"
    yield ""


def _refused(one: dict[str, Any]) -> str:
    refused = ", ".join(f"{why} {count:,}" for why, count in sorted(one["refused"].items()))
    return f", refused: {refused}" if refused else ""


def _spent(report: Report) -> Iterator[str]:
    for label, units in report.spent.items():
        for unit, found in units.items():
            if not any(one["value"] is not None for one in found["top"]):
                continue
            yield f"Spent by {label} ({unit}):"
            for one in found["top"]:
                value = one["value"] if one["value"] is not None else f"(no {label})"
                yield f"  {one['spent']:>16}  {value}  ({one['calls']:,} calls)"
            if found["others"]:
                yield f"  {found['other']['spent']:>16}  {found['others']:,} others"
    yield ""


def _flags(heading: str, flags: dict[str, Any]) -> Iterator[str]:
    if not flags:
        return
    yield heading
    for name, noted in flags.items():
        first = ", ".join(f"{seq:,}" for seq in noted["first"])
        yield f"  {noted['count']:>9,}  {name}  ({first}{' ...' if noted['count'] > len(noted['first']) else ''})"
    yield ""


def _operators(report: Report) -> Iterator[str]:
    if not report.operators:
        return
    yield "What operators did:"
    for act in report.operators[:ACTS_SHOWN_MAX]:
        whom = f" by {act['by_whom']}" if act.get("by_whom") else ""
        reason = f": {act['reason']}" if act.get("reason") else ""
        yield f"  {act['at']}  {act['what']} {act['about']}{whom}{reason}  ({act['seq']:,})"
    more = len(report.operators) - ACTS_SHOWN_MAX + report.operators_more
    if more > 0:
        yield f"  and {more:,} more"
    yield ""


def _open(report: Report) -> Iterator[str]:
    when = "As the day ended" if report.over else "Now"
    yield f"{when}, {report.open['count']:,} holds were open."
    for one in report.open["first"][:5]:
        held = ", ".join(f"{amount} {unit}" for unit, amount in one["held"].items())
        yield f"  {one['id']} holds {held}  ({one['seq']:,})"
    yield ""


def _seals(report: Report) -> Iterator[str]:
    for seal in report.seals:
        yield f"Sealed: {seal['day']}, up to message {seal['upto']:,}, told with message {seal['seq']:,}"
