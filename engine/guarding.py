"""Guarded functions: a function that makes one call, held before it runs and settled by what it returns.

What a call could cost follows from the arguments, what it did cost from the result; both are the caller's to say. A
result whose cost is not known is charged at the grant, as an estimate, never at nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol, TypeAlias, TypeVar, cast

Said: TypeAlias = Mapping[str, "str | int | Decimal"]
"""Unit -> amount in units: `{"usd": "0.01"}`."""

Worst: TypeAlias = Said | Callable[..., "Said | Awaitable[Said]"]
"""The most a call could cost, or a function of the call's arguments that says so; of async functions, maybe later."""


class Measured(dict[str, "str | int | Decimal"]):
    """What a call cost in every unit that could be counted. Only units that were held are charged."""


Cost: TypeAlias = Callable[[Any], "Said | None"]
"""What a call cost, from what it returned; None where that does not tell."""

Labels: TypeAlias = Mapping[str, str] | Callable[..., Mapping[str, str]]
"""Labels of the hold, or a function of the call's arguments."""

Guarded = TypeVar("Guarded", bound=Callable[..., Any])


class Open(Protocol):
    """An open hold, as far as a guard needs it."""

    @property
    def units(self) -> frozenset[str]: ...

    def cost(self, **amounts: str | int | Decimal) -> None: ...


Hold: TypeAlias = Callable[..., AbstractAsyncContextManager[Open]]


@dataclass(frozen=True, slots=True)
class Terms:
    """How calls of one function are held and what they cost."""

    worst: Worst
    cost: Cost
    labels: Labels | None = None

    def asked(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """What `holding` is asked for a call with these arguments."""
        worst = self.worst(*arguments, **named) if callable(self.worst) else self.worst
        labels = self.labels(*arguments, **named) if callable(self.labels) else self.labels
        return {"amounts": worst, "labels": labels}

    def settle(self, hold: Open, result: object) -> None:
        """Say on the hold what its call cost, as far as the result tells."""
        said = self.cost(result)
        if isinstance(said, Measured):
            said = {unit: amount for unit, amount in said.items() if unit in hold.units}
        if said:
            hold.cost(**said)


def guarded(terms: Terms, holding: Hold) -> Callable[[Guarded], Guarded]:
    """Decorate an `async def`: each call of it is held by `holding`, made, and settled."""

    def guard(function: Guarded) -> Guarded:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"{name_of(function)} is not an async function that returns: {HOW_ELSE}")

        @functools.wraps(function)
        async def call(*arguments: Any, **named: Any) -> Any:
            asked = terms.asked(arguments, named)
            if inspect.isawaitable(asked["amounts"]):
                asked["amounts"] = await asked["amounts"]
            async with holding(**asked) as hold:
                result = await function(*arguments, **named)
                terms.settle(hold, result)
                return result

        return cast("Guarded", call)

    return guard


HOW_ELSE = "a function of the other kind goes to the other client, and one that yields goes inside `purse.holding(...)`"


def name_of(function: object) -> str:
    return str(getattr(function, "__qualname__", function))
