"""Settlements that nobody answered, tried on in the background until the wallet has them or the client is closed.

They are in memory only. What is lost with the process lapses at its grant, and `purse backfill` puts it right.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable

from engine.errors import BadAsk, NoAnswer, NotAllowed, NotKept

WAITING_MAX = 100_000
AGAIN_S = 1.0
EXIT_WAIT_S = 5.0

Send = Callable[[str, object], None]
"""Path and body; returns once the wallet has it, raises `NoAnswer` where it may be sent again."""


class Outbox:
    """What waits to be sent, oldest first."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._waiting: deque[tuple[str, object]] = deque()
        self._sender: threading.Thread | None = None
        self._closing = False
        self._minded = False
        self.refused = 0

    def __len__(self) -> int:
        return len(self._waiting) if self._process == os.getpid() else 0

    def put(self, path: str, body: object) -> None:
        """Try this on from now. Raises `NotKept` when too much waits already."""
        if self._process != os.getpid():
            self._begin()
        with self._changed:
            if len(self._waiting) >= WAITING_MAX:
                raise NotKept(f"{WAITING_MAX} settlements wait already")
            self._waiting.append((path, body))
            self._closing = False
            if not self._minded:
                self._minded = True
                atexit.register(self.close, EXIT_WAIT_S)  # a program that forgets to close loses nothing in silence
            if self._sender is None:
                self._sender = threading.Thread(target=self._run, name="purse-outbox", daemon=True)
                self._sender.start()
            self._changed.notify_all()

    def close(self, wait_s: float) -> None:
        """Wait until all is sent, or for `wait_s`. Raises `NotKept` if some of it is not, or was refused."""
        if self._process != os.getpid():
            return  # what waited at a fork is the parent's to send
        with self._changed:
            sent = self._changed.wait_for(lambda: not self._waiting, timeout=wait_s)
            self._closing, self._minded = True, False
            atexit.unregister(self.close)
            self._changed.notify_all()
            lost = len(self._waiting) + self.refused
        if not sent or lost:
            raise NotKept(f"{lost} settlements were not taken; their holds lapse at their grants")

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if self._closing:
                    self._sender = None
                    return
                path, body = self._waiting[0]
            done = self._try(path, body)
            with self._changed:
                if done:
                    self._waiting.popleft()
                    self._changed.notify_all()
                else:
                    self._changed.wait_for(lambda: self._closing, timeout=AGAIN_S)

    def _try(self, path: str, body: object) -> bool:
        """Whether this need not be sent again."""
        try:
            self._send(path, body)
        except (BadAsk, NotAllowed):
            self.refused += 1
        except NoAnswer as no:
            return no.kept
        return True
