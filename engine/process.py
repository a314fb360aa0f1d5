"""How each of our processes begins and ends: uvloop where it installs, a log line an event, an exit code a kind of end.

The same for engine, projector and web, so that whoever supervises them learns it once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import structlog

from engine.errors import Misconfigured, PurseError, Untrusted

EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_REFUSED, EXIT_UNTRUSTED = 0, 1, 2, 3, 4

Way = TypeVar("Way")

log = structlog.get_logger()


RENDERERS: dict[str, structlog.typing.Processor] = {
    "json": structlog.processors.JSONRenderer(),
    "text": structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
}
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(environment: Mapping[str, str]) -> None:
    """One event a line on stderr: JSON, or `key=value` where PURSE_LOG is `text`, from PURSE_LOG_LEVEL (info) up.

    Raises `Misconfigured` naming the variable; the lines are then JSON.
    """
    _configure(RENDERERS["json"], logging.INFO)
    _configure(
        _chosen(environment, "PURSE_LOG", RENDERERS, "json"), _chosen(environment, "PURSE_LOG_LEVEL", LEVELS, "info")
    )


def _chosen(environment: Mapping[str, str], name: str, ways: Mapping[str, Way], default: str) -> Way:
    way = ways.get(environment.get(name) or default)
    if way is None:
        raise Misconfigured(f"{name}: expected one of {', '.join(ways)}")
    return way


def _configure(renderer: structlog.typing.Processor, level: int) -> None:
    logging.getLogger("nats").setLevel(logging.CRITICAL)  # its news arrive through callbacks, as our own events
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )


def main(serve: Callable[[], Awaitable[None]]) -> None:
    """Run `serve` until it ends or SIGTERM or SIGINT comes, then exit with the code of its kind."""
    try:
        configure_logs(os.environ)
    except Misconfigured as error:
        sys.exit(_explain(error))
    sys.exit(_run(_until_signalled(serve)))


def _run(program: Awaitable[int]) -> int:
    async def whole() -> int:
        return await program

    try:
        import uvloop
    except ImportError:
        return asyncio.run(whole())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(whole())


async def _until_signalled(serve: Callable[[], Awaitable[None]]) -> int:
    loop = asyncio.get_running_loop()
    serving = asyncio.ensure_future(serve())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, serving.cancel)
    try:
        await serving
    except asyncio.CancelledError:
        return EXIT_OK
    except BaseExceptionGroup as group:
        return _explain(_first(group))
    except PurseError as error:
        return _explain(error)
    return EXIT_OK


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _explain(error: BaseException) -> int:
    """Operating errors end in a line and a code; a bug ends in its traceback."""
    match error:
        case Untrusted():
            log.critical("stream_not_trusted", why=str(error))
            return EXIT_UNTRUSTED
        case Misconfigured():
            log.error("misconfigured", why=str(error))
            return EXIT_USAGE
        case PurseError():
            log.error("stopped", why=str(error))
            return EXIT_ERROR
        case _:
            raise error
