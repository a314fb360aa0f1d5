"""`python -m projector.audit.apart`: the first path in a process of its own, beside the one that reads the outcomes.

It decides every ask again and compares bytes: what it decides, written as the engine writes it, with what lies in the
told. Where these are the same nothing else needs to be read. The chain is proved by the other process, on the same
messages. What to read comes on standard input, so that no address with a password stands among the arguments.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import structlog

from engine.core.messages import Entry
from engine.core.wallet import Wallet
from engine.errors import PurseError, Untrusted
from engine.journal import Journal, Stored
from engine.losses import KnownLosses
from engine.recorded import Recorded
from projector.audit.child import child
from projector.audit.deciding import Deciding
from projector.audit.kept import Laying
from projector.audit.report import Verdict
from projector.export.raw_source import RawSource
from projector.reading import Source, StreamSource
from projector.replay import Answered, BrokenRecord, Replay

_encoder = msgspec.json.Encoder()


class Task(msgspec.Struct, frozen=True):
    """What to read: the wallet's stream at `url`, or the raw export `record`; and up to which sequence.

    `keep`: the folder to lay snapshots in, of the moments from `start` until `end`; none without it.
    """

    wallet: str
    upto: int
    url: str = ""
    record: str = ""
    keep: str = ""
    start: int = 0
    end: int = 0

    def laying(self) -> Laying | None:
        return Laying(Path(self.keep), start=self.start, end=self.end) if self.keep else None


@asynccontextmanager
async def source_of(task: Task) -> AsyncIterator[Source]:
    if task.record:
        yield RawSource(Path(task.record))
        return
    async with Journal.connect(task.url, wallet=task.wallet, name="purse-audit-deciding") as journal:
        yield StreamSource(journal)


class DecidingReplay(Replay):
    """A replay that decides again instead of handing on, and leaves the chain to another."""

    def __init__(self, wallet: str, *, losses: KnownLosses, laying: Laying | None = None) -> None:
        super().__init__(losses=losses)
        self.deciding = Deciding(Wallet(wallet))
        self._laying = laying

    def verdict(self) -> Verdict:
        return verdict_of(self.deciding)

    def _told(self, stored: Stored) -> list[Answered]:
        try:
            recorded, entries = Recorded.read_head(stored)
        except Untrusted as error:
            raise BrokenRecord(str(error), seq=stored.seq) from error
        covered = self._covered(stored.seq, recorded.told.n)
        mine = []
        for one in covered:
            skipped = self._clocks.skips(one.stored.seq, one.stored.ts)
            entry = self.deciding.decide(one.stored.seq, one.stored.ts, one.asks, skipped=skipped)
            self.upto = entry.seq
            mine.append(entry)
        written = [_encoder.encode(entry) for entry in mine]
        if not entries or b",".join(written) != entries:
            self._compare_each(mine, written, Recorded.read(stored))
        self.told = stored.seq
        if self._laying is not None:
            self._laying.see(self.deciding.wallet, asks=self.deciding.asks, told=recorded.seq, chain=recorded.chain)
        return []

    def _compare_each(self, mine: list[Entry], written: list[bytes], recorded: Recorded) -> None:
        if len(recorded.told.told) != len(mine):
            raise BrokenRecord(
                f"the told at sequence {recorded.seq:,} does not cover the asks before it", seq=recorded.seq
            )
        for entry, decided, said in zip(mine, written, recorded.told.told, strict=True):
            if entry != said and decided != _encoder.encode(said):
                self.deciding.differ(entry, said, recorded.seq, _encoder.encode(said), decided)


def verdict_of(deciding: Deciding) -> Verdict:
    totals = [(*key, *figures) for key, figures in deciding.totals().items()]
    return Verdict(
        redecided=True,
        difference=deciding.difference,
        differences=deciding.differences,
        asks=deciding.asks,
        totals=totals,
        impossible=deciding.impossible(),
    )


@asynccontextmanager
async def deciding_apart(task: Task) -> AsyncIterator[asyncio.Task[Verdict]]:
    """Begin to decide in a process of its own; await the task for its verdict. The process ends with the block."""
    async with child("projector.audit.apart") as process:
        await _ask(process, task)
        waiting = asyncio.create_task(_verdict(process))
        try:
            yield waiting
        finally:
            waiting.cancel()
            await asyncio.wait([waiting])


class _Said(msgspec.Struct, frozen=True):
    """What the process has found, or why it could not."""

    verdict: Verdict | None = None
    broken: str = ""
    seq: int = 0
    error: str = ""


async def _ask(process: asyncio.subprocess.Process, task: Task) -> None:
    """Returns when all is said: whoever reads a file next lets nothing else run here, and both should work at once."""
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it has ended; its verdict says so
        process.stdin.write(_encoder.encode(task))
        await process.stdin.drain()
        process.stdin.close()
        await process.stdin.wait_closed()


async def _verdict(process: asyncio.subprocess.Process) -> Verdict:
    out, _ = await process.communicate()
    try:
        said = msgspec.json.decode(out, type=_Said)
    except msgspec.DecodeError as error:
        raise PurseError(f"the process that decides again ended with {process.returncode} and said nothing") from error
    if said.broken:
        raise BrokenRecord(said.broken, seq=said.seq)
    if said.verdict is None:
        raise PurseError(said.error)
    return said.verdict


async def _decide(task: Task) -> _Said:
    try:
        async with source_of(task) as source:
            replay = DecidingReplay(task.wallet, losses=source.losses, laying=task.laying())

            def take(stored: Stored) -> None:
                replay.take(stored)

            if task.upto:
                await source.read(take, after=0, upto=task.upto)
            return _Said(verdict=replay.verdict())
    except BrokenRecord as broken:
        return _Said(broken=str(broken), seq=broken.seq)
    except (PurseError, OSError) as error:
        return _Said(error=str(error))


def main() -> None:
    """Read the task, write the verdict."""
    structlog.configure(  # standard output is for the verdict alone
        wrapper_class=structlog.make_filtering_bound_logger("error"),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    gc.disable()  # what it makes has no cycles, and looking for them takes a tenth of the time
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    sys.stdout.buffer.write(_encoder.encode(asyncio.run(_decide(task))))


if __name__ == "__main__":
    main()
