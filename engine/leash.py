"""Start a command that does not outlive whoever started it: `python engine/leash.py PARENT_PID COMMAND...`.

The kernel sends SIGTERM to the command when the thread that spawned it dies, even by kill -9 (Linux; elsewhere the
command just runs). A program of its own rather than a `preexec_fn`, which may deadlock between fork and exec when other
threads hold a lock. It becomes the command (`exec`), so the process id stays the same. It must import nothing of ours:
it costs one bare interpreter start (11 ms measured).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1


def leashed(command: Sequence[str]) -> list[str]:
    """The command line that runs `command` on a leash held by the calling process.

    Spawn it from the thread that runs the event loop: that thread's death is what the kernel watches.
    """
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def _run(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the leash was on
            raise SystemExit(1)
    os.execv(command[0], command)  # noqa: S606  no shell is wanted


if __name__ == "__main__":
    _run(int(sys.argv[1]), sys.argv[2:])
