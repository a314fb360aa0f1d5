"""A naive model of the wallet that predicts every verdict. It shares the words with the engine, never its rules.

Nothing in it is kept as a running total: whatever is settled or held is summed again over every call there ever was,
and periods are found by looking at local dates. Slow and plain, so that a reader can see it is right; where it and the
core differ, one of them is wrong. The parts are `property/naive_*.py`; none may import the core's meter, wallet,
decisions or calendar.
"""

from __future__ import annotations

from property.naive_books import invalid
from property.naive_holds import HoldRules
from property.naive_operators import OperatorRules
from property.naive_settles import SettleRules

from engine.core.messages import AnyAsk, AnyOutcome, ApplyPlan, Entry, Hold, Invalid, Renew, Settle


class Auditor(HoldRules, SettleRules, OperatorRules):
    """Predicts what will be told, and remembers everything that was."""

    def predict(self, seq: int, ts: int, asks: list[AnyAsk] | None, *, skipped: bool = False) -> Entry:
        """What must be told of this message (None: it cannot be read). Everything in it has then happened here.

        `skipped`: a `clock` says that its stamp counts for nothing (`property.naive_time`).
        """
        self.at, self.before, self.seq = self.at if skipped else max(self.at, ts), self.seq, seq
        lapsed = self.pass_time()
        out: list[AnyOutcome] = [invalid("")] if asks is None else [self.answer(ask) for ask in asks]
        return Entry(seq=seq, at=self.at, lapsed=lapsed, out=out, sealed=self.sealed)

    def meters(self) -> dict[tuple[str, str | None, str], tuple[int, int, int, int]]:
        """(Budget, each, period) -> settled, held, extra, figure. The newest generation of each budget."""
        return {
            (key[0], key[2], key[3]): (self.settled_in(key), self.held_in(key), meter.extra, meter.figure)
            for key, meter in self.alive.items()
            if key[1] == self.generation[key[0]]
        }

    def answer(self, ask: AnyAsk) -> AnyOutcome:
        """The outcome of one ask, which has then happened."""
        if isinstance(ask, ApplyPlan):
            return self.apply(ask)
        if self.plan is None:
            return invalid(ask.hold if isinstance(ask, Settle | Renew) else ask.id)
        match ask:
            case Hold():
                return self.hold(ask)
            case Settle():
                return self.settle(ask)
            case Renew():
                return self.renew(ask)
            case _:
                return self.operate(ask)


def differences(expected: Entry, actual: Entry) -> list[str]:
    """What was told otherwise than predicted, in words. Of an `invalid` only the id counts: its text is free."""
    found = []
    if (expected.seq, expected.at) != (actual.seq, actual.at):
        found.append(f"place: expected {expected.seq} at {expected.at}, told {actual.seq} at {actual.at}")
    if expected.lapsed != actual.lapsed:
        found.append(f"lapsed: expected {expected.lapsed}, told {actual.lapsed}")
    if expected.sealed != actual.sealed:
        found.append(f"sealed: expected {expected.sealed}, told {actual.sealed}")
    if len(expected.out) != len(actual.out):
        found.append(f"expected {len(expected.out)} outcomes, told {len(actual.out)}")
    for place, (mine, theirs) in enumerate(zip(expected.out, actual.out, strict=False)):
        both_invalid = isinstance(mine, Invalid) and isinstance(theirs, Invalid) and mine.id == theirs.id
        if mine != theirs and not both_invalid:
            found.append(f"outcome {place}: expected {mine}, told {theirs}")
    return found
