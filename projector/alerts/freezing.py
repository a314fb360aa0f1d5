"""Freezes the budget of a runaway: once, whoever notices. The ask follows from the alert alone, so two are one.

Only while it is news: a projector that reads an old record freezes nothing, and neither does one that starts after an
operator has thawed. It never thaws.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import structlog

from engine.core.documents import Status
from engine.core.limits import TEXT_CHARS_MAX
from engine.core.messages import Conflict, Freeze, Invalid
from engine.errors import BadAsk, NoAnswer, StreamRefused
from projector.alerts.alert import Alert

NEWS_S = 600
BY_WHOM = "alert: runaway"

log = structlog.get_logger()


class Answered(Protocol):
    @property
    def outcome(self) -> object: ...


class Asker(Protocol):
    """Puts an ask on the stream and hears what was told. `engine.client.Purse` is one."""

    async def ask(self, ask: Freeze) -> Answered: ...


class Freezing:
    """Asks for what alerts of this projector say should be frozen."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._asked: set[str] = set()

    async def look(self, alerts: Iterable[Alert], status: Status) -> None:
        """Ask for what is news and not frozen. What nobody answered is asked again at the next look."""
        stopped = {frost.scope for frost in status.frozen}
        for alert in list(alerts):
            fresh = alert.freezes and alert.id not in self._asked and status.as_of < alert.at + NEWS_S * 1_000_000_000
            if fresh and not stopped & {"all", alert.budget}:
                await self._freeze(alert)

    async def _freeze(self, alert: Alert) -> None:
        ask = freeze_of(alert)
        try:
            outcome = (await self._asker.ask(ask)).outcome
        except (NoAnswer, StreamRefused) as error:
            log.warning("freeze_unanswered", id=ask.id, why=str(error))
            return
        except BadAsk as error:
            log.error("freeze_refused", id=ask.id, field=error.field, why=error.why)
        else:
            level = log.error if isinstance(outcome, Conflict | Invalid) else log.warning
            level("budget_frozen", id=ask.id, budget=alert.budget, outcome=type(outcome).__name__.lower())
        self._asked.add(alert.id)


def freeze_of(alert: Alert) -> Freeze:
    """The same from every projector. Its period is the hour: `freeze:jev:2026-11-30T14`."""
    return Freeze(
        f"freeze:{alert.budget}:{alert.period}", alert.budget, alert.freezes[:TEXT_CHARS_MAX], by_whom=BY_WHOM
    )
