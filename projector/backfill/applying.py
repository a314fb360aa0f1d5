"""Findings into the wallet: settles and adjusts in batches, each row's own together, in order.

Every ask follows from its row alone, so whoever was killed on the way runs it again: what has landed is told `again` or
is found on the record. Nothing is sent for rows that are in conflict or cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from engine.client import Purse
from engine.core.messages import Adjusted, Again, AnyOutcome, Conflict, Forgotten, Invalid, Settled, Stray
from projector.backfill.judging import TO_DO, Class, Finding

BATCH_ASKS, BATCH_BYTES = 128, 256 * 1024
"""Of one message, past which no further row goes with it. A single row has at most a few dozen KB."""

WAIT_S = 30.0


async def apply(
    purse: Purse, findings: Sequence[Finding], *, progress: Callable[[int, int], None] | None = None
) -> list[Finding]:
    """Each finding as the wallet answered it. Raises `NoAnswer` or `StreamRefused`: then it is to be run again."""
    applied: list[Finding] = []
    for batch in batches(findings):
        asks = [ask for finding in batch for ask in finding.asks]
        told = [answered.outcome for answered in await purse.ask_all(asks, wait_s=WAIT_S)] if asks else []
        applied += answered_as(batch, told)
        if progress is not None:
            progress(len(applied), len(findings))
    return applied


def batches(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Rows that go in one message. Adjusts are an operator's asks and go by themselves."""
    batch = _Batch()
    for finding in findings:
        if not batch.takes(finding):
            yield batch.findings
            batch = _Batch()
        batch.add(finding)
    if batch.findings:
        yield batch.findings


class _Batch:
    """Findings whose asks share a message. Those without any go along."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._asks = self._bytes = 0
        self._operators = False

    def takes(self, finding: Finding) -> bool:
        if len(self.findings) >= BATCH_ASKS or self._asks >= BATCH_ASKS or self._bytes >= BATCH_BYTES:
            return False
        return not (finding.asks and self._asks) or self._operators == _is_operators(finding)

    def add(self, finding: Finding) -> None:
        self.findings.append(finding)
        if finding.asks:
            self._asks += len(finding.asks)
            self._bytes += len(msgspec.json.encode(finding.asks))
            self._operators = _is_operators(finding)


def _is_operators(finding: Finding) -> bool:
    return finding.found == "beyond"


def answered_as(batch: Sequence[Finding], told: Sequence[AnyOutcome]) -> Iterator[Finding]:
    """The findings with what the wallet said of them in place of what was expected."""
    place = 0
    for finding in batch:
        outcomes = told[place : place + len(finding.asks)]
        place += len(finding.asks)
        yield _answered(finding, outcomes) if outcomes else finding


def _answered(finding: Finding, outcomes: Sequence[AnyOutcome]) -> Finding:
    """The worst of several: adjusts of one row stand each for one budget."""
    said = [_class_of(finding, outcome) for outcome in outcomes]
    found, why = max(said, key=lambda one: _GRAVITY.index(one[0]))
    return msgspec.structs.replace(finding, found=found, why=why or finding.why)


_GRAVITY: tuple[Class, ...] = ("there", *TO_DO, "conflict", "refused")


def _class_of(finding: Finding, outcome: AnyOutcome) -> tuple[Class, str]:
    match outcome:
        case Settled() | Stray() | Adjusted():
            return finding.found, ""
        case Again():
            return "there", ""
        case Conflict():
            return "conflict", "the wallet has another exact cost by now"
        case Forgotten():
            return "refused", "the wallet has forgotten it since: run this again"
        case Invalid(field=field, why=why):
            return "refused", f"{field}: {why}"
        case other:
            raise AssertionError(f"{type(other).__name__} is no answer to a backfill")
