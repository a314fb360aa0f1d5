"""The seam between the flow, which guards money, and one provider's wire shapes.

    Provider   how one provider is spoken to: who we are, what an error looks like
    Dialect    one route of it: a body into a `Call`, an option of the hold into a body, an answer into what was used
    Meter      one running stream: what passes on, what was seen, how a stream that is cut ends

A dialect never talks to a wallet, a session or a clock, and never decides what a call may cost: it says how large the
call could become, and the flow holds that. What it cannot bound it must refuse by raising `Declined`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from engine.prices import Usage
from web.proxy.bodies import Body
from web.proxy.counting import OutputCount
from web.proxy.refusals import Refusal
from web.proxy.sse import Event


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """What a client sent, as far as a dialect may look at it. `match`: the variable parts of the route's path."""

    body: Body
    match: Mapping[str, str] = {}
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """How large one call could become.

    `input_tokens`: a model -> an upper bound of all tokens that go in, were the call made with it. `output_tokens`: the
    cap on one choice as the client set it, None if it set none (the operator's default is put in), 0 if nothing comes
    out that costs. `choices` multiplies it. `audio`: sound may go in or come out. `service`: the service tier it asks
    for, "" for the standard one; one that the model has no price for is refused.

    `capped`: the provider obeys a cap in the body; if not, the stream is cut when its grant is used up, and a call that
    is no stream is refused. `hidden`: tokens may be billed that no stream shows, so an aborted one costs its grant.
    """

    model: str
    input_tokens: Callable[[str], int]
    output_tokens: int | None = None
    choices: int = 1
    stream: bool = False
    audio: bool = False
    service: str = ""
    capped: bool = True
    hidden: bool = False


class Way(msgspec.Struct, frozen=True):
    """One way to make the call: with this model, and at most so many output tokens a choice."""

    model: str
    output_tokens: int


class Outgoing(msgspec.Struct, frozen=True):
    """What is sent: `path` is appended to the upstream's `base_url`, `headers` are sent beside our own."""

    path: str
    body: bytes
    headers: Mapping[str, str] = {}


class Reading(msgspec.Struct, frozen=True):
    """What an answer says of itself.

    `usage`: as reported, None if it is not there. `model`: the one that really answered, "" if it does not say.
    `exact`: False where what is reported cannot be priced as it stands (another service tier): then the call is charged
    at no less than its grant, as an estimate.
    """

    usage: Usage | None = None
    model: str = ""
    exact: bool = True


class Meter(ABC):
    """One running stream. Fed every event once and in order.

    `output` counts what is seen of it. `reading` is what the provider reported, with `usage` None until it did.
    `partial`: what it has reported so far of a call that still runs (Anthropic says the input first). `ended`: it said
    that this is all. `failed`: it said that the call failed.
    """

    def __init__(self, call: Call, way: Way) -> None:
        self.call, self.way = call, way
        self.output = OutputCount(way.model)
        self.reading = Reading()
        self.partial: Usage | None = None
        self.ended = False
        self.failed = False

    @abstractmethod
    def feed(self, event: Event) -> Sequence[bytes]:
        """What of this event goes to the client: nothing, the event as it came, or another in its place."""

    def close(self) -> None:  # noqa: B027 - most have nothing left to say
        """The provider has closed its stream. What it has reported so far may thereby be final."""

    @abstractmethod
    def cut(self, seen: Usage) -> Sequence[bytes]:
        """What ends a stream that we stop at its grant, so that a client reads it as one that reached its cap."""


class Provider(Protocol):
    """`name`: its table in `[upstreams]`."""

    @property
    def name(self) -> str: ...

    def identify(self, key: str) -> Mapping[str, str]:
        """The headers that carry the upstream's key."""
        ...

    def error(self, refusal: Refusal, *, request_id: str) -> Mapping[str, object]:
        """The body of an error as the provider's own clients read it."""
        ...


class Dialect(Protocol):
    """One route. `read` raises `Declined` for what cannot be understood or bounded; everything else must not raise."""

    @property
    def provider(self) -> Provider: ...

    def read(self, incoming: Incoming) -> Call: ...

    def write(self, incoming: Incoming, call: Call, way: Way) -> Outgoing:
        """The body with the model and the cap of this way, everything else byte for byte as it came."""
        ...

    def reading(self, answer: object, headers: Mapping[str, str]) -> Reading:
        """What an answer that is no stream says: its JSON (None if it is none), its headers in lower case."""
        ...

    def allowance_gone(self, status: int, answer: object) -> bool:
        """Whether an error says that the provider's own allowance for the day is used up: then the figure of every
        budget with the provider's name as its source is its limit."""
        ...

    def meter(self, incoming: Incoming, call: Call, way: Way, headers: Mapping[str, str]) -> Meter:
        """For one stream. `headers`: the upstream's, in lower case."""
        ...

    def error_event(self, refusal: Refusal, *, request_id: str) -> bytes:
        """An error in the midst of a stream, as the provider's own clients read one."""
        ...
