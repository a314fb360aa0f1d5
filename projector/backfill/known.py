"""What the record knows of some holds, from its first message on: beyond all that the wallet still remembers.

The fold is the engine's; beside the wallet only the wanted holds are kept, so that what this takes grows with the file
and not with the record. Nothing here judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import TypeAlias

import msgspec

from engine.core import evolve
from engine.core.messages import (
    Adjust,
    Adjusted,
    Amounts,
    AnyAsk,
    AnyOutcome,
    Dropped,
    Forgotten,
    Held,
    Hold,
    HoldState,
    Line,
    Settle,
    Settled,
    Stray,
)
from engine.core.wallet import Wallet
from projector.replay import Answered, BrokenRecord

MeterName: TypeAlias = tuple[str, str | None, str]
"""Budget, `each` value, period."""

EXACT = frozenset({"settled", "corrected", "stray"})


class Place(msgspec.Struct, frozen=True, gc=False):
    """A meter that counts a hold. `generation`: how often the budget had begun anew."""

    budget: str
    generation: int
    each: str | None
    period: str
    unit: str


class Known(msgspec.Struct, gc=False):
    """A hold as the record leaves it. `state` "": it was never held or charged, only spoken of.

    `charged`: all it costs so far. `adjusts`: what operators have moved for it. `forgotten`: a settlement that came too
    late to be charged.
    """

    id: str
    state: HoldState | str = ""
    at: int = 0
    changed_at: int = 0
    labels: dict[str, str] = {}
    charged: Amounts = {}
    places: tuple[Place, ...] = ()
    adjusts: tuple[Adjust, ...] = ()
    forgotten: Settle | None = None

    @property
    def exact(self) -> bool:
        return self.state in EXACT

    def adjusted(self) -> Counter[MeterName]:
        """What operators have moved for it in each meter."""
        moved: Counter[MeterName] = Counter()
        for ask in self.adjusts:
            moved[ask.budget, ask.each, ask.period] += ask.amount
        return moved


class Register:
    """The fold. `wanted`: which holds are kept; None: every one that has no exact end and no adjustment."""

    def __init__(self, name: str = "main", *, wanted: Container[str] | None = None) -> None:
        self.wallet = Wallet(name)
        self.holds: dict[str, Known] = {}
        self._wanted = wanted
        self._shared: dict[Place, Place] = {}

    def fold(self, answered: Answered) -> None:
        """The next message and what was told of it, proved to belong together. Raises `BrokenRecord`."""
        try:
            self._fold(answered)
        except (AssertionError, LookupError) as error:  # its chain is right, yet it speaks of what never was
            seq = answered.stored.seq
            raise BrokenRecord(f"what the entry for message {seq:,} tells cannot have happened", seq=seq) from error

    def remembers(self, hold: str) -> bool:
        """Whether the wallet itself still knows what became of it."""
        wallet = self.wallet
        if hold in wallet.open or hold in wallet.provisional:
            return True
        return wallet.closed.get(hold, wallet.at) is not None

    def _fold(self, answered: Answered) -> None:
        wallet, entry = self.wallet, answered.entry
        evolve.begin(wallet, seq=answered.stored.seq, at=entry.at)
        for lapsed in entry.lapsed:
            evolve.lapse(wallet, lapsed)
            known = self.holds.get(lapsed.hold)
            if known is not None:
                known.state, known.charged, known.changed_at = "lapsed", lapsed.charged, entry.at
        evolve.settle_in(wallet)
        for ask, outcome in zip(answered.asks or (), entry.out, strict=answered.asks is not None):
            evolve.evolve(wallet, ask, outcome)
            self._take(ask, outcome)

    def _take(self, ask: AnyAsk, outcome: AnyOutcome) -> None:
        match ask, outcome:
            case Hold(), Held():
                self._held(ask, outcome)
            case Settle(), Settled() | Stray():
                self._charged(ask, outcome)
            case Settle(), Forgotten():
                self._forgotten(ask)
            case Adjust(hold=str()), Adjusted():
                self._adjusted(ask)

    # --- what happened to one -----------------------------------------------------------------------------------------

    def _held(self, ask: Hold, told: Held) -> None:
        if not self._wants(ask.id):
            return
        known = Known(ask.id, "open", told.at, told.at, ask.labels)  # anew, whatever the id was before
        known.places = self._places(told.budgets)
        self.holds[ask.id] = known

    def _charged(self, ask: Settle, told: Settled | Stray) -> None:
        known = self._of(ask.hold)
        if known is None:
            return
        if isinstance(told, Stray):
            known.at, known.labels = told.at, ask.labels
        known.state, known.charged, known.changed_at = told.state, told.charged, self.wallet.at
        known.forgotten = None
        have = {place.budget for place in known.places}
        more = self._places(told.budgets, told.dropped)
        known.places += tuple(place for place in more if place.budget not in have)
        if known.exact:
            self._is_done(ask.hold)

    def _forgotten(self, ask: Settle) -> None:
        known = self._of(ask.hold)
        if known is not None and not known.exact:
            known.forgotten, known.changed_at = ask, self.wallet.at

    def _adjusted(self, ask: Adjust) -> None:
        assert ask.hold is not None
        known = self._of(ask.hold)
        if known is not None:
            known.adjusts = (*known.adjusts, ask)
            self._is_done(ask.hold)

    def _of(self, hold: str) -> Known | None:
        if not self._wants(hold):
            return None
        return self.holds.setdefault(hold, Known(hold))

    def _wants(self, hold: str) -> bool:
        return self._wanted is None or hold in self._wanted

    def _is_done(self, hold: str) -> None:
        """It has its real cost: who looks for those that lack it need not know it any longer."""
        if self._wanted is None:
            del self.holds[hold]

    def _places(self, lines: dict[str, Line], dropped: list[Dropped] | None = None) -> tuple[Place, ...]:
        """Most holds share their places with others, so each is kept once."""
        found = [(budget, line.each, line.period) for budget, line in lines.items()]
        found += [(drop.budget, drop.each, drop.period) for drop in dropped or ()]
        wallet = self.wallet
        places = (
            Place(budget, wallet.generations[budget], each, period, wallet.budget_units[budget])
            for budget, each, period in found
        )
        return tuple(self._shared.setdefault(place, place) for place in places)
