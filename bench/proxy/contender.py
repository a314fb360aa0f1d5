"""What stands between a caller and the provider, in one small protocol for us, for peers, and for nobody at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from bench.proxy.upstream import MODEL, USAGE
from engine.prices import Usage, cost, load_book

PROMPT = "Answer in sixteen words: what is a common purse, and who may take how much out of it on one day?"


@dataclass(frozen=True)
class Address:
    """Where calls go. `pids`: the processes that do the work, by what they are: the proxy, the wallet. `charged`: for
    how many calls its books were charged since it began; told how many there were, it may wait a while for the last."""

    port: int
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    pids: Callable[[], Mapping[str, Sequence[int]]] = dict
    charged: Callable[[int], Awaitable[float]] | None = None


@dataclass(frozen=True)
class Contender:
    """`open` starts everything under an empty folder, with the provider at a port, and ends it with the block."""

    name: str
    about: str
    open: Callable[[Path, int], AbstractAsyncContextManager[Address]]
    missing: Callable[[], str | None] = lambda: None
    """Why it cannot run on this machine, None if it can."""
    streams: bool = True
    """Whether it is measured with streams as well."""


@dataclass(frozen=True)
class Shape:
    """So many callers, each with one call at a time. `stream`: the answer comes in events, `event_ms` apart."""

    callers: int
    service_ms: float
    stream: bool = False
    event_ms: float = 0.0

    @property
    def title(self) -> str:
        what = "a stream" if self.stream else "an answer"
        return f"proxy, {self.callers} caller{'s' if self.callers > 1 else ''}, {what} after {self.service_ms:g} ms"


def body(shape: Shape) -> dict[str, object]:
    """The call that everybody makes."""
    messages = [{"role": "user", "content": PROMPT}]
    return {"model": MODEL, "messages": messages, "max_tokens": 64, "temperature": 0.2, "stream": shape.stream}


def one_call_usd() -> int:
    """What it costs, in nano-dollars."""
    price = load_book({}).find("openai", MODEL)
    assert price is not None
    usage = Usage(input_tokens=USAGE["prompt_tokens"], output_tokens=USAGE["completion_tokens"])
    return cost(price, usage)["usd"]
