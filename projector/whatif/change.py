"""What is otherwise in the other world: its plan, how much its holds allow for, what its models cost. Exact arithmetic.

The record has amounts and no tokens, so prices are asked as factors: this model costs so many times what it did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, TypeAlias

import msgspec

from engine.core.amounts import round_up
from engine.core.limits import AMOUNT_MAX
from engine.core.messages import Amounts, Hold, Renew, Settle
from engine.core.plan import Plan

FACTOR_MAX = 1_000
FACTORS_MAX = 256  # models whose price is otherwise
UNPRICED = frozenset({"tokens", "requests"})
"""Units that count things: a price does not change how many there are."""

Assume: TypeAlias = Literal["mean", "grant"]
"""What a call costs that was refused in the record, so that nobody knows: see `projector.whatif.habits`."""

_FACTOR = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
_ONE = Fraction(1)


class FactorError(ValueError):
    """Not a factor. The text says what one looks like."""


def factor(written: str) -> Fraction:
    """`"1.5"`, exactly. Raises `FactorError`."""
    if not _FACTOR.fullmatch(written) or not 0 < Fraction(written) <= FACTOR_MAX:
        raise FactorError(f"expected a factor above 0 and at most {FACTOR_MAX:,}, in plain digits like 1.5")
    return Fraction(written)


class Change(msgspec.Struct, frozen=True):
    """`plan`: None for the record's own. `hold_factor`: what holds are multiplied by. `prices`: model -> factor."""

    plan: Plan | None = None
    hold_factor: Fraction = _ONE
    prices: Mapping[str, Fraction] = {}
    assume: Assume = "mean"

    def hold(self, ask: Hold) -> Hold:
        """The same call, asked for in the other world."""
        model = ask.labels.get("model")
        if not self._scales(model):
            return ask
        options = [
            msgspec.structs.replace(
                option, amounts=self.held(option.amounts, model), least=self.held(option.least, model)
            )
            for option in ask.options
        ]
        return msgspec.structs.replace(ask, options=options)

    def renew(self, ask: Renew, model: str | None) -> Renew:
        return msgspec.structs.replace(ask, amounts=self.held(ask.amounts, model)) if self._scales(model) else ask

    def settle(self, ask: Settle, model: str | None) -> Settle:
        return msgspec.structs.replace(ask, amounts=self.cost(ask.amounts, model)) if model in self.prices else ask

    def held(self, amounts: Amounts, model: str | None) -> Amounts:
        """What is held for a call for which the record holds `amounts`."""
        if not self._scales(model):
            return amounts
        price = self.prices.get(model or "", _ONE)
        return {unit: _times(amount, self.hold_factor * _priced(unit, price)) for unit, amount in amounts.items()}

    def cost(self, amounts: Amounts, model: str | None) -> Amounts:
        """What a call costs that costs `amounts` on the record."""
        price = self.prices.get(model or "", _ONE)
        return {unit: _times(amount, _priced(unit, price)) for unit, amount in amounts.items()}

    def _scales(self, model: str | None) -> bool:
        return self.hold_factor != 1 or model in self.prices


def _priced(unit: str, price: Fraction) -> Fraction:
    return _ONE if unit in UNPRICED else price


def _times(amount: int, by: Fraction) -> int:
    """Rounded up. What is no amount stays none: the wallet refuses it in both worlds."""
    if by == 1 or not 0 <= amount <= AMOUNT_MAX:
        return amount
    return min(AMOUNT_MAX, round_up(amount * by.numerator, by.denominator))
