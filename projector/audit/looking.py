"""`python -m projector.audit.looking`: one look into the past in a process of its own, which keeps nobody waiting.

A web process that folded a day would let every hold wait meanwhile. This one is killed when whoever asked has left or
the time is over. What to look at comes on standard input, so that no address with a password stands among the
arguments; what was found goes out as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from typing import Any

import msgspec
import structlog

from engine.errors import PurseError, Untrusted
from engine.journal import Journal
from projector.audit.child import child
from projector.audit.life import Event
from projector.audit.moment import Moment, wallet_at
from projector.audit.stretch import Stretch
from projector.reading import Source, StreamSource

LOOK_WAIT_S = 20.0
STRETCH_MESSAGES_MAX = 200_000  # of a life at once: read in some seconds

_encoder = msgspec.json.Encoder()


class LookAtMoment(msgspec.Struct, frozen=True, tag="moment"):
    """The wallet at `at` (ns). `data`: the folder in which snapshots lie, "" for none."""

    wallet: str
    at: int
    url: str = ""
    data: str = ""


class LookAtLife(msgspec.Struct, frozen=True, tag="life"):
    """The call `id`, behind sequence `after`; None: among the newest messages. `scales`: those of the units."""

    wallet: str
    id: str
    after: int | None
    scales: dict[str, int]
    url: str = ""


Look = LookAtMoment | LookAtLife


class SeenLife(msgspec.Struct, frozen=True):
    """Every event of a call between sequence `after` and `upto`. `end`: the last there was."""

    events: list[Event]
    more: int
    after: int
    upto: int
    end: int


class Seen(msgspec.Struct, frozen=True):
    """What was found, or why it could not be."""

    moment: Moment | None = None
    life: SeenLife | None = None
    untrusted: str = ""
    error: str = ""


async def look(source: Source, what: Look) -> Seen:
    """Look here and now."""
    try:
        match what:
            case LookAtMoment():
                return Seen(
                    moment=await wallet_at(source, what.at, data=Path(what.data) if what.data else None, keep=True)
                )
            case LookAtLife():
                return Seen(life=await _life(source, what))
    except Untrusted as error:
        return Seen(untrusted=str(error))
    except (PurseError, OSError) as error:
        return Seen(error=str(error))


async def _life(source: Source, what: LookAtLife) -> SeenLife:
    end = await source.last()
    after = what.after if what.after is not None else max(0, end - STRETCH_MESSAGES_MAX)
    upto = min(end, after + STRETCH_MESSAGES_MAX)
    stretch = Stretch(what.id, what.scales)
    if upto > after:
        await source.read(stretch.take, after=after, upto=upto)
    return SeenLife(stretch.life.events, stretch.life.more, after, upto, end)


async def look_apart(what: Look) -> Seen:
    """Look in a process of its own, which ends with this call. Raises `PurseError`, `TimeoutError`."""
    async with asyncio.timeout(LOOK_WAIT_S), child("projector.audit.looking") as process:
        out, _ = await process.communicate(_encoder.encode(what))
        try:
            return msgspec.json.decode(out, type=Seen)
        except msgspec.DecodeError as error:
            raise PurseError(f"the process that looks ended with {process.returncode} and said nothing") from error


async def _look_at_stream(what: Look) -> Seen:
    try:
        async with Journal.connect(what.url, wallet=what.wallet, name="purse-looking") as journal:
            return await look(StreamSource(journal), what)
    except PurseError as error:
        return Seen(error=str(error))


def main() -> None:
    """Read what to look at, write what was seen."""
    structlog.configure(  # standard output is for what was seen alone
        wrapper_class=structlog.make_filtering_bound_logger("error"),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    gc.disable()  # it ends before there would be anything to collect
    what: Any = msgspec.json.decode(sys.stdin.buffer.read(), type=Look)
    sys.stdout.buffer.write(_encoder.encode(asyncio.run(_look_at_stream(what))))


if __name__ == "__main__":
    main()
