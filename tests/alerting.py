"""Given, when, then for alerts: a wallet whose every entry is also folded for alerts, by two folds.

One of them is put down and taken up again before every message, as by a restart from a snapshot: both must raise the
same.
"""

from __future__ import annotations

import msgspec
from wallets import Books

from engine.core.messages import Entry
from engine.core.plan import Budget, Guard, Plan
from engine.core.restore import load
from engine.core.tell import fold, read
from engine.core.wallet import Wallet
from projector.alerts.alert import Alert
from projector.alerts.fold import AlertFold, State
from projector.alerts.rules import Rules


class Alerted(Books):
    """`news()`: what was raised since it was last asked."""

    def __init__(
        self, *, rules: Rules | None = None, guards: dict[str, Guard] | None = None, **budgets: Budget
    ) -> None:
        self.rules = rules if rules is not None else Rules()
        self.seen = Wallet()
        self.fold = AlertFold(self.rules)
        self.restarted = AlertFold(self.rules)
        self._told: set[str] = set()
        super().__init__(plan=Plan(budgets, guards=guards) if guards else None, **({} if guards else budgets))

    def send_raw(self, raw: bytes) -> Entry:
        entry = super().send_raw(raw)
        message = read(raw)
        asks = message.asks if message is not None else None
        state = msgspec.json.decode(msgspec.json.encode(self.restarted.state()), type=State)
        self.restarted = AlertFold(self.rules, state, load(self.seen.dump()))
        touched = self.fold.before(self.seen, asks, entry)
        also = self.restarted.before(self.seen, asks, entry)
        fold(self.seen, seq=self.seq, ts=self.ts, asks=asks, entry=entry)
        self.fold.after(self.seen, asks, entry, touched)
        self.restarted.after(self.seen, asks, entry, also)
        assert list(self.restarted.raised.values()) == list(self.fold.raised.values()), "a restart raises others"
        return entry

    def alerts(self) -> list[Alert]:
        """Those raised since this was last asked."""
        new = [alert for id, alert in self.fold.raised.items() if id not in self._told]
        self._told |= self.fold.raised.keys()
        return new

    def news(self) -> list[str]:
        """Their ids, without what all have in common."""
        return [alert.id.removeprefix("alert:") for alert in self.alerts()]

    def texts(self) -> list[str]:
        return [alert.text for alert in self.alerts()]
