"""What was decided otherwise: how often, of whom, and the first of them one by one. Counts and lists that have an end.

It compares outcomes and decides nothing. Only asks of the day are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from engine.core.messages import (
    Amounts,
    AnyOutcome,
    Cooling,
    Exhausted,
    Frozen,
    Held,
    Hold,
    Invalid,
    Late,
    Renew,
    Revoked,
    Settled,
)
from projector.audit.spenders import LABELS, TOP, VALUES_MAX

SHOWN_MAX = 20
SHOWN_MOST = 10_000  # that may be asked for

What: TypeAlias = Literal["refused", "served", "otherwise", "reason"]
"""In the other world: refused though served, served though refused, granted otherwise, refused for another reason."""

WHATS: tuple[What, ...] = ("refused", "served", "otherwise", "reason")


class Decided(msgspec.Struct, frozen=True, omit_defaults=True):
    """An outcome in short. `why` is the reason of a refusal."""

    outcome: str
    why: str = ""
    budget: str = ""
    each: str | None = None
    unit: str = ""
    remaining: int | None = None
    amounts: Amounts = {}
    option: int = 0


class Difference(msgspec.Struct, frozen=True, omit_defaults=True):
    """One hold or renewal, the ask message it stands in, and both outcomes."""

    seq: int
    at: int
    ask: str
    id: str
    what: What
    was: Decided
    would_be: Decided
    labels: dict[str, str] = {}


class Tally(msgspec.Struct):
    """Holds of the day in one world. `granted` and `returned` by unit: what was held for calls, and what came back."""

    held: int = 0
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    granted: Amounts = msgspec.field(default_factory=dict)
    returned: Amounts = msgspec.field(default_factory=dict)

    def hold(self, outcome: AnyOutcome) -> None:
        if isinstance(outcome, Held):
            self.held += 1
            _add(self.granted, outcome.amounts)
        elif (why := _refusal(outcome)) is not None:
            self.refused[why] = self.refused.get(why, 0) + 1

    def settle(self, outcome: AnyOutcome | None) -> None:
        if isinstance(outcome, Settled):
            _add(self.returned, outcome.released)


Counts: TypeAlias = dict[What, int]


class Differences:
    """Everything that differs in the day. `shown`: how many are kept one by one."""

    def __init__(self, *, shown: int = SHOWN_MAX) -> None:
        self.was, self.would_be = Tally(), Tally()
        self.holds: Counts = dict.fromkeys(WHATS, 0)
        self.renewals: Counts = dict.fromkeys(WHATS, 0)
        self.first: list[Difference] = []
        self._shown = shown
        self._by: dict[str, dict[str | None, Counts]] = {label: {} for label in LABELS}
        self._others: dict[str, Counts] = {label: dict.fromkeys(WHATS, 0) for label in LABELS}

    @property
    def count(self) -> int:
        return sum(self.holds.values()) + sum(self.renewals.values())

    def compare(
        self,
        ask: Hold | Renew,
        was: AnyOutcome,
        would_be: AnyOutcome,
        *,
        scaled: Amounts,
        seq: int,
        at: int,
        labels: Mapping[str, str],
    ) -> None:
        """One ask, told on the record and decided in the other world.

        `scaled`: what `was` granted, as the other world would hold it; a factor alone makes no difference.
        """
        if isinstance(ask, Hold):
            self.was.hold(was)
            self.would_be.hold(would_be)
        what = _what(was, would_be, scaled)
        if what is None:
            return
        (self.holds if isinstance(ask, Hold) else self.renewals)[what] += 1
        for label in LABELS:
            self._of(label, labels.get(label))[what] += 1
        if len(self.first) < self._shown:
            named = {label: labels[label] for label in LABELS if label in labels}
            id, kind = (ask.id, "hold") if isinstance(ask, Hold) else (ask.hold, "renew")
            self.first.append(Difference(seq, at, kind, id, what, _decided(was), _decided(would_be), named))

    def top(self, label: str) -> tuple[list[tuple[str | None, Counts]], int]:
        """The values of a label that differ most often, with what differed; how many others there are."""
        found = sorted(self._by[label].items(), key=lambda one: (-sum(one[1].values()), one[0] or ""))
        return found[:TOP], max(0, len(found) - TOP) + bool(sum(self._others[label].values()))

    def _of(self, label: str, value: str | None) -> Counts:
        known = self._by[label]
        if value not in known:
            if len(known) >= VALUES_MAX:
                return self._others[label]
            known[value] = dict.fromkeys(WHATS, 0)
        return known[value]


def _what(was: AnyOutcome, would_be: AnyOutcome, scaled: Amounts) -> What | None:
    """How the two differ; None where they do not, or where one of them only repeats an earlier answer."""
    served, would_serve = isinstance(was, Held), isinstance(would_be, Held)
    refused, would_refuse = _refusal(was), _refusal(would_be)
    if served and would_refuse:
        return "refused"
    if would_serve and not served:
        return "served"
    if isinstance(was, Held) and isinstance(would_be, Held):
        same = (was.option, scaled) == (would_be.option, would_be.amounts)
        return None if same else "otherwise"
    return "reason" if refused and would_refuse and refused != would_refuse else None


def _refusal(outcome: AnyOutcome) -> str | None:
    """The reason of a refusal, None where it is none."""
    match outcome:
        case Exhausted():
            return outcome.why
        case Frozen() | Cooling() | Revoked() | Late() | Invalid():
            return str(outcome.__struct_config__.tag)
        case _:
            return None


def _decided(outcome: AnyOutcome) -> Decided:
    kind = str(outcome.__struct_config__.tag)
    match outcome:
        case Held():
            return Decided(kind, amounts=outcome.amounts, option=outcome.option)
        case Exhausted():
            return Decided(kind, outcome.why, outcome.budget, outcome.each, outcome.unit, outcome.remaining)
        case _:
            return Decided(kind, getattr(outcome, "why", "") or getattr(outcome, "reason", ""))


def _add(sums: Amounts, amounts: Amounts) -> None:
    for unit, amount in amounts.items():
        sums[unit] = sums.get(unit, 0) + amount
