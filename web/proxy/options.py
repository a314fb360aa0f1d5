"""A call as the options of one hold, best first: in full, with half the output, with a cheaper model.

Pure. The amounts of an option are the most that the call could cost if it is sent as that option says.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from engine.core.messages import Amounts, Option
from engine.core.plan import Plan
from engine.prices import Price, PriceBook, Usage, affordable_output_tokens, cost, worst
from web.proxy.dialect import Call, Way
from web.proxy.refusals import not_priced, unbounded
from web.proxy.upstreams import Upstream

GRADE_FULL, GRADE_HALF, GRADE_CHEAPER = 0, 1, 2
FACTOR_PCT = 108
"""A count of our own may be too low by a few percent: what was seen of an aborted stream is charged at 1.08 of it."""


class Priced(msgspec.Struct, frozen=True):
    """A way with its price and the bound of its input. `units`: the units beside money that a budget counts."""

    way: Way
    price: Price
    input_tokens: int
    call: Call
    units: frozenset[str]

    def worst(self) -> Amounts:
        output_tokens = self.way.output_tokens * self.call.choices
        money = worst(
            self.price, input_tokens=self.input_tokens, output_tokens=output_tokens, audio=self.call.audio,
            service=self.call.service,
        )  # fmt: skip
        return self._counted(money, self.input_tokens + output_tokens)

    def cost(self, usage: Usage, *, price: Price | None = None) -> Amounts:
        """What this usage costs, in every unit of the hold. `price`: of the model that really answered."""
        used = usage.input_tokens + usage.output_tokens
        if not used and usage.neurons:  # its tokens were not reported: no fewer than they can have been
            used = self.input_tokens + self.way.output_tokens * self.call.choices
        return self._counted(cost(price or self.price, usage), used)

    def affordable(self, unit: str, fits: int) -> int | None:
        """The cap on each choice with which the call would have fitted into `fits` of `unit`. None: it has none."""
        if unit == "requests" or not self.way.output_tokens:
            return None
        output_tokens = affordable_output_tokens(
            self.price, {unit: fits}, input_tokens=self.input_tokens, audio=self.call.audio, service=self.call.service
        )
        return max(0, min(output_tokens // self.call.choices, self.way.output_tokens))

    def _counted(self, money: Mapping[str, int], tokens_used: int) -> Amounts:
        counted = {"tokens": tokens_used, "requests": 1}
        return {**money, **{unit: counted[unit] for unit in counted if unit in self.units}}


def options_of(call: Call, upstream: Upstream, book: PriceBook, plan: Plan) -> list[tuple[Priced, Option]]:
    """Raises `Declined` 400 for a model without a price: nothing is free by accident."""
    asked = call.output_tokens if call.output_tokens is not None else upstream.default_max_tokens
    units = frozenset(budget.unit for budget in plan.budgets.values()) & {"tokens", "requests"}

    counted: dict[str, int] = {}  # a long prompt is counted once for all ways with one model

    def priced(model: str, output_tokens: int) -> Priced:
        price = book.find(upstream.provider, model)
        if price is None:
            raise not_priced(model)
        if not price.offers(call.service):
            raise unbounded("service_tier", "this model has no price for that service tier")
        if call.audio and not price.hears:
            raise unbounded("messages", "this model has no price for sound")
        if model not in counted:
            counted[model] = call.input_tokens(model)
        return Priced(Way(model, output_tokens), price, counted[model], call, units)

    ways = [("full", GRADE_FULL, priced(call.model, asked))]
    if plan.tiers is msgspec.UNSET:
        return [(way, Option(way.worst(), name=name)) for name, _, way in ways]
    half = -(-asked // 2)
    if half < asked:
        ways.append(("half", GRADE_HALF, priced(call.model, half)))
    cheaper = upstream.cheaper.get(call.model)
    if cheaper is not None:
        ways.append(("cheaper", GRADE_CHEAPER, priced(cheaper, half)))
    return [(way, Option(way.worst(), grade=grade, name=name)) for name, grade, way in ways]
