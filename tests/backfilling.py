"""A backfill beside a stream that is in memory: what would be done with rows, and doing it without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from engine.core.messages import AnyAsk, AnyOutcome
from engine.journal import Stored
from projector.backfill.applying import answered_as, batches
from projector.backfill.judging import Finding, judge
from projector.backfill.known import Register
from projector.backfill.rows import Row, Rows
from projector.reading import CopySource
from projector.replay import replay


def register_of(stream: Sequence[Stored], wanted: Sequence[str] | None = None) -> Register:
    register = Register(wanted=wanted)
    asyncio.run(replay(CopySource(stream), register.fold))
    return register


def rows(*said: tuple[str, dict[str, str]] | Row) -> Rows:
    """`("c1", {"usd": "0.25"})`, or a whole row."""
    made = (one if isinstance(one, Row) else Row(line, *one) for line, one in enumerate(said, start=1))
    return Rows(made)


def judged(stream: Sequence[Stored], given: Rows) -> list[Finding]:
    return list(judge(given, register_of(stream, list(given.by_hold))))


def asked(findings: Sequence[Finding]) -> list[list[AnyAsk]]:
    """The messages a backfill sends."""
    return [asks for batch in batches(findings) if (asks := [ask for finding in batch for ask in finding.asks])]


def answered(findings: Sequence[Finding], told: Sequence[AnyOutcome]) -> list[Finding]:
    """The findings as the wallet answered them, from all its outcomes in order."""
    found, left = list[Finding](), list(told)
    for batch in batches(findings):
        count = sum(len(finding.asks) for finding in batch)
        found += answered_as(batch, left[:count])
        left = left[count:]
    return found
