"""What happened in a day: every flag and refusal with its first sequences, operators' acts, what was left open.

Facts of the record as it stands; whether it is right is for `deciding` and `sums` to say. One day (or range of days) of
the wallet's own calendar; the record is read on behind it, for what still counted to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from engine.core.messages import (
    Adjust,
    Amounts,
    AnyAsk,
    AnyOutcome,
    ApplyPlan,
    Clock,
    Entry,
    Exhausted,
    Freeze,
    Held,
    Hold,
    Lapsed,
    Loss,
    Restore,
    Revoke,
    Settled,
    Stray,
    Thaw,
)
from projector.audit.spenders import Spenders
from projector.audit.sums import HoldSum, Sums
from projector.day_range import DayRange
from projector.replay import Answered

FIRST_MAX = 5  # sequences that are named of each kind
ACTS_MAX = 200
OPEN_MAX = 20
SEALS_MAX = 400

TAKEN = ("planned", "adjusted", "done")


class Noted(msgspec.Struct, gc=False):
    """How often something happened, and in which ask messages first."""

    count: int = 0
    first: list[int] = msgspec.field(default_factory=list)

    def note(self, seq: int) -> None:
        self.count += 1
        if len(self.first) < FIRST_MAX and (not self.first or self.first[-1] != seq):
            self.first.append(seq)


class Act(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something an operator did. `what` is the kind of ask, `about` what it was for."""

    seq: int
    at: int
    what: str
    about: str
    reason: str = ""
    by_whom: str = ""


class OpenHold(msgspec.Struct, frozen=True):
    """A hold that was open as the day ended, and what its unspent grant still held."""

    id: str
    seq: int
    held: Amounts


class Facts:
    """The facts of `day`, and the sums of the whole record on the way."""

    def __init__(self, day: DayRange) -> None:
        self.day = day
        self.sums = Sums(self._charged)
        self.spenders = Spenders()
        self.flags: dict[str, Noted] = {}
        self.outcomes: dict[str, int] = {}
        self.acts: list[Act] = []
        self.acts_more = 0
        self.after: dict[str, Noted] = {}
        self.seals: list[tuple[int, Any]] = []  # where it was told, and the seal
        self.open: list[OpenHold] = []
        self.open_count = 0
        self.messages = self.asks = 0
        self.first_seq = self.last_seq = 0
        self._over = False

    def fold(self, answered: Answered) -> None:
        entry = answered.entry
        self.sums.begin(answered)
        inside = self.day.start <= entry.at < self.day.end
        self._lapse_all(entry)
        if inside:
            self.messages += 1
            self.asks += len(answered.asks or ())
            self.first_seq, self.last_seq = self.first_seq or entry.seq, entry.seq
            if answered.asks is None:
                self._note("invalid", entry.seq)
        for ask, outcome in zip(answered.asks or (), entry.out, strict=False):
            self._outcome(ask, outcome, entry.seq, entry.at, inside=inside)

    def finish(self) -> None:
        """The record has been read to its end for now; the day may not be over."""
        if not self._over:
            self._capture()

    # --- outcomes -----------------------------------------------------------------------------------------------------

    def _outcome(self, ask: AnyAsk, outcome: AnyOutcome, seq: int, at: int, *, inside: bool) -> None:
        kind = KINDS[type(outcome)]
        if not inside and type(outcome) is Settled:
            self._settled_outside(outcome, seq)
        self.sums.outcome(ask, outcome)
        if not inside:
            return
        self.outcomes[kind] = self.outcomes.get(kind, 0) + 1
        for guard in getattr(outcome, "fired", ()):
            self._note(f"guard {guard}", seq)
        match outcome:
            case Held():
                if type(ask) is Hold:
                    self.sums.holds[ask.id].who = self.spenders.call(ask.labels)
            case Settled():
                for flag in outcome.flags:
                    self._note(flag, seq)
            case Exhausted():
                self._note(f"refused: {outcome.why}", seq)
            case Stray() if outcome.state == "estimated":
                self._note("stray", seq)
                self._note("estimated", seq)
            case _:
                if kind in NOTED:
                    self._note(NOTED[kind], seq)
        if kind in TAKEN:
            self._act(ask, seq, at)

    def _settled_outside(self, outcome: Settled, seq: int) -> None:
        """What still counts to the day once it is over."""
        hold = self.sums.holds.get(outcome.id)
        if hold is None or not self._over or hold.at not in self.day:
            return
        self._note_after("corrected" if "corrected" in outcome.flags else "settled", seq)

    def _lapse_all(self, entry: Entry) -> None:
        """What lapsed, each before the end of the day in which it was due, and the days that ended meanwhile."""
        waiting = deque(entry.lapsed)
        ends: list[tuple[int, Any]] = [(seal.end, seal) for seal in getattr(entry, "sealed", ())]
        if not self._over and entry.at >= self.day.end:
            ends.append((self.day.end, None))
        for end, seal in sorted(ends, key=lambda one: one[0]):
            while waiting and self._expires_at(waiting[0]) < end:
                self._lapse(waiting.popleft(), entry.seq)
            if seal is not None:
                self._sealed(seal, entry.seq)
            else:
                self._capture()
                self._over = True
        for lapse in waiting:
            self._lapse(lapse, entry.seq)

    def _expires_at(self, lapse: Lapsed) -> int:
        hold = self.sums.holds.get(lapse.hold)
        return hold.expires_at if hold is not None else 0

    def _lapse(self, lapse: Lapsed, seq: int) -> None:
        hold = self.sums.holds.get(lapse.hold)
        self.sums.lapse(lapse)
        if hold is None:
            return
        if self.day.start <= hold.expires_at < self.day.end:
            self._note("lapsed", seq)
        elif self._over and hold.at in self.day:
            self._note_after("lapsed", seq)

    def _sealed(self, seal: Any, seq: int) -> None:
        self.sums.seal(seal)
        if self.day.first <= seal.day <= self.day.last and len(self.seals) < SEALS_MAX:
            self.seals.append((seq, seal))

    def _charged(self, hold: HoldSum, changes: Amounts) -> None:
        if self.day.start <= hold.at < self.day.end:
            self.spenders.charge(hold.who or self.spenders.who(hold.labels), changes)

    def _note(self, what: str, seq: int) -> None:
        noted = self.flags.get(what)
        if noted is None:
            noted = self.flags[what] = Noted()
        noted.note(seq)

    def _note_after(self, what: str, seq: int) -> None:
        self.after.setdefault(what, Noted()).note(seq)

    def _act(self, ask: AnyAsk, seq: int, at: int) -> None:
        if len(self.acts) >= ACTS_MAX:
            self.acts_more += 1
            return
        about = _about(ask)
        reason, by_whom = getattr(ask, "reason", ""), getattr(ask, "by_whom", "")
        self.acts.append(Act(seq, at, str(ask.__struct_config__.tag), about, reason, by_whom))

    # --- the end of the day -------------------------------------------------------------------------------------------

    def _capture(self) -> None:
        self.open = []
        self.open_count = self.sums.open
        for hold in self.sums.holds.values():
            if len(self.open) >= OPEN_MAX:
                break
            if hold.open:
                held = {unit: max(0, most - hold.charged.get(unit, 0)) for unit, most in hold.granted.items()}
                self.open.append(OpenHold(hold.id, hold.first, held))


KINDS: Mapping[type, str] = {kind: str(kind.__struct_config__.tag) for kind in get_args(AnyOutcome)}
"""What each kind of outcome is called on the stream."""

NOTED: Mapping[str, str] = {
    "stray": "stray",
    "forgotten": "forgotten",
    "conflict": "conflict",
    "invalid": "invalid",
    "late": "refused: late",
    "frozen": "refused: frozen",
    "revoked": "refused: revoked",
    "cooling": "refused: cooling",
    "closed": "closed",
    "again": "again",
    "unknown": "unknown",
}
"""What is noted of outcomes that are not settlements, by the name it has in the report."""


def _about(ask: AnyAsk) -> str:
    match ask:
        case Freeze() | Thaw():
            return ask.scope
        case Revoke() | Restore():
            return f"{ask.label}={ask.value}"
        case Adjust():
            return f"{ask.budget} of {ask.period}"
        case ApplyPlan():
            return f"{len(ask.plan.budgets)} budgets"
        case Loss():
            return f"sequences {ask.from_seq} to {ask.to_seq}"
        case Clock():
            return f"stamps from {ask.start} to {ask.end}"
        case _:
            return ""
