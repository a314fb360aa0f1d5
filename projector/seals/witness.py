"""The witness of seals: every seal of the wallet's days, a line each, in a file that only ever grows.

    DATA/witness/seals-<wallet>.jsonl    {"told": 812, "chain": "..", "seq": 811, "at": .., "seal": {"day": ..}}

Whoever can write a stream anew can make another that proves itself. They cannot reach a copy of this file that was
carried elsewhere: its lines name each day's totals, and the told whose chain commits to all before it. A line is
written once, whatever is read again; a day that the stream now seals otherwise is reported, and the line of then stays.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

import msgspec
import structlog

from engine.core.messages import Seal
from engine.snapshots import sync_folder
from engine.witness import FOLDER, KEEP_S

log = structlog.get_logger()

_encoder = msgspec.json.Encoder()


class Line(msgspec.Struct, frozen=True):
    """A seal, the ask message whose entry told it, and the told that carries the entry."""

    told: int
    chain: str
    seq: int
    at: int
    seal: Seal


class Known(msgspec.Struct):
    """What the file holds: day -> its line. `damaged` lines say nothing; `torn`: bytes of a last line cut short."""

    lines: dict[str, Line]
    damaged: int = 0
    torn: int = 0


def path_of(data: Path, wallet: str) -> Path:
    return data / FOLDER / f"seals-{wallet}.jsonl"


def known(path: Path) -> Known:
    """Read the file; none is an empty one. Raises `OSError` if it cannot be read."""
    found = Known({})
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return found
    *whole, last = raw.split(b"\n")
    found.torn = len(last)
    for written in whole:
        try:
            line = msgspec.json.decode(written, type=Line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found.damaged += 1
        else:
            found.lines.setdefault(line.seal.day, line)
    return found


def contradictions(lines: Iterable[Line], found: Known) -> list[str]:
    """The days that these lines seal otherwise than the file says."""
    return [line.seal.day for line in lines if found.lines.get(line.seal.day, line) != line]


class SealWitness:
    """The file of one wallet. Without a data folder it keeps nothing."""

    def __init__(self, data: Path | None, wallet: str) -> None:
        self._path = path_of(data, wallet) if data is not None else None
        self._known: Known | None = None
        self._waiting: list[Line] = []
        self._refused = False  # by the disk, the last time
        self._writing = Lock()  # a thread whose awaiter was cancelled writes on beside the last `write`

    @property
    def behind(self) -> bool:
        """Whether a seal is not on the disk and may soon be: what would begin behind it must wait."""
        return bool(self._waiting) and not self._refused

    def see(self, line: Line) -> None:
        """A seal was told, or was read again. `write` puts it down."""
        if self._path is not None:
            self._waiting.append(line)

    async def keep(self) -> None:
        """Write what comes, until cancelled."""
        while True:
            lines = list(self._waiting)
            if lines:
                self._wrote(lines, done=await asyncio.to_thread(self._write, lines))
            await asyncio.sleep(KEEP_S)

    def write(self) -> None:
        """Write what waits, here and now."""
        if self._waiting:
            lines = list(self._waiting)
            self._wrote(lines, done=self._write(lines))

    def _wrote(self, lines: list[Line], *, done: bool) -> None:
        self._refused = not done
        if done:
            del self._waiting[: len(lines)]

    def _write(self, lines: list[Line]) -> bool:
        """Onto the disk, what is new. A disk that takes nothing is reported and stops nobody."""
        assert self._path is not None
        try:
            with self._writing:
                self._append(self._path, lines)
        except OSError as error:
            self._known = None  # what the disk has is to be looked at anew
            log.error("seals_not_witnessed", days=len(lines), why=str(error))
            return False
        return True

    def _append(self, path: Path, lines: list[Line]) -> None:
        if self._known is None:
            self._known = _opened(path)
        for day in contradictions(lines, self._known):
            log.error("seal_contradicted", day=day, path=str(path))
        new = {line.seal.day: line for line in lines if line.seal.day not in self._known.lines}
        if not new:
            return
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
            file.write(b"".join(_encoder.encode(line) + b"\n" for line in new.values()))
            file.flush()
            os.fsync(file.fileno())
        sync_folder(path.parent)
        self._known.lines |= new


def _opened(path: Path) -> Known:
    """What is there already. A last line that a crash cut short was never promised, and is taken off."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = known(path)
    if found.damaged:
        log.error("seal_witness_damaged", path=str(path), lines=found.damaged)
    if found.torn:
        log.warning("seal_witness_torn", path=str(path), bytes=found.torn)
        os.truncate(path, path.stat().st_size - found.torn)
        found.torn = 0
    return found
