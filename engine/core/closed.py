"""Holds that ended exactly: what answers a repeat, for as long as the plan remembers it. By far the most of the state.

So they are not kept as objects but as columns: one place in each of a few arrays is one hold. A bucket that takes more
finds places by a dict. One that was dumped and read back is grown: its ids are sorted and a set says which there are,
since most that are looked for are not there. To make a dict of them took three times as long as all the rest.

Most that are looked for are in no bucket at all, and each look into one is a look at memory that no cache has. So one
table is looked at first: at the place of an id's hash it has a bit for every bucket that may know such an id.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import chain
from operator import itemgetter
from typing import Literal, TypeAlias

import msgspec

from engine.core import memory
from engine.core.memory import Bucket, Remembered, Row
from engine.core.messages import Amounts, HoldState

MARKS = 2**21  # bytes of the table; a full bucket marks one in ten of them, and more would leave the caches

_BETWEEN_IDS = "\n"  # an id of a hold has none


class ClosedRecord(msgspec.Struct, frozen=True, gc=False):
    """A hold that ended exactly. `ended_by`: by a give-up with that deadline, for nothing; the id may be used later."""

    state: HoldState
    charged: Amounts
    changed: int
    forget_at: int
    at_progress: bool = False
    ended_by: int | None = None


Kind: TypeAlias = tuple[HoldState, bool, tuple[str, ...]]
"""What rows have in common: the state, `at_progress`, and the units in the order of `charged`."""


class Columns(msgspec.Struct, frozen=True, gc=False):
    """Rows as they are dumped, in the order of their ids, which are one text, a line each.

    Columns of numbers are their bytes: of `kind` (which of `kinds`) and `money` (where in `charged` a row begins, which
    has as many numbers there as its kind has units) four a number, of the others eight, the lowest first. `ended_by`:
    place -> deadline, of the few rows that have one. `first` and `last` are the bounds of `forget_at`.
    """

    ids: str
    kinds: list[Kind]
    kind: bytes
    changed: bytes
    forget_at: bytes
    money: bytes
    charged: bytes
    ended_by: dict[int, int]
    first: int
    last: int


class _Rows(Bucket[ClosedRecord]):
    """What growing and grown buckets have in common: the columns, and how a row is read. `mark`: its bit."""

    __slots__ = ("changed", "charged", "ended_by", "forget_at", "kind", "kinds", "mark", "money")

    def __init__(self, first: int, last: int, mark: int) -> None:
        super().__init__(first, last)
        self.mark = mark
        self.kinds: list[Kind] = []
        self.kind = array("I")
        self.changed = array("q")
        self.forget_at = array("q")
        self.money = array("I")
        self.charged = array("q")
        self.ended_by: dict[int, int] = {}

    def row(self, place: int) -> ClosedRecord:
        state, at_progress, units = self.kinds[self.kind[place]]
        charged = dict(zip(units, self.amounts(place), strict=True))
        return ClosedRecord(
            state, charged, self.changed[place], self.forget_at[place], at_progress, self.ended_by.get(place)
        )

    def kind_of(self, place: int) -> Kind:
        return self.kinds[self.kind[place]]

    def amounts(self, place: int) -> Iterable[int]:
        money = self.money[place]
        return self.charged[money : money + len(self.kinds[self.kind[place]][2])]


class _Growing(_Rows):
    """Takes more. The row of an id that was dropped stays, unused."""

    __slots__ = ("_marks", "_numbers", "ids")

    def __init__(self, forget_at: int, mark: int, marks: bytearray) -> None:
        super().__init__(forget_at, forget_at, mark)
        self._marks = marks
        self.ids: dict[str, int] = {}  # -> place
        self._numbers: dict[Kind, int] = {}  # -> place in `kinds`

    def add(self, id: str, record: ClosedRecord) -> None:
        charged, place = record.charged, len(self.kind)
        kind: Kind = (record.state, record.at_progress, tuple(charged))
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
        self.kind.append(number)
        self.changed.append(record.changed)
        self.forget_at.append(record.forget_at)
        self.money.append(len(self.charged))
        for amount in charged.values():  # mostly one, and to extend by one takes twice as long
            self.charged.append(amount)
        if record.ended_by is not None:
            self.ended_by[place] = record.ended_by
        self.ids[id] = place
        self._marks[hash(id) % MARKS] |= self.mark

    def read(self, id: str) -> ClosedRecord:
        return self.row(self.ids[id])

    def drop(self, id: str) -> None:
        del self.ids[id]

    def rows(self, at: int) -> list[Row]:
        ends = self.forget_at
        return [(ends[place], id, self, place) for id, place in self.ids.items() if at < ends[place]]

    def full(self) -> bool:
        return len(self.kind) >= memory.BUCKET_IDS_MAX


class _Grown(_Rows):
    """Takes no more, but lets go."""

    __slots__ = ("_sorted", "ids")

    def __init__(self, columns: Columns, mark: int, marks: bytearray) -> None:
        super().__init__(columns.first, columns.last, mark)
        self._sorted = columns.ids.split(_BETWEEN_IDS)
        self.ids: set[str] = set(self._sorted)
        self.kinds = columns.kinds
        self.kind = _numbers("I", columns.kind)
        self.changed = _numbers("q", columns.changed)
        self.forget_at = _numbers("q", columns.forget_at)
        self.money = _numbers("I", columns.money)
        self.charged = _numbers("q", columns.charged)
        self.ended_by = columns.ended_by
        lengths = {len(each) for each in (self._sorted, self.kind, self.changed, self.forget_at, self.money)}
        if len(lengths) > 1:
            raise ValueError("columns of closed holds differ in length")
        if max(self.kind) >= len(self.kinds) or self.money[-1] + len(self.kind_of(-1)[2]) != len(self.charged):
            raise ValueError("closed holds have other amounts than their kinds say")
        places = MARKS
        for number in map(hash, self._sorted):
            marks[number % places] |= mark

    def add(self, id: str, record: ClosedRecord) -> None:
        raise AssertionError("a grown bucket takes no more")

    def read(self, id: str) -> ClosedRecord:
        return self.row(bisect_left(self._sorted, id))

    def drop(self, id: str) -> None:
        self.ids.discard(id)

    def rows(self, at: int) -> list[Row]:
        known, ends = self.ids, self.forget_at
        return [
            (ends[place], id, self, place) for place, id in enumerate(self._sorted) if at < ends[place] and id in known
        ]

    def full(self) -> bool:
        return True


class Closed(Remembered[_Rows, ClosedRecord, Columns]):
    """The closed holds of a wallet by id. `load` raises `ValueError` for what no `dump` has made.

    What the table marks may not be there; what it does not mark is not. Nothing that is found depends on it.
    """

    __slots__ = ("_begun", "_marks")

    def __init__(self) -> None:
        super().__init__()
        self._marks = bytearray(MARKS)
        self._begun = 0  # buckets so far, which take the eight bits in turn

    def get(self, id: str, at: int) -> ClosedRecord | None:
        marks = self._marks[hash(id) % MARKS]
        if marks:
            for bucket in reversed(self._buckets):
                if marks & bucket.mark and id in bucket.ids:
                    record = bucket.read(id)
                    return record if at < record.forget_at else None
        return None

    def reopen(self, id: str) -> None:
        """Forget this id: its hold is open. Only a hold that was given up for nothing can be held again."""
        if self._marks[hash(id) % MARKS]:
            for bucket in self._buckets:
                if bucket.ended_by and id in bucket.ids:
                    bucket.drop(id)

    def _portion(self, rows: list[Row]) -> Columns:
        first, last = rows[0][0], rows[-1][0]
        rows.sort(key=itemgetter(1))
        places: list[tuple[_Rows, int]] = [(bucket, place) for _, _, bucket, place in rows]
        kinds = [bucket.kind_of(place) for bucket, place in places]
        numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
        charged = [bucket.amounts(place) for bucket, place in places]
        begins, money = 0, []
        for _, _, units in kinds:
            money.append(begins)
            begins += len(units)
        return Columns(
            ids=_BETWEEN_IDS.join([row[1] for row in rows]),
            kinds=list(numbers),
            kind=_bytes("I", [numbers[kind] for kind in kinds]),
            changed=_bytes("q", [bucket.changed[place] for bucket, place in places]),
            forget_at=_bytes("q", [row[0] for row in rows]),
            money=_bytes("I", money),
            charged=_bytes("q", chain.from_iterable(charged)),
            ended_by={
                number: bucket.ended_by[place]
                for number, (bucket, place) in enumerate(places)
                if place in bucket.ended_by
            },
            first=first,
            last=last,
        )

    def _bucket_of(self, portion: Columns) -> _Rows:
        return _Grown(portion, self._next_mark(), self._marks)

    def _new(self, forget_at: int) -> _Rows:
        mark = self._next_mark()
        if not any(bucket.mark == mark for bucket in self._buckets):  # those it marked are gone
            self._marks[:] = self._marks.translate(bytes(marks & ~mark for marks in range(256)))
        return _Growing(forget_at, mark, self._marks)

    def _next_mark(self) -> int:
        self._begun += 1
        return 1 << self._begun % 8


def _bytes(code: Literal["I", "q"], numbers: Iterable[int]) -> bytes:
    column = array(code, numbers)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _numbers(code: Literal["I", "q"], column: bytes) -> array[int]:
    numbers = array(code)
    numbers.frombytes(column)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
