"""Snapshots that an audit leaves on its way, so that the wallet at any moment of that day is soon shown.

    DATA/snapshots/<wallet>/audit/<told>.snapshot         proved, to be used by `moment`
    DATA/snapshots/<wallet>/audit/<token>.unproved/       what an audit that still runs has laid down

They become snapshots only when everything that was read is proved; what an audit leaves that found something, or was
killed, is thrown away. A disk that takes none stops no audit. How many are kept, and of how many bytes, is bounded.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from engine.core.wallet import Wallet
from engine.snapshots import FOLDER, SUFFIX, Snapshot, encode, sync_folder

OF = "audit"
UNPROVED = ".unproved"
EVERY_ASKS = 65_536  # folded again from a snapshot in about a second
LAID_MAX = 32  # of one audit; beyond it every other one goes, and the next come half as often
KEPT_MAX = 96
KEPT_BYTES_MAX = 1024**3

log = structlog.get_logger()


class Laying:
    """Lays snapshots into `folder` while a wallet goes through the moments from `start` until `end` (ns)."""

    def __init__(self, folder: Path, *, start: int = 0, end: int | None = None, every: int = EVERY_ASKS) -> None:
        self._folder, self._start, self._end, self._every = folder, start, end, every
        self._due = 0 if start else every  # a day begins with one
        self._laid: list[Path] = []
        self._refused = False

    def see(self, wallet: Wallet, *, asks: int, told: int, chain: bytes) -> None:
        """The wallet as of this told, after so many asks in all."""
        if self._refused or asks < self._due or wallet.at < self._start:
            return
        if not told or (self._end is not None and wallet.at >= self._end):
            return
        self._due = asks + self._every
        name = f"{told:020}"
        if (self._folder.parent / f"{name}{SUFFIX}").exists():
            return
        try:
            self._lay(self._folder / f"{name}{UNPROVED}", encode(Snapshot(wallet, told, chain)))
        except OSError as error:
            self._refused = True
            log.warning("snapshots_not_kept", why=error.strerror)

    def _lay(self, file: Path, data: bytes) -> None:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as writing:
            writing.write(data)
            writing.flush()
            os.fsync(writing.fileno())
        self._laid.append(file)
        if len(self._laid) > LAID_MAX:
            for spare in self._laid[1::2]:
                spare.unlink()
            self._laid, self._every = self._laid[::2], 2 * self._every


class Keeping:
    """The folder of one audit. `prove` makes snapshots of what was laid there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prove(self) -> None:
        """All that was read is right: keep what was laid, and let go what is too much."""
        kept = self.folder.parent
        try:
            for file in self.folder.glob(f"*{UNPROVED}"):
                file.rename(kept / f"{file.stem}{SUFFIX}")
            thin(kept)
            sync_folder(kept)
        except OSError as error:
            log.warning("snapshots_not_kept", why=error.strerror)


@contextmanager
def keeping(data: Path | None, wallet: str) -> Iterator[Keeping | None]:
    """A folder to lay snapshots in; it is gone with the block. None without a data folder, or one nobody may write."""
    if data is None or not data.is_dir():
        yield None
        return
    folder = data / FOLDER / wallet / OF / f"{secrets.token_hex(8)}{UNPROVED}"
    try:
        folder.mkdir(mode=0o700, parents=True)
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        log.warning("snapshots_not_kept", why=error.strerror)
        yield None
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # an audit that runs: whoever clears away lets it be
        _clear_away(folder.parent)
        yield Keeping(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def thin(folder: Path, *, most: int = KEPT_MAX, bytes_max: int = KEPT_BYTES_MAX) -> None:
    """Let go until the bounds hold, each time the one whose neighbours stand closest together; the newest goes last."""
    files = sorted(file for file in folder.glob(f"*{SUFFIX}") if file.stem.isdecimal())
    sizes = {file: file.stat().st_size for file in files}
    while files and (len(files) > most or sum(sizes[file] for file in files) > bytes_max):
        spare = _least_missed(files)
        files.remove(spare)
        spare.unlink(missing_ok=True)


def _least_missed(files: list[Path]) -> Path:
    places = [0, *(int(file.stem) for file in files)]
    gaps = [(after - before, number) for number, (before, after) in enumerate(zip(places, places[2:], strict=False))]
    return files[min(gaps)[1]] if gaps else files[0]


def _clear_away(kept: Path) -> None:
    """What audits that were killed have left: nobody holds it."""
    for folder in kept.glob(f"*{UNPROVED}"):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
