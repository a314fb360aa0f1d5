"""The spool: what a client was handed, must not lose and could not put on the stream yet, safe on this machine's disk.

    keep(asks) ─> Slip "waiting" ─> one write and sync for all that wait ─> "kept" ─> strike(slip): it is on the stream

One file a client, in the wallet's folder. A file whose process died is adopted by whoever opens the folder next. Asks
only: no key, address or credential ever stands in it. It sends nothing and decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import structlog

from engine.errors import Misconfigured
from engine.spool_file import AROUND, SUFFIX, SpoolFile

State = Literal["waiting", "kept", "failed"]

log = structlog.get_logger()


class Slip:
    """Asks that were handed to the spool, as JSON without brackets. "failed": `why` says what must be done."""

    __slots__ = ("asks", "count", "file", "n", "state", "struck", "why")

    def __init__(self, asks: bytes, count: int) -> None:
        self.asks, self.count = asks, count
        self.state: State = "waiting"
        self.struck = False
        self.why = ""
        self.file: SpoolFile | None = None
        self.n = 0


class Spool:
    """The spool of one client. `adopted`: what those left behind whose process died."""

    def __init__(self, own: SpoolFile, orphans: list[SpoolFile]) -> None:
        self._own, self._orphans = own, orphans
        self._waiting: list[Slip] = []
        self._struck: list[Slip] = []
        self._work = asyncio.Event()
        self._one_round = asyncio.Lock()
        self._failing = self._stopped = False
        self.adopted = [_adopted(file, n) for file in orphans for n in file.kept]

    @classmethod
    @asynccontextmanager
    async def opened(cls, folder: Path) -> AsyncIterator[Spool]:
        """Open the spool in `folder` for as long as the block runs. Raises `Misconfigured` if nothing can be kept."""
        try:
            own, orphans = await asyncio.to_thread(_open, folder)
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise Misconfigured(
                f"settlements cannot be kept in {folder}: {why}; PURSE_DATA chooses the folder"
            ) from error
        spool = cls(own, orphans)
        writing = asyncio.create_task(spool._write_rounds())
        try:
            yield spool
        finally:
            await spool.flush()
            writing.cancel()
            await asyncio.to_thread(spool._close)

    @property
    def depth(self) -> int:
        """Asks that are kept and, as far as is known, not on the stream."""
        return self._own.count + sum(file.count for file in self._orphans)

    def keep(self, asks: bytes, count: int) -> Slip:
        """Begin to keep a list of asks. They are safe once the slip says "kept", and not before."""
        slip = Slip(asks, count)
        if self._stopped:  # nobody waits for ever
            _fail([slip], "the spool has stopped")
            return slip
        self._waiting.append(slip)
        self._work.set()
        return slip

    def strike(self, slip: Slip) -> None:
        """It is on the stream: keep it no longer."""
        slip.struck = True
        self._struck.append(slip)
        self._work.set()

    async def flush(self) -> None:
        """Until all that was handed over so far is on disk, or has failed."""
        async with self._one_round:
            waiting, self._waiting = [slip for slip in self._waiting if not slip.struck], []
            struck, self._struck = [slip for slip in self._struck if slip.state == "kept"], []
            try:
                why = await asyncio.to_thread(self._write, waiting, struck)
            finally:
                _fail([slip for slip in waiting if slip.state == "waiting"], "the spool has stopped")
        self._failing, failed_before = bool(why), self._failing
        if why and not failed_before:
            with suppress(OSError):  # a disk that is full may not take the log either
                log.error("spool_failed", why=why)

    async def _write_rounds(self) -> None:
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                await self.flush()
        finally:
            self._stopped = True

    # --- in a thread: a sync may take as long as the disk likes -------------------------------------------------------

    def _write(self, waiting: list[Slip], struck: list[Slip]) -> str:
        """One round. What went wrong, "" if nothing did."""
        try:
            self._strike(struck)
        except OSError as error:  # they are sent once more at the next start, and count once
            log.warning("spool_not_struck", why=_why(error))
        try:
            return self._keep(waiting)
        except OSError as error:
            return _fail([slip for slip in waiting if slip.state == "waiting"], _why(error))

    def _strike(self, struck: list[Slip]) -> None:
        numbers: dict[SpoolFile, list[int]] = {}
        for slip in struck:
            if slip.file is not None:
                numbers.setdefault(slip.file, []).append(slip.n)
        for file, struck_in_it in numbers.items():
            file.strike(struck_in_it)
        for file in [orphan for orphan in self._orphans if not orphan.kept]:
            self._orphans.remove(file)
            file.close()

    def _keep(self, waiting: list[Slip]) -> str:
        if self._own.worn:
            self._own.rewrite()
        fitting: list[Slip] = []
        left: list[Slip] = []
        count = size = 0
        for slip in waiting:
            fits = self._own.fits(count + slip.count, size + len(slip.asks) + AROUND)
            (fitting if fits else left).append(slip)
            if fits:
                count, size = count + slip.count, size + len(slip.asks) + AROUND
        if fitting:
            numbers = self._own.keep([(slip.asks, slip.count) for slip in fitting])
            for slip, n in zip(fitting, numbers, strict=True):
                slip.file, slip.n, slip.state = self._own, n, "kept"
        return _fail(left, f"the spool is full ({self._own.count:,} asks)") if left else ""

    def _close(self) -> None:
        for file in (self._own, *self._orphans):
            file.close()


def _open(folder: Path) -> tuple[SpoolFile, list[SpoolFile]]:
    """A file of our own, and those of the dead: empty ones are removed."""
    own = SpoolFile.make(folder)
    orphans = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        file = SpoolFile.take(path) if path != own.path else None
        if file is None:
            continue
        if file.kept:
            log.warning("spool_adopted", file=path.name, asks=file.count)
            orphans.append(file)
        else:
            file.close()
    return own, orphans


def _adopted(file: SpoolFile, n: int) -> Slip:
    kept = file.kept[n]
    slip = Slip(kept.asks, kept.count)
    slip.state, slip.file, slip.n = "kept", file, n
    return slip


def _fail(slips: list[Slip], why: str) -> str:
    for slip in slips:
        slip.why, slip.state = why, "failed"
    return why


def _why(error: OSError) -> str:
    return f"the disk did not take it ({error.strerror or type(error).__name__})"
