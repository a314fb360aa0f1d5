"""The file under a spool: one line a record, each with its length and checksum, so that what a crash tore is seen.

    0000004a 1f0c3a5be2907d64 {"n":7,"asks":[...]}      kept: not on the stream yet
    00000012 9b22d1f0a3c47e58 {"struck":[7]}            on the stream since

Whoever writes it holds its lock, which ends with the process. A record that was handed over is never changed in place:
an empty file is cut to nothing, a full one is written anew beside the old. It never reads what the asks say.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec
import structlog

SUFFIX = ".spool"
DAMAGED = ".damaged"
ASKS_MAX = 65_536
BYTES_MAX = 64 * 1024 * 1024  # of what is kept; with what was struck the file may be twice that
AROUND = 64  # bytes at most that stand around the asks in a line

log = structlog.get_logger()

_HEAD = 8 + 1 + 16 + 1  # length, checksum


class Record(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Asks under a number of this file's own, or the numbers of records that are on the stream."""

    n: int = 0
    asks: list[msgspec.Raw] = []
    struck: list[int] = []


class Kept(msgspec.Struct, frozen=True, gc=False):
    """A record that is not on the stream yet. `line` is how it lies in the file."""

    n: int
    count: int
    line: bytes

    @property
    def asks(self) -> bytes:
        """The asks as JSON, without the brackets around them."""
        return _body(self.line).partition(b'"asks":[')[2][:-2]


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


class SpoolFile:
    """One locked file. Made by `make` or `take`; every call may raise `OSError`. Not safe for two threads at once."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.kept: dict[int, Kept] = {}
        self.count = 0  # asks that are kept
        self._bytes = 0  # of their lines
        self._descriptor = descriptor
        self._size = 0
        self._n = 0
        self._torn = False  # a failed write may have left something behind `_size`

    @classmethod
    def make(cls, folder: Path) -> SpoolFile:
        """A new file in `folder`, which is made where it is missing."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            path = folder / f"{secrets.token_hex(8)}{SUFFIX}"
            file = cls(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            if file._locked():
                break
            os.close(file._descriptor)  # somebody who adopts was quicker
        _sync_folder(folder)
        return file

    @classmethod
    def take(cls, path: Path) -> SpoolFile | None:
        """The file of a process that has died, with what it still kept; None if somebody has it."""
        try:
            file = cls(path, os.open(path, os.O_RDWR | os.O_CLOEXEC))
        except FileNotFoundError:
            return None
        if not file._locked():
            os.close(file._descriptor)
            return None
        file._read()
        return file

    def _locked(self) -> bool:
        """Take the lock. False if its process lives, or if another one has adopted and removed it meanwhile."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return os.fstat(self._descriptor).st_nlink > 0

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        raw = self.path.read_bytes()
        whole, _, torn = raw.rpartition(b"\n")
        damaged = [line for line in whole.split(b"\n") if line and not self._take_line(line + b"\n")]
        self._size = len(raw) - len(torn)
        if torn:  # its writer died before it was synced, so nobody was told that it is safe
            log.warning("spool_tail_cut", file=self.path.name, bytes=len(torn))
            os.ftruncate(self._descriptor, self._size)
        if damaged:
            self._set_aside(damaged)

    def _take_line(self, line: bytes) -> bool:
        record = _record(line)
        if record is None:
            return False
        for n in record.struck:
            self._drop(n)
        if record.asks:
            self._add(Kept(record.n, len(record.asks), line))
        return True

    def _add(self, kept: Kept) -> None:
        self._drop(kept.n)
        self.kept[kept.n] = kept
        self.count += kept.count
        self._bytes += len(kept.line)
        self._n = max(self._n, kept.n)

    def _drop(self, n: int) -> bool:
        kept = self.kept.pop(n, None)
        if kept is not None:
            self.count -= kept.count
            self._bytes -= len(kept.line)
        return kept is not None

    def _set_aside(self, damaged: list[bytes]) -> None:
        """Lines that were whole once. They may be money: a person can still read them."""
        aside = self.path.with_suffix(DAMAGED)
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as written:
            written.write(b"\n".join(damaged) + b"\n")
            written.flush()
            os.fsync(written.fileno())
        _sync_folder(self.path.parent)
        log.error("spool_damaged", file=self.path.name, records=len(damaged), set_aside=str(aside))

    # --- writing ------------------------------------------------------------------------------------------------------

    def fits(self, count: int, size: int) -> bool:
        """Whether so many more asks of so many bytes may be kept."""
        return self.count + count <= ASKS_MAX and self._bytes + size <= BYTES_MAX

    def keep(self, lists: Sequence[tuple[bytes, int]]) -> list[int]:
        """Keep lists of asks (JSON without brackets, and how many): all on disk when this returns, or none."""
        records = [
            Kept(n, count, _line(b'{"n":%d,"asks":[%b]}' % (n, asks)))
            for n, (asks, count) in enumerate(lists, self._n + 1)
        ]
        before = self._size
        try:
            self._write(b"".join(record.line for record in records))
            os.fsync(self._descriptor)
        except OSError:
            self._cut_back(before)
            raise
        for record in records:
            self._add(record)
        return [record.n for record in records]

    def strike(self, numbers: Iterable[int]) -> None:
        """These are on the stream. Not synced: what a power cut forgets is sent once more, and counts once."""
        struck = [n for n in numbers if self._drop(n)]
        if not self.kept:
            os.ftruncate(self._descriptor, 0)
            self._size, self._torn = 0, False
        elif struck:
            self._write(_line(_encoder.encode(Record(struck=struck))))

    @property
    def worn(self) -> bool:
        """Whether it should be written anew: most of it was struck, or somebody has removed it."""
        mostly_struck = self._size > BYTES_MAX and self._size > 2 * self._bytes
        return mostly_struck or os.fstat(self._descriptor).st_nlink == 0

    def rewrite(self) -> None:
        """Go on in a new file that has only what is still kept, under the same numbers."""
        fresh = SpoolFile.make(self.path.parent)
        try:
            fresh._write(b"".join(kept.line for kept in self.kept.values()))
            os.fsync(fresh._descriptor)
        except OSError:
            fresh.remove()
            raise
        self.remove()
        self.path, self._descriptor, self._size = fresh.path, fresh._descriptor, fresh._size

    def _write(self, data: bytes) -> None:
        if self._torn:
            os.ftruncate(self._descriptor, self._size)
        self._torn, written = True, 0
        while written < len(data):
            written += os.pwrite(self._descriptor, data[written:], self._size + written)
        self._torn = False
        self._size += len(data)

    def _cut_back(self, size: int) -> None:
        """After a failed write: leave nothing of it, so that no half is ever read; at the latest before the next."""
        self._size, self._torn = size, True
        with suppress(OSError):
            os.ftruncate(self._descriptor, size)

    def close(self) -> None:
        """Let go of it: removed if it keeps nothing, else whoever starts next adopts it."""
        if self.kept:
            os.close(self._descriptor)
        else:
            self.remove()

    def remove(self) -> None:
        with suppress(FileNotFoundError):
            self.path.unlink()
        os.close(self._descriptor)  # after the unlink: whoever waits for the lock then finds that it is gone


def asks_in(path: Path) -> int:
    """How many asks a file keeps, for whoever only looks: it is neither locked nor mended. Raises `OSError`."""
    kept: dict[int, int] = {}
    for line in path.read_bytes().splitlines(keepends=True):
        record = _record(line)
        if record is None:
            continue
        for n in record.struck:
            kept.pop(n, None)
        if record.asks:
            kept[record.n] = len(record.asks)
    return sum(kept.values())


def _line(body: bytes) -> bytes:
    return b"%08x %b %b\n" % (len(body), _checksum(body), body)


def _body(line: bytes) -> bytes:
    return line[_HEAD:-1]


def _record(line: bytes) -> Record | None:
    """What stands in a line; None if it is not as it was written."""
    body = _body(line)
    if line[:_HEAD] != b"%08x %b " % (len(body), _checksum(body)):
        return None
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError:
        return None


def _checksum(body: bytes) -> bytes:
    return blake2b(body, digest_size=8).hexdigest().encode()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
