"""One call's whole life: every ask that names it, what was told of it, where that stands, and the receipt for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from engine.core.amounts import format_amount
from engine.core.messages import Adjust, AnyAsk, ApplyPlan, Hold, Planned, Renew, Settle
from engine.stream_clock import written
from projector.replay import Answered

EVENTS_MAX = 1_000

_MOMENTS = frozenset({"at", "by", "expires_at", "held_at", "resets_at", "until", "start", "end"})
_AMOUNTS = frozenset({"amounts", "least", "charged", "released"})


class Event(msgspec.Struct, frozen=True):
    """One thing that happened to it. `ask` is None where it lapsed. `receipt`: the told's sequence and chain."""

    seq: int
    at: str
    receipt: dict[str, Any]
    ask: dict[str, Any] | None
    outcome: dict[str, Any]
    at_ns: int = 0


class Life:
    """Every event of the hold `id`, as far as the record was folded."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.events: list[Event] = []
        self.more = 0
        self.scales: dict[str, int] = {}

    def fold(self, answered: Answered) -> None:
        for lapsed in answered.entry.lapsed:
            if lapsed.hold == self.id:
                self._add(answered, None, {"outcome": "lapsed", **self._written(lapsed)})
        for ask, outcome in zip(answered.asks or (), answered.entry.out, strict=False):
            if isinstance(ask, ApplyPlan) and isinstance(outcome, Planned):
                self.scales |= ask.plan.units
            elif _names(ask) == self.id:
                self._add(answered, self._written(ask), self._written(outcome))

    def _add(self, answered: Answered, ask: dict[str, Any] | None, outcome: dict[str, Any]) -> None:
        if len(self.events) >= EVENTS_MAX:
            self.more += 1
            return
        receipt = {"seq": answered.told, "chain": answered.chain.hex()}
        self.events.append(
            Event(answered.entry.seq, written(answered.entry.at), receipt, ask, outcome, answered.entry.at)
        )

    def _written(self, said: msgspec.Struct) -> dict[str, Any]:
        """Amounts as decimal strings, moments as people read them."""
        plain: dict[str, Any] = msgspec.to_builtins(said)
        return {name: self._field(name, value) for name, value in plain.items()}

    def _field(self, name: str, value: Any) -> Any:
        if name in _MOMENTS and isinstance(value, int):
            return written(value)
        if name in _AMOUNTS and isinstance(value, Mapping):
            return {unit: format_amount(amount, scale=self.scales.get(unit, 0)) for unit, amount in value.items()}
        if name == "options":
            return [{key: self._field(key, one[key]) for key in one} for one in value]
        return value


def _names(ask: AnyAsk) -> str | None:
    match ask:
        case Hold():
            return ask.id
        case Settle() | Renew() | Adjust():
            return ask.hold
        case _:
            return None
