"""Whether a decision takes longer by how much a wallet knows: ids it remembers, and meters of users.

Run by itself (`python -m bench.growth`) it prints its figures as JSON; `python -m bench` runs it as a child. Wallets of
all sizes are told one message each in turn, so that a noisy second hits all of them; medians of their CPU times, and of
the ratios of five rounds.
"""

from __future__ import annotations

import gc
import statistics
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from bench.contender import COST
from bench.core import ASKS, NS, Figure, Teller, cpu_s, hold_and_settle
from engine.core.closed import ClosedRecord

IDS: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000)
METERS: Sequence[int] = (10, 100, 1_000, 10_000, 100_000)
QUICK_MAX = 10_000
ROUNDS = 5  # of which the median is told
TURNS = 60  # of every wallet in a round


def ids_name(count: int) -> str:
    """The row that says how long a hold takes with so many ids remembered."""
    return f"growth: a hold with {count:,} ids remembered"


def meters_name(count: int) -> str:
    """The row that says how long a hold takes with so many users' meters."""
    return f"growth: a hold with {count:,} meters"


def kept_name(count: int) -> str:
    """The row that says what a wallet keeps when each of so many users has held and settled, 100 times at least."""
    return f"growth: memory of {count:,} users"


def figures(*, quick: bool) -> Iterator[Figure]:
    """One after the other, as they are measured."""
    gc.disable()  # as the engine does
    ids, meters = ([count for count in counts if not quick or count <= QUICK_MAX] for counts in (IDS, METERS))
    yield from _said({count: _remembering(count) for count in ids}, dict.fromkeys(ids, 1_000), ids_name)
    crowds = {count: _metering(count, holds=max(meters)) for count in meters}
    yield from _said(crowds, {count: count for count in meters}, meters_name)
    del crowds
    for count in meters:
        yield Figure(kept_name(count), _kept(count) / 1e6, "MB")


def _remembering(count: int) -> Teller:
    teller = Teller()
    for number in range(count):  # straight into the memory: by holds and settles it would take a minute
        record = ClosedRecord("settled", {"usd": COST}, 1, teller.ts + 3_600 * NS + number)
        teller.wallet.closed.put(f"r-{number:024d}", record)
    return teller


def _metering(users: int, *, holds: int) -> Teller:
    """As many open holds in every wallet: only meters differ."""
    teller = Teller()
    for _ in range(holds // ASKS):
        teller.tell(teller.holds(users=users))
    return teller


def _turns(tellers: Mapping[int, Teller], users: Mapping[int, int]) -> dict[int, float]:
    """Microseconds a hold, by size. The first to go changes from turn to turn: whoever follows finds a warm cache."""
    took: dict[int, list[float]] = {size: [] for size in tellers}
    sizes = list(tellers)
    for turn in range(TURNS):
        first = turn % len(sizes)
        for size in [*sizes[first:], *sizes[:first]]:
            teller = tellers[size]
            asks = teller.holds(users=users[size])
            took[size].append(cpu_s(lambda teller=teller, asks=asks: teller.tell(asks)))  # type: ignore[misc]  # defaults bind the loop
    return {size: 1e6 * statistics.median(times) / ASKS for size, times in took.items()}


def _said(tellers: Mapping[int, Teller], users: Mapping[int, int], name_of: Callable[[int], str]) -> Iterator[Figure]:
    rounds = [_turns(tellers, users) for _ in range(ROUNDS)]
    for size in tellers:
        yield Figure(name_of(size), statistics.median(took[size] for took in rounds), "us")
    few, many = min(tellers), max(tellers)
    ratio = statistics.median(took[many] / took[few] for took in rounds)
    yield Figure(f"{name_of(many)} / {few:,}", ratio, "x")


def _kept(users: int) -> float:
    """Bytes."""
    tracemalloc.start()
    try:
        teller = Teller()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(max(1, users // ASKS)):
            hold_and_settle(teller, users=users)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    for figure in figures(quick="--quick" in sys.argv):
        print(msgspec.json.encode(figure).decode(), flush=True)
