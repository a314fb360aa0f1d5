"""Calls that an edge left a memo with: what it said and what became of them, for as long as the wallet remembers them.

Folded from the same entries as everything else here. What a memo says is the edge's own matter; nobody here reads one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import msgspec

from engine.core.documents import Noted, NotedPage
from engine.core.messages import AnyAsk, AnyOutcome, Entry, Held, Hold, Lapsed, Renew, Settle, Settled, Stray
from engine.core.wallet import NS

PAGE_MAX = 200  # calls in one answer: with memos of 8 KB each it stays far under the broker's 8 MB
NOTED_MAX = 500_000  # at 1.5 KB each; beyond it those that ended first are forgotten before the wallet forgets them
RENEWALS_MAX = 1_024  # memos of renewals that are kept of one call; the edge asks for no more


class AllNoted(msgspec.Struct, frozen=True):
    """As it is kept in a snapshot. `number`: of the newest that ever was."""

    number: int
    noted: list[Noted]


class Memos:
    """All that is noted, by id and by namespace."""

    def __init__(self, known: AllNoted | None = None) -> None:
        self.by_id: dict[str, Noted] = {}
        self._named: dict[str, _Numbered] = {}
        self._number = known.number if known is not None else 0
        self._ends: list[tuple[int, str]] = []
        for one in known.noted if known is not None else ():
            self._put(one)
        heapify(self._ends)

    def fold(self, asks: Sequence[AnyAsk] | None, entry: Entry, *, remember_s: int) -> None:
        """Take one told entry in, under the plan that is in force behind it."""
        forget_at = entry.at + remember_s * NS
        self._let_go(entry.at)
        for lapsed in entry.lapsed:
            self._lapse(lapsed, entry.at, forget_at)
        for ask, outcome in zip(asks or (), entry.out, strict=False):
            self._take(ask, outcome, entry, forget_at)

    def get(self, id: str) -> Noted | None:
        return self.by_id.get(id)

    def page(self, asked: NotedPage) -> list[Noted]:
        """At most `PAGE_MAX`."""
        numbered = self._named.get(asked.namespace)
        if numbered is None:
            return []
        return [self.by_id[id] for id in numbered.page(asked.beyond, newest=asked.newest)]

    def dump(self) -> AllNoted:
        return AllNoted(self._number, sorted(self.by_id.values(), key=lambda noted: noted.number))

    def _take(self, ask: AnyAsk, outcome: AnyOutcome, entry: Entry, forget_at: int) -> None:
        match ask, outcome:
            case Hold(), Held() if ask.memo:
                self._drop(ask.id)
                self._put(Noted(
                    ask.id, self._next(), ask.memo, ask.labels, entry.seq, outcome.at, "open", outcome.amounts,
                    expires_at=outcome.expires_at,
                ))  # fmt: skip
            case Renew(), Held() if (noted := self.by_id.get(ask.hold)) is not None:
                noted.amounts, noted.expires_at, noted.renewals = outcome.amounts, outcome.expires_at, outcome.n
                if ask.memo and len(noted.renewed) < RENEWALS_MAX:
                    noted.renewed.append(ask.memo)
            case Settle(), Settled() if (noted := self.by_id.get(ask.hold)) is not None:
                self._settled(noted, ask, outcome, entry, forget_at)
            case Settle(), Stray() if ask.memo:
                self._note_settle(ask, ask.id or outcome.id, outcome, entry, forget_at)
            case _:
                pass

    def _settled(self, noted: Noted, ask: Settle, outcome: Settled, entry: Entry, forget_at: int) -> None:
        noted.state, noted.charged = outcome.state, outcome.charged
        if outcome.state == "open":
            return
        noted.ended_at, noted.ended, noted.released = entry.at, ask.memo, ask.release
        self._forget(noted, forget_at)
        if ask.id and ask.memo:
            self._note_settle(ask, ask.id, outcome, entry, forget_at)

    def _note_settle(self, ask: Settle, id: str, outcome: Settled | Stray, entry: Entry, forget_at: int) -> None:
        """A settle with a memo that has an id of its own, or settles what nobody held."""
        self._drop(id)
        hold = ask.hold if ask.hold != id else ""
        noted = Noted(
            id, self._next(), ask.memo, ask.labels, entry.seq, entry.at, outcome.state, charged=outcome.charged,
            ended_at=entry.at, hold=hold,
        )  # fmt: skip
        self._put(noted)
        self._forget(noted, forget_at)

    def _lapse(self, lapsed: Lapsed, at: int, forget_at: int) -> None:
        noted = self.by_id.get(lapsed.hold)
        if noted is not None:
            noted.state, noted.charged, noted.ended_at = "lapsed", lapsed.charged, at
            self._forget(noted, forget_at)

    # --- keeping ------------------------------------------------------------------------------------------------------

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _put(self, noted: Noted) -> None:
        self.by_id[noted.id] = noted
        self._named.setdefault(_namespace(noted.id), _Numbered()).add(noted.number, noted.id)
        if noted.forget_at:
            self._ends.append((noted.forget_at, noted.id))

    def _forget(self, noted: Noted, forget_at: int) -> None:
        noted.forget_at = forget_at
        heappush(self._ends, (forget_at, noted.id))

    def _let_go(self, at: int) -> None:
        ends = self._ends
        while ends and (ends[0][0] <= at or len(self.by_id) > NOTED_MAX):
            forget_at, id = heappop(ends)
            noted = self.by_id.get(id)
            if noted is not None and noted.forget_at == forget_at:  # it was not corrected since
                self._drop(id)

    def _drop(self, id: str) -> None:
        noted = self.by_id.pop(id, None)
        if noted is not None:
            namespace = _namespace(id)
            numbered = self._named[namespace]
            numbered.drop(noted.number)
            if not numbered.ids:
                del self._named[namespace]


class _Numbered:
    """The ids of one namespace by number. Numbers only rise, so they stay sorted; dropped ones go by and by."""

    def __init__(self) -> None:
        self.ids: dict[int, str] = {}
        self._numbers: list[int] = []

    def add(self, number: int, id: str) -> None:
        self.ids[number] = id
        self._numbers.append(number)

    def drop(self, number: int) -> None:
        del self.ids[number]
        if len(self._numbers) > 2 * len(self.ids) + PAGE_MAX:
            self._numbers = list(self.ids)

    def page(self, beyond: int, *, newest: bool) -> list[str]:
        numbers, found = self._numbers, list[str]()
        if newest:
            places = range(bisect_left(numbers, beyond) - 1 if beyond else len(numbers) - 1, -1, -1)
        else:
            places = range(bisect_right(numbers, beyond), len(numbers))
        for place in places:
            id = self.ids.get(numbers[place])
            if id is not None:
                found.append(id)
                if len(found) == PAGE_MAX:
                    break
        return found


def _namespace(id: str) -> str:
    return id.rpartition("/")[0]
