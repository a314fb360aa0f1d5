"""What is wanted of the figures, in one place, and whether it was reached: the first table of `python -m bench`.

Nothing is measured here. A target is about one row of a run. What is compared with a peer is compared with the peer's
row of the same run; where either is missing, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from bench.rows import Row

OURS = "Common Purse"
REDIS = "Redis"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """`row` comes to at least `least` or to at most `most`: in its own `unit`, or times the row `of` a peer."""

    what: str
    row: str
    least: float | None = None
    most: float | None = None
    unit: str = ""
    of: str | None = None
    stretch: float | None = None
    remark: str = ""

    def reached(self, value: float, *, stretch: bool = False) -> bool:
        """Whether `value`, in what the target counts, is good enough."""
        if self.least is not None:
            return value >= (self.stretch if stretch and self.stretch is not None else self.least)
        assert self.most is not None, self
        return value <= (self.stretch if stretch and self.stretch is not None else self.most)

    @property
    def wanted(self) -> float:
        wanted = self.least if self.least is not None else self.most
        assert wanted is not None, self
        return wanted


def _redis(what: str, shape: str, times: float, *, stretch: float | None = None) -> Target:
    """Decisions a second over those of the usual Redis, whose every write is synced."""
    row = f"{shape}: decisions"
    return Target(what=what, row=f"{OURS}, {row}", least=times, of=f"{REDIS}, {row}", stretch=stretch)


_BATCHES = f"{OURS}, batches, 4 x 1,024: decisions"
_TIGERBEETLE = "TigerBeetle, batches, 4 x 4,094: decisions"
_PROXY_64 = "proxy, 64 callers, an answer after 0 ms"

TABLE: Sequence[Target] = (
    Target(
        what="1 caller, hold, p50", row=f"{OURS}, 1 caller: p50", most=4, of=f"{REDIS}, 1 caller: p50",
        remark="two synced appends in turn, the ask's and the told's",
    ),
    _redis("64 callers, one ask each, one process", "64 callers", 1.3, stretch=2),
    _redis("256 callers", "256 callers", 3, stretch=5),
    Target(what="1,024 callers", row=f"{OURS}, 1,024 callers: decisions", least=100_000, unit="1/s"),
    Target(what="1,024 callers, p99", row=f"{OURS}, 1,024 callers: p99", most=20, unit="ms"),
    Target(what="1,024-ask batches", row=_BATCHES, least=165_000, unit="1/s", stretch=250_000),
    Target(what="the same, over TigerBeetle's Python client", row=_BATCHES, least=1, of=_TIGERBEETLE,
           remark="its largest message: 8,189 transfers, two a hold"),
    _redis("hold + settle pairs, 256 callers", "256 callers, hold + settle", 3),
    Target(what="a decision with 1,000,000 ids remembered / 1,000",
           row="growth: a hold with 1,000,000 ids remembered / 1,000", most=1.15, unit="x"),
    Target(what="a decision with 100,000 users' meters / 10", row="growth: a hold with 100,000 meters / 10", most=1.15,
           unit="x"),
    Target(what="replay from zero", row="restart: replay of 1,000,000 asks from zero", least=250_000, unit="1/s"),
    Target(what="replay, most memory / memory when ready", row="restart: memory at its most / when ready", most=1.1,
           unit="x", remark="it keeps what it must remember, and no more on the way"),
    Target(what="start with a snapshot, 1,000,000 asks a day",
           row="restart: ready with a snapshot after 1,000,000 asks", most=2, unit="s"),
    Target(what="bytes an open hold", row="bytes an open hold", most=900, unit="bytes"),
    Target(what="bytes a remembered id", row="bytes a remembered id", most=260, unit="bytes"),
    Target(what="HTTP hold, 1 caller, p50", row="HTTP, 1 caller: Common Purse: p50", most=1.6,
           of="HTTP, 1 caller: bare aiohttp handler: p50"),
    Target(what="HTTP hold, 64 callers", row="HTTP, 64 callers: Common Purse: decisions", least=4_000, unit="1/s"),
    Target(what="proxy, 1 caller, p50 added", row="proxy, 1 caller, an answer after 20 ms: Common Purse: added p50",
           most=2.5, unit="ms", remark="LiteLLM's: 12 ms"),
    Target(what="proxy, 64 callers", row=f"{_PROXY_64}: Common Purse: calls", least=1_000, unit="1/s",
           stretch=2_000),
    Target(what="the same, over LiteLLM with two workers", row=f"{_PROXY_64}: Common Purse: calls", least=5,
           of=f"{_PROXY_64}: LiteLLM, two workers: calls"),
    Target(what="the same, over Portkey's gateway", row=f"{_PROXY_64}: Common Purse: calls", least=1,
           of=f"{_PROXY_64}: Portkey: calls"),
)  # fmt: skip
"""The first table of a run."""

BESIDE: Sequence[Target] = (
    Target(what="a hold with 100,000 users and three guards / 100", row="users: a hold with 100,000 users / 100",
           most=1.5, unit="x"),
    Target(what="bytes a user", row="users: bytes a user", most=2_500, unit="bytes"),
)  # fmt: skip
"""What is wanted besides: said where the figure stands."""


@dataclass(frozen=True)
class Judged:
    """A target and what came of it. `value`: what it is about, in the row's unit or in times the peer's; None where one
    of the two rows is not there. `wanted`: the least or most in the row's own unit."""

    target: Target
    row: Row | None
    peer: Row | None
    value: float | None
    wanted: float | None

    @property
    def met(self) -> bool | None:
        return None if self.value is None else self.target.reached(self.value)

    @property
    def stretched(self) -> bool | None:
        """Whether the stretch was reached; None where there is none, or nothing to judge."""
        if self.value is None or self.target.stretch is None:
            return None
        return self.target.reached(self.value, stretch=True)


def judge(rows: Iterable[Row], targets: Iterable[Target] = TABLE) -> list[Judged]:
    """Every target, in order."""
    named = {row.name: row for row in rows}
    return [_judge(target, named) for target in targets]


def _judge(target: Target, named: Mapping[str, Row]) -> Judged:
    row = named.get(target.row)
    if target.of is None:
        return Judged(target, row, None, None if row is None else row.value, target.wanted)
    peer = named.get(target.of)
    if row is None or peer is None or not peer.value:
        return Judged(target, row, peer, None, None)
    return Judged(target, row, peer, row.value / peer.value, target.wanted * peer.value)


def with_targets(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows, each with the hardest of its targets that can be judged. A peer only a target knows of is named."""
    judged: dict[str, list[Judged]] = {}
    for one in judge(rows, [*TABLE, *BESIDE]):
        if one.row is not None and one.wanted is not None:
            judged.setdefault(one.row.name, []).append(one)
    for row in rows:
        yield _with_target(row, judged[row.name]) if row.name in judged else row


def _with_target(row: Row, judged: Sequence[Judged]) -> Row:
    hardest = max if judged[0].target.least is not None else min
    wanted = hardest(one.wanted for one in judged if one.wanted is not None)
    row = msgspec.structs.replace(row, target=round(wanted, 3), met=all(one.met for one in judged))
    peers = [one.peer for one in judged if one.peer is not None]
    if row.peer is None and peers:
        peer = hardest(peers, key=lambda peer: peer.value)
        return msgspec.structs.replace(row, peer=peer_name(peer.name), ratio=round(row.value / peer.value, 3))
    return row


def peer_name(row: str) -> str:
    """Whose a row is, from its name: `shape: who: what` or `who, shape: what`."""
    *shape, who, _ = row.split(": ")
    return who if shape else who.split(", ")[0]
