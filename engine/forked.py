"""Work for a child that has all its parent knew at one moment, and cannot disturb it: `os.fork`.

The child must do nothing but compute and write files: it inherits sockets, signal handlers and an event loop that
belong to its parent, so it lets them go first and ends without any cleaning up. For a process without threads; one
that waits idle (a pool's) holds no lock that the child could want.
"""

from __future__ import annotations

import os
import signal
import traceback
import warnings
from collections.abc import Callable

FAILED = 1
_FIRST_INHERITED = 3  # after stdin, stdout, stderr


class Forked:
    """A child at its work. Whoever starts one asks until it is `done`."""

    def __init__(self, work: Callable[[], None]) -> None:
        """Start it. The work reports its own failures and raises none."""
        every = signal.valid_signals()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, every)  # a handler would wake the parent's loop
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on idle threads of a library
                self._id = os.fork()
            if self._id == 0:
                _work(work)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        self._status: int | None = None

    def done(self, *, wait: bool = False) -> bool:
        """Whether it has ended; `wait` until it has."""
        if self._status is None:
            ended, status = os.waitpid(self._id, 0 if wait else os.WNOHANG)
            if ended:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status is not None

    @property
    def failed(self) -> bool:
        return bool(self._status)


def _work(work: Callable[[], None]) -> None:
    """In the child. Never returns."""
    status = FAILED
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.closerange(_FIRST_INHERITED, os.sysconf("SC_OPEN_MAX"))
        work()
        status = 0
    except BaseException:
        traceback.print_exc()  # a bug: nobody else would hear of it
    finally:
        os._exit(status)
