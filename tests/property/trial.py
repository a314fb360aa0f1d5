"""A wallet of the core and the auditor beside it, told the same messages: at every step they must say the same."""

from __future__ import annotations

import msgspec
from auditor import Auditor, differences

from engine.core.messages import AnyAsk, Entry, Held
from engine.core.retell import retell
from engine.core.tell import tell
from engine.core.wallet import Wallet


class Trial:
    """Says every message to both, and holds one against the other."""

    def __init__(self) -> None:
        self.wallet = Wallet(name="main")
        self.replayed = Wallet(name="main")  # takes in what was told, as an engine that was not there
        self.auditor = Auditor()
        self.seq = 0

    def say(self, ts: int, asks: list[AnyAsk] | None, *, skipped: bool = False) -> Entry:
        """One message, whose stamp may be `skipped` by a `clock` behind it.

        Raises AssertionError naming what was told or counted otherwise than predicted.
        """
        self.seq += 1
        expected = self.auditor.predict(self.seq, ts, asks, skipped=skipped)
        told = tell(self.wallet, seq=self.seq, ts=ts, asks=asks, skipped=skipped)
        assert not (wrong := differences(expected, told)), self._report(asks, wrong)
        mine, theirs = self.auditor.meters(), self.wallet.meters()
        wrong = [f"{key}: expected {mine.get(key)}, is {theirs.get(key)}" for key in sorted({*mine, *theirs}, key=repr)
                 if mine.get(key) != theirs.get(key)]  # fmt: skip
        assert not wrong, self._report(asks, wrong)
        self.wallet.check()
        self._within_limits(told)
        stored = msgspec.json.decode(msgspec.json.encode(told), type=Entry)
        if not retell(self.replayed, seq=self.seq, ts=ts, asks=asks, entry=stored, skipped=skipped):
            raise AssertionError(self._report(asks, ["what was told is not taken in by who replays it"]))
        assert self.replayed.dump() == self.wallet.dump(), self._report(asks, ["who replays it has another wallet"])
        return told

    def _report(self, asks: list[AnyAsk] | None, wrong: list[str]) -> str:
        return "\n".join([f"message {self.seq} at {self.auditor.at}", *map(repr, asks or []), *wrong])

    def _within_limits(self, told: Entry) -> None:
        """A first `held` never brings a meter over the limit that it names; a grant of zero may find it over."""
        for outcome in told.out:
            if isinstance(outcome, Held) and outcome.n == 0:
                for budget, line in outcome.budgets.items():
                    granted = outcome.amounts[self.auditor.unit_of[budget]]
                    assert granted == 0 or line.remaining >= 0, (budget, outcome)
