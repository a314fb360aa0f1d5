"""When a state is put down, and by whose hands: a forked child's, so that nobody waits for the writing.

A state can be kept only where it is that of the newest told. When a snapshot is due the engine therefore decides
nothing more until all it has decided is on record; that is its own business, this only says when and does it.

The pause is the fork, which copies page tables: 4 ms of CPU for a process that knows nothing, 13 ms with 100,000 open
holds (173 MB), 18 ms with a million remembered ids besides (358 MB), on a machine six times overloaded: per 100,000
some 9 ms for open holds, 0.6 ms for ids. `python -m bench.restart` measures it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
import structlog

from engine.core.wallet import Wallet
from engine.forked import Forked
from engine.snapshots import Snapshot, Snapshots

TOLDS_MAX = 5_000  # after which a snapshot is due, however little time has passed
UNKEPT_S_MAX = 60.0  # after which one is due, if anything was told

log = structlog.get_logger()


class Keeper:
    """Keeps the snapshots of one engine, or of whoever else has a wallet.

    `beside` makes what else must be remembered; it is called by whoever writes, so it too costs no pause.
    """

    def __init__(self, snapshots: Snapshots, beside: Callable[[], bytes] = bytes) -> None:
        self.snapshots = snapshots
        self._beside = beside
        self._tolds = 0  # since the last one
        self._kept_at = time.monotonic()
        self._day_ends = 0
        self._child: Forked | None = None

    def restored(self, wallet: Wallet) -> None:
        """The engine begins where a snapshot was taken: nothing is new yet."""
        self._kept(wallet)

    def told(self) -> None:
        """One more told is on record."""
        self._tolds += 1

    def due(self, wallet: Wallet) -> bool:
        """Whether a snapshot should be taken as soon as that is possible."""
        if not self._tolds or self._writing():
            return False
        unkept_s = time.monotonic() - self._kept_at
        return self._tolds >= TOLDS_MAX or unkept_s >= UNKEPT_S_MAX or wallet.at >= self._day_ends

    def keep(self, snapshot: Snapshot) -> None:
        """Put this down while the engine goes on; the pause is the fork alone."""
        began = time.monotonic()
        try:
            self._child = Forked(lambda: self._write(snapshot))
        except OSError as error:  # no memory for a child: the older ones still stand
            log.warning("snapshot_not_written", told=snapshot.told, why=str(error))
        pause_ms = round(1000 * (time.monotonic() - began), 1)
        log.info("snapshot", told=snapshot.told, upto=snapshot.wallet.upto, tolds=self._tolds, pause_ms=pause_ms)
        self._kept(snapshot.wallet)

    def keep_last(self, snapshot: Snapshot) -> None:
        """At a clean stop: put down what was told since the last one, here and now."""
        if self._child is not None:
            self._child.done(wait=True)
        if self._tolds:
            self._write(snapshot)
            self._kept(snapshot.wallet)

    def _kept(self, wallet: Wallet) -> None:
        self._tolds, self._kept_at = 0, time.monotonic()
        self._day_ends = wallet.day_ends

    def _writing(self) -> bool:
        if self._child is not None and self._child.done():
            self._child = None
        return self._child is not None

    def _write(self, snapshot: Snapshot) -> None:
        began = time.monotonic()
        try:
            size = self.snapshots.write(msgspec.structs.replace(snapshot, beside=self._beside()))
        except OSError as error:  # a full disk, say: the older ones still stand
            log.warning("snapshot_not_written", told=snapshot.told, why=str(error))
        else:
            log.info("snapshot_written", told=snapshot.told, bytes=size, took_s=round(time.monotonic() - began, 3))
