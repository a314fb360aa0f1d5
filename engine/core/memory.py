"""Ids that are remembered for a while. Whole buckets are let go when all in them have aged out.

One big dict rehashes for 270 ms at six million ids; buckets of bounded size never do, and dropping one is a single
step. What is remembered does not depend on the buckets: a record past its `forget_at` is not found, dropped or not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

BUCKET_IDS_MAX = 250_000
BUCKET_S_DEFAULT = 6 * 3600


class Mortal(Protocol):
    """Anything with the moment (ns, stream time) from which it is forgotten."""

    @property
    def forget_at(self) -> int: ...


Record = TypeVar("Record", bound=Mortal)
Portion = TypeVar("Portion")

Row: TypeAlias = tuple[int, str, Any, Any]
"""`forget_at`, id, and where its record is, as its kind of bucket knows it. Rows sort by the first two."""


class Bucket(ABC, Generic[Record]):
    """Records that are let go together."""

    __slots__ = ("first", "last")

    ids: dict[str, Any] | set[str]

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last

    @abstractmethod
    def add(self, id: str, record: Record) -> None:
        """Keep one more; nothing else is kept under its id."""

    @abstractmethod
    def read(self, id: str) -> Record:
        """The record of one of the `ids`."""

    @abstractmethod
    def drop(self, id: str) -> None:
        """Forget one of the `ids`."""

    @abstractmethod
    def rows(self, at: int) -> list[Row]:
        """What is still remembered at `at`."""

    @abstractmethod
    def full(self) -> bool:
        """Whether it takes no more."""


Kept = TypeVar("Kept", bound=Bucket[Any])


class Remembered(ABC, Generic[Kept, Record, Portion]):
    """Records by id, found until their `forget_at`. How buckets keep and portions dump them is up to a subclass."""

    __slots__ = ("_bucket_ns", "_buckets")

    def __init__(self, *, bucket_s: int = BUCKET_S_DEFAULT) -> None:
        self._bucket_ns = bucket_s * 1_000_000_000
        self._buckets: list[Kept] = []

    def __bool__(self) -> bool:
        """Whether anything may be remembered at all."""
        return bool(self._buckets)

    def get(self, id: str, at: int) -> Record | None:
        for bucket in reversed(self._buckets):
            if id in bucket.ids:
                record: Record = bucket.read(id)
                return record if at < record.forget_at else None
        return None

    def put(self, id: str, record: Record) -> None:
        """Remember `record`, in place of an earlier one under this id."""
        for bucket in self._buckets:
            if id in bucket.ids:
                bucket.drop(id)
        self.add(id, record)

    def add(self, id: str, record: Record) -> None:
        """Remember a record under an id that is not remembered: nothing needs to be looked for, which takes long."""
        forget_at = record.forget_at
        buckets = self._buckets
        bucket = buckets[-1] if buckets else None
        if bucket is None or bucket.full() or forget_at - bucket.first >= self._bucket_ns:
            bucket = self._next_bucket(forget_at)
        bucket.add(id, record)
        if forget_at > bucket.last:
            bucket.last = forget_at

    def pop(self, id: str) -> None:
        for bucket in self._buckets:
            if id in bucket.ids:
                bucket.drop(id)

    def let_go(self, at: int) -> None:
        """Free the buckets in which nothing is remembered any more."""
        if self._buckets and self._buckets[0].last <= at:
            self._buckets = [bucket for bucket in self._buckets if bucket.last > at]

    def items(self, at: int) -> Iterator[tuple[str, Record]]:
        """What is still remembered at `at`."""
        for bucket in self._buckets:
            for _, id, _, _ in bucket.rows(at):
                yield id, bucket.read(id)

    def dump(self, at: int) -> list[Portion]:
        """What is remembered at `at`, in an order and in portions that depend on nothing else."""
        rows = [row for bucket in self._buckets for row in bucket.rows(at)]
        rows.sort()
        portions: list[Portion] = []
        start = 0
        while start < len(rows):
            most = min(start + BUCKET_IDS_MAX, len(rows))
            end = bisect_left(rows, rows[start][0] + self._bucket_ns, start, most, key=itemgetter(0))
            portions.append(self._portion(rows[start:end]))
            start = end
        return portions

    def load(self, portions: Iterable[Portion]) -> None:
        """Remember what was dumped and nothing else. Portions are taken over as they are: copying costs seconds."""
        self._buckets = [self._bucket_of(portion) for portion in portions if portion]

    @abstractmethod
    def _portion(self, rows: list[Row]) -> Portion:
        """As it is dumped."""

    @abstractmethod
    def _bucket_of(self, portion: Portion) -> Kept:
        """The way back from `_portion`."""

    @abstractmethod
    def _new(self, forget_at: int) -> Kept:
        """An empty bucket."""

    def _next_bucket(self, forget_at: int) -> Kept:
        self._buckets = [bucket for bucket in self._buckets if bucket.ids]
        self._buckets.append(self._new(forget_at))
        return self._buckets[-1]


class _Plain(Bucket[Record]):
    """The records themselves."""

    __slots__ = ("ids",)

    def __init__(self, first: int, last: int, ids: dict[str, Record]) -> None:
        super().__init__(first, last)
        self.ids: dict[str, Record] = ids

    def add(self, id: str, record: Record) -> None:
        self.ids[id] = record

    def read(self, id: str) -> Record:
        return self.ids[id]

    def drop(self, id: str) -> None:
        del self.ids[id]

    def rows(self, at: int) -> list[Row]:
        return [(record.forget_at, id, record, None) for id, record in self.ids.items() if at < record.forget_at]

    def full(self) -> bool:
        return len(self.ids) >= BUCKET_IDS_MAX


class Memory(Remembered[_Plain[Record], Record, dict[str, Record]]):
    """Records that are kept and dumped as they are."""

    __slots__ = ()

    def _portion(self, rows: list[Row]) -> dict[str, Record]:
        return {id: record for _, id, record, _ in rows}

    def _bucket_of(self, portion: dict[str, Record]) -> _Plain[Record]:
        records = portion.values()
        return _Plain(next(iter(records)).forget_at, next(reversed(records)).forget_at, portion)

    def _new(self, forget_at: int) -> _Plain[Record]:
        return _Plain(forget_at, forget_at, {})
