"""What a fake model says, and how: a reply as tokens, made one at a time, with every fault of a stream at its place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from multidict import CIMultiDict
from providers.faults import Fault
from providers.ledger import Ledger, Used

_WORDS = ("Ein ", "Beutel ", "für ", "alle: ", "日本", "語 ", "naïve ", "🪙", " und ", "so ", "weiter. ")


def words(count: int) -> tuple[str, ...]:
    """So many tokens of text; some characters have two, three and four bytes."""
    return tuple(_WORDS[at % len(_WORDS)] for at in range(count))


@dataclass(frozen=True)
class Reply:
    """What the model would say if no cap stopped it. The cached counts are taken from the front of the prompt."""

    tokens: tuple[str, ...] = words(12)
    reasoning: int = 0
    """Tokens made before the first one of the text. They count against the cap."""
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    tool_arguments: tuple[str, ...] = ('{"city"', ': "Zür', 'ich"}')
    """What it calls the first tool with, where tools were given and none was forbidden."""
    web_searches: int = 0

    @property
    def text(self) -> str:
        return "".join(self.tokens)


@dataclass(eq=False)
class Seen:
    """One request as it came in, and what became of it."""

    number: int
    method: str
    path: str
    query: dict[str, str]
    headers: CIMultiDict[str]
    body: bytes
    json: Any
    aborted: asyncio.Event
    """The client left before the answer was complete."""
    ended: asyncio.Event
    paused: asyncio.Event
    """The answer has come to its pause."""
    used: Used | None = None
    """What the ledger billed."""


class EndedEarly(Exception):
    """The stream ends here, without its last events."""


class BrokeOff(Exception):
    """An error of the provider's own, in the middle of an answer."""


class Reset(Exception):
    """The connection is gone; nothing more can be said."""


class Production:
    """One call being made: `async with` it. Counts what was made, and bills it however the answer ends.

    Free: what failed before its first token, and a plain answer that became an error. Billed: everything else, also
    what was made for a client that left.
    """

    def __init__(
        self, seen: Seen, fault: Fault, ledger: Ledger, model: str, prompt: Used, *,
        go: asyncio.Event, transport: asyncio.Transport, stream: bool,
    ) -> None:  # fmt: skip
        self.fault = fault
        self._seen, self._ledger, self._model, self._prompt = seen, ledger, model, prompt
        self._go, self._transport, self._stream = go, transport, stream
        self._output, self._reasoning = 0, 0

    @property
    def used(self) -> Used:
        return replace(self._prompt, output=self._output, reasoning=self._reasoning)

    async def token(self, *, reasoning: bool = False) -> None:
        """Make one more, or do what the fault says at this place."""
        await self.at(self._output)
        self._output += 1
        self._reasoning += reasoning
        await asyncio.sleep(self.fault.slow_s)

    async def last(self) -> None:
        """Every token of the reply is made: those beyond any cap come now, unseen."""
        await self.at(self._output)
        self._output += self.fault.extra_output

    async def at(self, place: int) -> None:
        """What the fault does after `place` output tokens. Raises what ends the answer there."""
        fault = self.fault
        if fault.pause_after == place:
            self._seen.paused.set()
            await self._go.wait()
        if fault.reset_after == place:
            self._transport.abort()
            raise Reset
        if fault.error_after == place:
            raise BrokeOff
        if fault.end_after == place:
            raise EndedEarly

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if (ended := self._ended(error)) is not None:
            self._seen.used = self.used
            self._ledger.charge(self._seen.number, self._model, self.used, ended)

    def _ended(self, error: BaseException | None) -> str | None:
        if error is None:
            return "done"
        if isinstance(error, asyncio.CancelledError | ConnectionError):
            return "aborted"
        free = self._output == 0 or not (self._stream or isinstance(error, Reset))
        return None if free else "failed"


def count_tokens(value: object) -> int:
    """Tokens of what is said in `value`: a word is one, a message three more. No real tokenizer finds fewer."""
    match value:
        case str():
            return len(value.split())
        case list():
            return sum(count_tokens(each) for each in value)
        case dict():
            return sum(count_tokens(each) for each in value.values()) + 3 * ("role" in value)
    return 0


def pieces_of(chunk: bytes, size: int | None) -> Iterator[bytes]:
    """`chunk` in pieces of `size` bytes, or whole."""
    step = size or len(chunk) or 1
    for at in range(0, len(chunk), step):
        yield chunk[at : at + step]


def transport_of(request: web.Request) -> asyncio.Transport:
    assert request.transport is not None
    return request.transport  # type: ignore[return-value]
