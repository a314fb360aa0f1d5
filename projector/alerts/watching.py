"""What no record says: that a source cannot be read, that no engine answers. Pure: the moment comes in."""

from __future__ import annotations

from collections.abc import Iterator

from engine.core.documents import Status
from projector.alerts import wording
from projector.alerts.alert import Alert, alert_id
from projector.alerts.rules import Rules
from projector.alerts.seen import hour_of

NS = 1_000_000_000
SILENT_S = 30  # an engine tells within milliseconds; a cluster that lost its leader needs up to 9 s
INTERVALS_MAX = 3  # a figure older than so many intervals is not the account's any more


def unreadable(status: Status) -> Iterator[Alert]:
    """The budgets whose source cannot be read, and has not been for longer than a hiccup."""
    for budget in status.budgets:
        reading = budget.reading
        if reading is None or not reading.unreadable:
            continue
        since = max(reading.read_at, budget.start)
        if status.as_of - since > INTERVALS_MAX * reading.every_s * NS:
            text = f"{budget.name} {budget.period}: {wording.unreadable(reading.source)}"
            id = alert_id("unreadable", budget.name, budget.period, "")
            yield Alert(id, "unreadable", text, status.as_of, status.seq, budget.name, budget.period)


def silent(now: int, waiting: int, oldest: int) -> Iterator[Alert]:
    """That `waiting` messages are untold, the oldest stamped at `oldest`. Once an hour."""
    since_s = (now - oldest) // NS
    if waiting and since_s >= SILENT_S:
        hour = hour_of(now)
        yield Alert(alert_id("silent", "", hour, ""), "silent", wording.silent(waiting, since_s), now, period=hour)


def seen_now(rules: Rules, status: Status, *, waiting: int, oldest: int) -> list[Alert]:
    """All of these, but for rules that are off."""
    found = (*unreadable(status), *silent(status.as_of, waiting, oldest))
    return [alert for alert in found if alert.rule not in rules.off]
