"""The event loop that everything here runs on: uvloop where that installs, as our own processes do."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine

EXIT_INTERRUPTED = 130


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """For `asyncio.Runner`."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def run_until_signalled(program: Coroutine[None, None, None]) -> int:
    """Its exit code. A signal ends it the orderly way: servers stopped, folders gone."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_until_signalled(program))


async def _until_signalled(program: Coroutine[None, None, None]) -> int:
    running = asyncio.ensure_future(program)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        return EXIT_INTERRUPTED
    return 0
