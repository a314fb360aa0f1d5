"""A wallet over HTTP, for programs without asyncio. Safe for any number of threads; no HTTP library is loaded.

    from commonpurse.sync import Purse

    purse = Purse("http://127.0.0.1:8080", key="purse_...")     # connects when first asked; may be a global

    with purse.holding({"usd": "0.01"}, labels={"provider": "jev"}) as hold:
        answer = call_the_model(...)
        hold.cost(usd=price_of(answer))

    @purse.guarded({"usd": "0.05"})
    def ask(**call):
        return openai_client.chat.completions.create(**call)

Amounts are decimal strings, `Decimal` or `int`; never floats. `hold`, `settle` and their like answer with data; a
`with` block and a guarded function raise `Exhausted` or another `Refused`. Fail closed: `NoAnswer` is no permission.
"""

from __future__ import annotations

import functools
import inspect
import ssl
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from types import TracebackType
from typing import Any, Self, cast

from commonpurse.client import answers, asks
from commonpurse.client.answers import Estimated, Held, Refusal, Settled
from commonpurse.client.asks import Option
from commonpurse.client.connections import Connections
from commonpurse.client.outbox import Outbox
from commonpurse.client.trying import post
from commonpurse.costs import call_of, cost_of
from engine.core.plan import LapsePolicy
from engine.errors import Exhausted, NoAnswer, NotAllowed, PurseError, Refused
from engine.guarding import HOW_ELSE, Cost, Guarded, Labels, Said, Terms, Worst, name_of
from engine.holding import OnError, OpenHold

__all__ = [
    "Estimated", "Exhausted", "Held", "Holding", "NoAnswer", "NotAllowed", "Option", "Purse", "PurseError", "Refusal",
    "Refused", "Settled",
]  # fmt: skip

CONNECTIONS = 32
WAIT_S = 5.0
WAIT_S_MAX = 30.0  # what a wallet itself waits for its engine; with more patience it is asked again
SETTLE_WAIT_S = 10.0
TRY_WAIT_S = 10.0
SLACK_S = 1.0  # beyond what the wallet itself waits for its engine
CLOSE_WAIT_S = 5.0
WAIT_S_MAX = 30.0  # what a wallet itself waits for its engine; with more patience it is asked again


class Purse:
    """One wallet, asked over HTTP with one key. `connections`: how many requests may be under way at once."""

    def __init__(
        self, url: str, key: str | None = None, *, connections: int = CONNECTIONS, tls: ssl.SSLContext | None = None
    ) -> None:
        """Raises `Misconfigured` if `url` is no address; nothing is sent yet. `tls`: for https, if not the default."""
        self._connections = Connections(url, key, most=connections, tls=tls)
        self._outbox = Outbox(self._try)

    def close(self, wait_s: float = CLOSE_WAIT_S) -> None:
        """Send what waits and close. Raises `NotKept` if the wallet did not take all of it within `wait_s`."""
        try:
            self._outbox.close(wait_s)
        finally:
            self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def unsent(self) -> int:
        """Settlements of `with` blocks that nobody has answered yet. They are tried on."""
        return len(self._outbox)

    # --- asking -------------------------------------------------------------------------------------------------------

    def hold(
        self,
        amounts: Said | None = None,
        *,
        options: Sequence[Option] | None = None,
        id: str | None = None,
        labels: Mapping[str, str] | None = None,
        ttl_s: int | None = None,
        on_lapse: LapsePolicy | None = None,
        wait_s: float = WAIT_S,
    ) -> Held | Refusal:
        """May I spend at most this? `Held` is the only permission. Raises `BadAsk`, `NotAllowed`, `NoAnswer`.

        Give `amounts` or, for several ways to make the call, `options`, best first. Asked again with the same `id`, the
        first answer stands. Without an `id`, a hold that nobody answered is given back.
        """
        named = id or uuid.uuid4().hex
        body = asks.hold(
            named, amounts, options, labels=labels, ttl_s=ttl_s, on_lapse=on_lapse, wait_s=min(wait_s, WAIT_S_MAX)
        )
        try:
            return post(self._connections, "/v1/holds", body, answers.held, wait_s=wait_s + SLACK_S)
        except NoAnswer:
            if id is None:
                self.give_back(named)
            raise

    def settle(
        self,
        hold: str,
        amounts: Said,
        *,
        final: bool = True,
        estimated: bool = False,
        labels: Mapping[str, str] | None = None,
        wait_s: float = SETTLE_WAIT_S,
    ) -> Settled | Refusal:
        """The call cost this; with `final=False`, this much so far. Never refused for its amount, safe to repeat.

        Raises `NoAnswer`: then send it again, unless it says that it is `kept`.
        """
        body = {"amounts": asks.written(amounts), "final": final, "estimated": estimated, "labels": dict(labels or {})}
        return post(self._connections, asks.path_of(hold, "settle"), body, answers.settled, wait_s=wait_s)

    def release(self, hold: str, *, wait_s: float = SETTLE_WAIT_S) -> Settled | Refusal:
        """The call was not made: give everything back that was not reported as progress."""
        return post(self._connections, asks.path_of(hold, "release"), {}, answers.settled, wait_s=wait_s)

    def renew(
        self, hold: str, n: int, *, ttl_s: int | None = None, amounts: Said | None = None, wait_s: float = WAIT_S
    ) -> Held | Refusal:
        """Hold on longer; `n` counts 1, 2, ...; `amounts` is the new total grant."""
        body: dict[str, object] = {"n": n, "amounts": asks.written(amounts or {})}
        if ttl_s is not None:
            body["ttl_s"] = ttl_s
        return post(self._connections, asks.path_of(hold, "renew"), body, answers.held, wait_s=wait_s + SLACK_S)

    def estimate(self, *, wait_s: float = WAIT_S, **call: object) -> Estimated:
        """The most that a call could cost: `model`, `messages` or `input`, `system`, `tools`, `max_tokens`, `n`.

        Holds nothing. Raises `BadAsk` for a model without a price.
        """
        return post(self._connections, "/v1/estimate", call, answers.estimated, wait_s=wait_s)

    # --- holding ------------------------------------------------------------------------------------------------------

    @contextmanager
    def holding(
        self,
        amounts: Said | None = None,
        *,
        options: Sequence[Option] | None = None,
        id: str | None = None,
        labels: Mapping[str, str] | None = None,
        ttl_s: int | None = None,
        on_lapse: LapsePolicy | None = None,
        on_error: OnError = "charge",
        wait_s: float = WAIT_S,
    ) -> Iterator[Holding]:
        """Hold for the length of a block and settle at its end. Raises `Exhausted` or another `Refused` if not held.

        Say what it cost with `hold.cost(...)`, or that it never happened with `hold.release()`. A block that says
        neither, or fails before it could, is settled at the larger of grant and progress, as an estimate: the call may
        have happened. `on_error`: what an error of the block means, if it had said neither; see `engine.holding`. A
        settlement that nobody answers is tried on in the background.
        """
        hold = self.open(amounts, options=options, id=id, labels=labels, ttl_s=ttl_s, on_lapse=on_lapse, wait_s=wait_s)
        try:
            yield hold
        except BaseException as error:
            hold.failed(error, on_error)
            raise
        finally:
            hold.end()

    def open(self, amounts: Said | None = None, **asked: Any) -> Holding:
        """As `holding`, for callbacks that begin and end in different places: whoever opens it must `end` it."""
        outcome = self.hold(amounts, **asked)
        if isinstance(outcome, Refusal):
            raise outcome.error()
        return Holding(self, outcome)

    def guarded(
        self,
        worst: Worst | None = None,
        *,
        cost: Cost | None = None,
        labels: Labels | None = None,
        ttl_s: int | None = None,
        on_error: OnError = "charge",
        wait_s: float = WAIT_S,
    ) -> Callable[[Guarded], Guarded]:
        """Decorate a function that makes one call: each time it is held, called, and settled.

        `worst`: the most a call could cost, or a function of its arguments; None: the wallet is asked for an estimate,
        by the arguments `model`, `messages` and so on. `cost`: what it cost, from what it returned; None: by the usage
        in an answer of OpenAI or Anthropic (`commonpurse.costs`). Where the result does not tell, it is charged at the
        grant, as an estimate. Raises as `holding` does.
        """

        def guard(function: Guarded) -> Guarded:
            if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
                raise TypeError(f"{name_of(function)} is not a function that returns: {HOW_ELSE}")
            bound = functools.partial(self._worst, inspect.signature(function)) if worst is None else worst
            terms = Terms(bound, cost or cost_of, labels)

            @functools.wraps(function)
            def call(*arguments: Any, **named: Any) -> Any:
                asked = terms.asked(arguments, named)
                with self.holding(ttl_s=ttl_s, on_error=on_error, wait_s=wait_s, **asked) as hold:
                    result = function(*arguments, **named)
                    terms.settle(hold, result)
                    return result

            return cast("Guarded", call)

        return guard

    def _worst(self, signature: inspect.Signature, *arguments: Any, **named: Any) -> Said:
        return self.estimate(**call_of(signature, arguments, named)).amounts

    # --- what must not be lost ----------------------------------------------------------------------------------------

    def send(self, path: str, body: object, *, wait_s: float = SETTLE_WAIT_S) -> None:
        """A settlement, now or in the background. Raises `BadAsk`, `NotAllowed`, `NotKept`."""
        if self._outbox:  # the wallet did not answer those before it
            self._outbox.put(path, body)
            return
        try:
            post(self._connections, path, body, answers.settled, wait_s=wait_s)
        except NoAnswer as no:
            if not no.kept:
                self._outbox.put(path, body)

    def give_back(self, hold: str) -> None:
        """Release a hold that nobody will use, in the background."""
        self._outbox.put(asks.path_of(hold, "release"), {})

    def _try(self, path: str, body: object) -> None:
        post(self._connections, path, body, answers.settled, wait_s=TRY_WAIT_S)


class Holding(OpenHold[Decimal]):
    """An open hold inside `with purse.holding(...)`."""

    def __init__(self, purse: Purse, held: Held) -> None:
        super().__init__(held.id, held.option, held.amounts, asks.decimals)
        self.held = held
        self._purse = purse
        self._ended = False

    def progress(self, **amounts: str | int | Decimal) -> Settled | Refusal:
        """What it has cost so far, as totals, on the record at once: kept even if this process dies."""
        self._progress |= self._read(amounts)
        return self._purse.settle(self.id, amounts, final=False)

    def end(self) -> None:
        """Settle it by what was said. Again: nothing. A settlement that nobody answers is tried on."""
        if not self._ended:
            self._ended = True
            self._purse.send(*asks.ending(self.id, self._ending()))
