"""What a fake provider would bill: every call's tokens by a price table of its own, in whole numbers.

It knows nothing of Common Purse and must never import any of it: the two are compared in tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Used:
    """What one call really used. `input` is all that went in, with what was cached; `output` all that was made."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0
    searches: int = 0
    """Web searches the provider made for the model."""

    @property
    def plain_input(self) -> int:
        """What was neither read from a cache nor written to one."""
        return self.input - self.cache_read - self.cache_write - self.cache_write_1h


@dataclass(frozen=True)
class Rate:
    """Prices of one model. Dollars: pico-dollars a token. Neurons: millionths a token, or a call."""

    input: int
    output: int = 0
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None
    call: int = 0
    search: int = 0

    def of(self, used: Used) -> int:
        return (
            self.call
            + used.plain_input * self.input
            + used.cache_read * _or(self.cache_read, self.input)
            + used.cache_write * _or(self.cache_write, self.input)
            + used.cache_write_1h * _or(self.cache_write_1h, self.input)
            + used.output * self.output
            + used.searches * self.search
        )


def _or(price: int | None, otherwise: int) -> int:
    return otherwise if price is None else price


@dataclass(frozen=True)
class Line:
    """One call on the bill. `amount` is in the smallest part of the ledger's unit, rounded up once."""

    request: int
    model: str
    used: Used
    amount: int
    ended: str
    """`done`, `aborted` (the client left), `failed` (an error after the first token)."""


@dataclass
class Ledger:
    """The bill. `divisor` turns the prices' parts into the unit's: 1000 from pico- to nano-dollars."""

    unit: str
    rates: Mapping[str, Rate]
    divisor: int = 1
    lines: list[Line] = field(default_factory=list)

    def price(self, model: str, used: Used) -> int:
        """What this would cost, in the smallest part of the unit."""
        return -(-self.rates[model].of(used) // self.divisor)

    def charge(self, request: int, model: str, used: Used, ended: str) -> Line:
        line = Line(request, model, used, self.price(model, used), ended)
        self.lines.append(line)
        return line

    @property
    def total(self) -> int:
        return sum(line.amount for line in self.lines)
