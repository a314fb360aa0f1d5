"""`POST /v1/estimate`: what a call could cost, and whether that would fit now. Holds nothing and promises nothing.

The bounds are those that a guarded call holds (`web.proxy.intake`, `engine.prices`). A stranger hears shares and
whether it fits; amounts are for whoever has a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from aiohttp import web

from engine.core.documents import BudgetStatus
from engine.core.messages import Amounts
from engine.core.plan import Budget, Plan
from engine.errors import BadAsk
from engine.prices import Price, PriceBook, affordable_output_tokens
from web.answers import Body, json_response, percent
from web.auth import Caller
from web.bodies import read_body, shown
from web.desk import Desk
from web.known import Terms
from web.problem_shapes import NoPlanProblem, NoStatusProblem, NotPricedProblem, SlowDownProblem
from web.problems import NO_RETRY, Problem
from web.proxy.dialect import Call, Way
from web.proxy.intake import Intake
from web.proxy.options import Priced
from web.proxy.upstreams import MAX_TOKENS_DEFAULT, Upstream
from web.read_shapes import EstimateAnswer, EstimateShares
from web.requests import EstimateBody
from web.routes import Route
from web.words import WORDS

NOTHING_CLAIMED: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Estimate:
    """A call that is not made. `budgets`: the shared ones that would count it, as they stand now."""

    priced: Priced
    amounts: Amounts
    budgets: list[BudgetStatus]

    @property
    def fits(self) -> bool:
        return all(self.amounts[budget.unit] <= budget.remaining for budget in self.budgets)

    @property
    def used_pct_after(self) -> dict[str, float]:
        """Share of each budget that would be used, this call held."""
        return {budget.name: percent(budget.used + self.amounts[budget.unit], budget.limit) for budget in self.budgets}

    @property
    def cost_pct(self) -> dict[str, float]:
        """Share of each budget's limit that it could take."""
        return {budget.name: percent(self.amounts[budget.unit], budget.limit) for budget in self.budgets}

    @property
    def affordable_max_tokens(self) -> int | None:
        """The largest cap on the output with which it would fit; 0 if not even the input does, None without a cap."""
        if not self.priced.way.output_tokens:
            return None
        room: Amounts = {}
        for budget in self.budgets:
            room[budget.unit] = min(room.get(budget.unit, budget.remaining), budget.remaining)
        call = self.priced.call
        if room.get("requests", 1) < 1:
            return 0
        most = affordable_output_tokens(
            self.priced.price, room, input_tokens=self.priced.input_tokens, audio=call.audio
        )
        return max(0, most) // call.choices


def estimate(
    body: EstimateBody,
    book: PriceBook,
    plan: Plan,
    upstreams: Iterable[Upstream],
    budgets: Iterable[BudgetStatus],
    claims: Mapping[str, str] = NOTHING_CLAIMED,
) -> Estimate:
    """`claims`: the labels that the caller's key would put on the call.

    Raises `Problem` 400 for a model without a price, `BadAsk` where there is nothing to estimate."""
    price = book.find(body.provider, body.model)
    if price is None:
        raise _not_priced(body.model)
    intake = _intake(body)
    call = Call(
        model=body.model, input_tokens=lambda _: intake.most_tokens(), output_tokens=body.max_tokens, choices=body.n,
        audio=intake.audio,
    )  # fmt: skip
    way = Way(body.model, _output_tokens(body, price, upstreams))
    units = frozenset(budget.unit for budget in plan.budgets.values()) & {"tokens", "requests"}
    priced = Priced(way, price, intake.most_tokens(), call, units)
    amounts = priced.worst()
    labels = {**claims, "provider": price.provider, "model": body.model}
    matching = [now for now in budgets if _counts(plan.budgets.get(now.name), amounts, labels)]
    return Estimate(priced, amounts, matching)


def _intake(body: EstimateBody) -> Intake:
    if body.messages is None and body.input is None:
        raise BadAsk("messages", "expected `messages` or `input`")
    intake = Intake(body.model)
    if body.messages is not None:
        intake.messages(body.messages)
    if body.input is not None:
        intake.input(body.input)
    if body.system is not None:
        intake.messages(body.system)
    if body.tools is not None:
        intake.tools(body.tools)
    return intake


def _output_tokens(body: EstimateBody, price: Price, upstreams: Iterable[Upstream]) -> int:
    """The cap on one choice: as asked, none where the model has no output that costs, else what a guarded call gets."""
    if body.max_tokens is not None:
        return body.max_tokens
    rates = price.usd if price.usd is not None else price.neurons
    if rates is not None and "output" not in rates:
        return 0
    configured = (upstream.default_max_tokens for upstream in upstreams if upstream.provider == price.provider)
    return next(configured, MAX_TOKENS_DEFAULT)


def _counts(budget: Budget | None, amounts: Amounts, labels: dict[str, str]) -> bool:
    return budget is not None and budget.unit in amounts and budget.where.items() <= labels.items()


def _not_priced(model: str) -> Problem:
    detail = f"The model {shown(model)} has no price here, so what it could cost is not known. An operator can set one."
    more = {"outcome": "model_not_priced", "field": "model"}
    return Problem(400, "model-not-priced", detail, title="This model has no price", more=more)


# --- the route --------------------------------------------------------------------------------------------------------


async def _estimate(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    if caller.role is None and (seconds := await desk.slowing.wait_s(request, "estimate")):
        detail = WORDS.slow_down.format(seconds=seconds)
        raise Problem(429, "slow-down", detail, title="Slow down", more={"seconds": seconds}, headers=NO_RETRY)
    body = await read_body(request, EstimateBody)
    terms = await desk.known.ready()
    status = await desk.board.now()
    assert terms.plan is not None
    found = estimate(body, desk.book, terms.plan, desk.settings.upstreams.values(), status.budgets, caller.labels)
    return json_response(document(found, terms, digest=desk.book.digest, amounts=caller.role is not None))


def document(found: Estimate, terms: Terms, *, digest: str, amounts: bool) -> Body:
    """The answer. A stranger gets no `amounts`: whether it fits, and shares."""
    answer: Body = {"fits": found.fits, "cost_pct": found.cost_pct, "used_pct_after": found.used_pct_after}
    if not amounts:
        return answer
    priced = found.priced
    return {
        **answer,
        "amounts": terms.written(found.amounts),
        "affordable_max_tokens": found.affordable_max_tokens,
        "provider": priced.price.provider,
        "model": priced.price.model,
        "input_tokens_max": priced.input_tokens,
        "max_tokens": priced.way.output_tokens,
        "price_book": digest,
    }


ROUTES = (
    Route(
        method="POST", path="/v1/estimate", access="public", handler=_estimate, takes=EstimateBody, tag="spending",
        queue="hold",
        summary="The most that a call could cost, and whether it fits now. Without a key: shares only. Holds nothing.",
        answers={
            200: "The bound.",
            400: "What was sent cannot be understood (`field`), or the model has no price (`outcome`: "
            "`model_not_priced`).",
            429: "Slow down: without a key, 60 estimates a minute. `seconds` says how long to wait.",
            503: "There are no figures yet.",
        },
        gives={200: (EstimateShares, EstimateAnswer)},
        problems=(NotPricedProblem, SlowDownProblem, NoPlanProblem, NoStatusProblem),
    ),
)  # fmt: skip
