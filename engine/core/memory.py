"""Ids that are remembered for a while. Whole buckets are let go when all in them have aged out.

One big dict rehashes for 270 ms at six million ids; buckets of bounded size never do, and dropping one is a single
step. What is remembered does not depend on the buckets: a record past its `forget_at` is not found, dropped or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

BUCKET_IDS_MAX = 250_000
BUCKET_S_DEFAULT = 6 * 3600


class Mortal(Protocol):
    """Anything with the moment (ns, stream time) from which it is forgotten."""

    @property
    def forget_at(self) -> int: ...


Record = TypeVar("Record", bound=Mortal)


class _Bucket(Generic[Record]):
    __slots__ = ("first", "last", "records")

    def __init__(self, forget_at: int) -> None:
        self.records: dict[str, Record] = {}
        self.first = self.last = forget_at


class Memory(Generic[Record]):
    """Records by id, found until their `forget_at`."""

    __slots__ = ("_bucket_ns", "_buckets")

    def __init__(self, *, bucket_s: int = BUCKET_S_DEFAULT) -> None:
        self._bucket_ns = bucket_s * 1_000_000_000
        self._buckets: list[_Bucket[Record]] = []

    def __bool__(self) -> bool:
        """Whether anything may be remembered at all."""
        return bool(self._buckets)

    def get(self, id: str, at: int) -> Record | None:
        for bucket in reversed(self._buckets):
            record = bucket.records.get(id)
            if record is not None:
                return record if at < record.forget_at else None
        return None

    def put(self, id: str, record: Record) -> None:
        """Remember `record`, in place of an earlier one under this id."""
        self.pop(id)
        bucket = self._bucket(record.forget_at)
        bucket.records[id] = record
        bucket.last = max(bucket.last, record.forget_at)

    def pop(self, id: str) -> None:
        for bucket in self._buckets:
            bucket.records.pop(id, None)

    def let_go(self, at: int) -> None:
        """Free the buckets in which nothing is remembered any more."""
        if self._buckets and self._buckets[0].last <= at:
            self._buckets = [bucket for bucket in self._buckets if bucket.last > at]

    def items(self, at: int) -> Iterator[tuple[str, Record]]:
        """What is still remembered at `at`."""
        for bucket in self._buckets:
            for id, record in bucket.records.items():
                if at < record.forget_at:
                    yield id, record

    def dump(self, at: int) -> list[dict[str, Record]]:
        """What is remembered at `at`, in an order and in portions that depend on nothing else."""
        portions: list[dict[str, Record]] = []
        first = 0
        for id, record in sorted(self.items(at), key=_by_forgetting):
            forget_at = record.forget_at
            if not portions or len(portions[-1]) == BUCKET_IDS_MAX or forget_at - first >= self._bucket_ns:
                portions.append({})
                first = forget_at
            portions[-1][id] = record
        return portions

    def load(self, portions: Iterable[dict[str, Record]]) -> None:
        """Remember what was dumped and nothing else. The dicts are taken over as they are: copying costs seconds."""
        self._buckets = [_bucket_of(records) for records in portions if records]

    def _bucket(self, forget_at: int) -> _Bucket[Record]:
        if self._buckets:
            newest = self._buckets[-1]
            if len(newest.records) < BUCKET_IDS_MAX and forget_at - newest.first < self._bucket_ns:
                return newest
        self._buckets.append(_Bucket(forget_at))
        return self._buckets[-1]


def _by_forgetting(item: tuple[str, Mortal]) -> tuple[int, str]:
    return (item[1].forget_at, item[0])


def _bucket_of(records: dict[str, Record]) -> _Bucket[Record]:
    """A bucket of these, the first to be forgotten first."""
    bucket = _Bucket[Record](next(iter(records.values())).forget_at)
    bucket.records, bucket.last = records, next(reversed(records.values())).forget_at
    return bucket
