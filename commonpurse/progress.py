"""Shows how far a drive is, on standard error: a bar where a person watches, else a line every few seconds."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from commonpurse.drive import Tally
from commonpurse.summary import progress_line
from commonpurse.trace import Trace

LINE_EVERY_S = 5.0
DRAW_EVERY_S = 0.25


@asynccontextmanager
async def shown(tally: Tally, trace: Trace, *, drawn: bool) -> AsyncIterator[None]:
    """Show the tally as long as the context lasts. The bar shows how much of the trace was read."""
    showing = asyncio.create_task(_draw(tally, trace) if drawn else _write(tally))
    try:
        yield
    finally:
        showing.cancel()
        with suppress(asyncio.CancelledError):
            await showing


async def _write(tally: Tally) -> None:
    started_at = time.monotonic()
    while True:
        await asyncio.sleep(LINE_EVERY_S)
        print(progress_line(tally, seconds=time.monotonic() - started_at), file=sys.stderr, flush=True)


async def _draw(tally: Tally, trace: Trace) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    started_at = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        bar = progress.add_task("", total=1.0)
        while True:
            said = progress_line(tally, seconds=time.monotonic() - started_at)
            progress.update(bar, completed=trace.share_read, description=said, refresh=True)
            await asyncio.sleep(DRAW_EVERY_S)
