"""Turns what was told into what a caller gets: a status, headers, a body. One small function an outcome.

Amounts leave as decimal strings, moments as RFC 3339. Nothing is decided here, and only `held` is ever a permission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

import msgspec
from aiohttp import web

from engine.core.amounts import format_amount
from engine.core.messages import (
    Adjust,
    Adjusted,
    Again,
    AnyAsk,
    AnyOutcome,
    ApplyPlan,
    Closed,
    Conflict,
    Cooling,
    Done,
    Exhausted,
    Forgotten,
    Frozen,
    Held,
    Hold,
    Invalid,
    Late,
    Left,
    Line,
    Observe,
    Observed,
    Planned,
    Revoked,
    Settled,
    Stray,
    Unknown,
)  # fmt: skip
from web import wording
from web.known import Terms
from web.moments import NS_PER_S, format_bound, format_moment
from web.problems import NO_RETRY, problem_body, problem_response
from web.purse import Answered

BUSY_RETRY_S = 5  # clients sleep this long inside the call: seconds, never hours
LATE_RETRY_S = 1
NO_PLAN_RETRY_S = 2

Body: TypeAlias = dict[str, object]


@dataclass(slots=True)
class Answer:
    """What goes back over HTTP. From 400 on the body is a problem."""

    status: int
    body: Body
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> web.Response:
        if self.status >= 400:
            return problem_response(self.status, self.body, self.headers)
        return json_response(self.body, status=self.status)


def json_response(body: object, *, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")


@dataclass(slots=True)
class Writer:
    """Writes answers under known units. `refusal_status` is what "used up" is answered with: 402, 403 or 429."""

    terms: Terms
    refusal_status: int = 402

    def answer(self, ask: AnyAsk, answered: Answered) -> Answer:
        """The answer to one ask: the same on its own and in a batch."""
        written = self._outcome(answered.outcome, ask, answered)
        written.body["receipt"] = {"seq": answered.told, "chain": answered.chain}
        return written

    def _outcome(self, outcome: AnyOutcome, ask: AnyAsk, answered: Answered) -> Answer:  # noqa: C901 - a line an outcome
        match outcome:
            case Held():
                return self._held(outcome, created=isinstance(ask, Hold))
            case Settled():
                return Answer(200, self._settled(outcome, "settled"))
            case Exhausted():
                return self._exhausted(outcome, at=answered.at)
            case Again():
                return self._again(outcome, ask, answered)
            case Stray():
                return Answer(200, self._stray(outcome))
            case Frozen():
                return _frozen(outcome)
            case Cooling():
                return _cooling(outcome, at=answered.at)
            case Revoked():
                return _revoked(outcome)
            case Late():
                return _late(outcome)
            case Closed():
                return self._closed(outcome)
            case Conflict():
                return self._conflict(outcome, ask)
            case Invalid():
                return _invalid(outcome, ask)
            case Forgotten():
                nothing: Body = {"charged": {}, "released": {}, "remaining": {}, "used_pct": {}, "flags": []}
                return Answer(200, {"outcome": "forgotten", "id": outcome.id, **nothing})
            case Unknown():
                return unknown(outcome.id)
            case Observed():
                assert isinstance(ask, Observe)
                return Answer(200, self._observed(outcome, ask.budget))
            case Adjusted():
                assert isinstance(ask, Adjust)
                return Answer(200, self._adjusted(outcome, ask.budget))
            case Planned():
                planned: Body = {"digest": outcome.digest, "restarts": outcome.restarts}
                return Answer(200, {"outcome": "planned", "id": outcome.id, **planned})
            case Done():
                return Answer(200, {"outcome": "done", "id": outcome.id})
            case _:
                assert_never(outcome)

    # --- permissions and charges --------------------------------------------------------------------------------------

    def _held(self, told: Held, *, created: bool) -> Answer:
        body: Body = {
            "outcome": "held",
            "id": told.id,
            "option": told.option,
            "amounts": self.terms.written(told.amounts),
            "at": format_moment(told.at),
            "expires_at": format_moment(told.expires_at),
            "periods": {budget: line.period for budget, line in told.budgets.items()},
            "tier": told.tier,
            "remaining": self._remaining(told.budgets),
        }
        if told.n:
            body["n"] = told.n
        return Answer(201 if created else 200, body)

    def _settled(self, told: Settled, outcome: str) -> Body:
        lines: dict[str, Line | Left] = {**told.left, **told.budgets}
        body: Body = {
            "outcome": outcome,
            "id": told.id,
            "state": told.state,
            "charged": self.terms.written(told.charged),
            "released": self.terms.written(told.released),
            "remaining": self._remaining(lines),
            "used_pct": _used_pct(lines),
            "flags": list(told.flags),
        }
        return self._with_dropped(body, told)

    def _stray(self, told: Stray) -> Body:
        body: Body = {
            "outcome": "stray",
            "id": told.id,
            "state": told.state,
            "at": format_moment(told.at),
            "charged": self.terms.written(told.charged),
            "released": {},
            "remaining": self._remaining(told.budgets),
            "used_pct": _used_pct(told.budgets),
            "flags": [],
        }
        return self._with_dropped(body, told)

    def _with_dropped(self, body: Body, told: Settled | Stray) -> Body:
        """Charges to periods older than the memory: they count to that day all the same."""
        if told.dropped:
            body["dropped"] = [
                {"budget": drop.budget, "period": drop.period, "amount": self._written(drop.amount, drop.budget)}
                for drop in told.dropped
            ]
        return body

    def _again(self, told: Again, ask: AnyAsk, answered: Answered) -> Answer:
        """The first answer once more. A hold or a refusal reads like the first, everything else says `again`."""
        match told.was:
            case Held():
                return self._held(told.was, created=False)
            case Settled():
                return Answer(200, self._settled(told.was, "again"))
            case None:
                return Answer(200, {"outcome": "again", "id": told.id, **({"state": told.state} if told.state else {})})
            case first:
                return self._outcome(first, ask, answered)

    # --- refusals -----------------------------------------------------------------------------------------------------

    def _exhausted(self, told: Exhausted, *, at: int) -> Answer:
        scale = self.terms.scales[told.unit]  # the ask has named it
        budget = self.terms.plan.budgets.get(told.budget) if self.terms.plan is not None else None
        used = told.settled + told.extra + told.held
        amounts = {
            name: format_amount(getattr(told, name), scale=scale)
            for name in ("limit", "settled", "held", "extra", "remaining", "fits")
        }
        more: Body = {
            "outcome": "exhausted", "id": told.id, "why": told.why, "budget": told.budget, "unit": told.unit,
            "period": told.period, **amounts, "used_pct": percent(used, told.limit),
            "resets_at": format_bound(told.resets_at),
        }  # fmt: skip
        if told.each is not None:
            more["each"] = told.each
        if budget is not None:
            more |= {name: text for name, text in (("note", budget.note), ("link", budget.link)) if text}
        match told.why:
            case "spent":
                fits = f"{amounts['fits']} {told.unit}" if told.fits else ""
                detail = wording.used_up(budget, fits=fits, at=at, resets_at=told.resets_at)
                title = "Not enough is left" if fits else "The budget is used up"
                return _refusal(self.refusal_status, title, detail, more)
            case "tier":
                more["tier"] = told.tier
                detail = wording.only_cheaper(budget, grade=told.tier, at=at, resets_at=told.resets_at)
                title = "Only cached answers are left" if told.tier is None else "Only cheaper answers are left"
                return _refusal(self.refusal_status, title, detail, more)
            case "busy":
                retry_s = min(BUSY_RETRY_S, max(1, -(-(told.resets_at - at) // NS_PER_S)))
                return _refusal(429, "Busy", wording.busy(retry_s), more, retry_s=retry_s)
            case "never":
                detail = wording.never_fits(budget, limit=amounts["limit"], unit=told.unit, fits=amounts["fits"])
                return _refusal(400, "The call is too large", detail, more)

    def _closed(self, told: Closed) -> Answer:
        detail = f"The hold has ended ({told.state}). This is no permission to call; make a new hold with a new id."
        charged = self.terms.written(told.charged)
        more: Body = {"outcome": "closed", "id": told.id, "state": told.state, "charged": charged}
        return _refusal(409, "The hold has ended", detail, more)

    def _conflict(self, told: Conflict, ask: AnyAsk) -> Answer:
        more: Body = {"outcome": "conflict", "id": told.id, "field": told.field}
        if isinstance(ask, ApplyPlan):
            detail = "The plan changed meanwhile: read it, make the change again, send it with the new digest."
            return _refusal(409, "Another plan is in force", detail, more)
        if told.charged:
            more["charged"] = self.terms.written(told.charged)
        detail = f"This id stands for something else: {told.field} differs. Nothing was changed."
        return _refusal(422, "The id is already used", detail, more)

    # --- operating ----------------------------------------------------------------------------------------------------

    def _observed(self, told: Observed, budget: str) -> Body:
        body: Body = {"outcome": "observed", "id": told.id, "raised_by": self._written(told.raised_by, budget)}
        return body | self._line(told.line, budget)

    def _adjusted(self, told: Adjusted, budget: str) -> Body:
        body: Body = {"outcome": "adjusted", "id": told.id}
        if told.line is not None:
            return body | self._line(told.line, budget)
        if told.dropped is not None:
            body |= {"budget": told.dropped.budget, "period": told.dropped.period, "dropped": True}
        return body

    def _line(self, line: Line, budget: str) -> Body:
        return {
            "budget": budget,
            "period": line.period,
            "limit": self._written(line.limit, budget),
            "remaining": self._written(line.remaining, budget),
            "used_pct": percent(line.limit - line.remaining, line.limit),
        }

    def _remaining(self, lines: Mapping[str, Line | Left]) -> dict[str, str]:
        written = ((budget, self._written(line.remaining, budget)) for budget, line in lines.items())
        return {budget: remaining for budget, remaining in written if remaining is not None}

    def _written(self, amount: int, budget: str) -> str | None:
        scale = self.terms.scale_of(budget)
        return None if scale is None else format_amount(amount, scale=scale)


def percent(part: int, limit: int) -> float:
    """Percent of the limit to a tenth, cut: 100 only when nothing is left. No money is counted with it."""
    if limit <= 0:
        return 100.0
    return part * 1000 // limit / 10


def _used_pct(lines: Mapping[str, Line | Left]) -> dict[str, float]:
    return {budget: percent(line.limit - line.remaining, line.limit) for budget, line in lines.items()}


def _refusal(status: int, title: str, detail: str, more: Body, *, retry_s: int | None = None) -> Answer:
    """With `retry_s`, trying again helps; without, a client that retries would only make noise, and is told so."""
    headers = NO_RETRY if retry_s is None else {"Retry-After": str(retry_s)}
    return Answer(status, problem_body(status, str(more["outcome"]), detail, title=title, more=more), headers)


def _frozen(told: Frozen) -> Answer:
    until = None if told.until is None else format_moment(told.until)
    what = "All spending is" if told.scope == "all" else "This part of the wallet is"
    ends = "until an operator lifts it" if until is None else f"until {until}"
    more: Body = {"outcome": "frozen", "id": told.id, "scope": told.scope, "reason": told.reason, "until": until}
    return _refusal(403, "Frozen", f"{what} frozen {ends}: {told.reason or 'no reason given'}", more)


def _cooling(told: Cooling, *, at: int) -> Answer:
    seconds = max(1, -(-(told.until - at) // NS_PER_S))
    until = format_moment(told.until)
    more: Body = {"outcome": "cooling", "id": told.id, "label": told.label, "until": until, "seconds": seconds}
    return _refusal(429, "Slow down", f"Slow down. New calls are taken again in {seconds} s.", more)


def _revoked(told: Revoked) -> Answer:
    more: Body = {"outcome": "revoked", "id": told.id, "label": told.label, "reason": told.reason}
    return _refusal(403, "Revoked", f"New calls with this {told.label} are refused: {told.reason}", more)


def _late(told: Late) -> Answer:
    more: Body = {"outcome": "late", "id": told.id, "by": format_moment(told.by)}
    detail = "The wallet heard this only after the caller stopped waiting. Nothing was held."
    return _refusal(503, "Too late", detail, more, retry_s=LATE_RETRY_S)


def _invalid(told: Invalid, ask: AnyAsk) -> Answer:
    if told.field == "plan" and not isinstance(ask, ApplyPlan):
        more: Body = {"outcome": "invalid", "why": "no_plan"}
        return _refusal(503, "No plan", "This wallet has no plan yet.", more, retry_s=NO_PLAN_RETRY_S)
    more = {"outcome": "invalid", "id": told.id, "field": told.field, "why": told.why}
    return _refusal(400, "The request cannot be understood", f"{told.field}: {told.why}", more)


def unknown(id: str) -> Answer:
    more: Body = {"outcome": "unknown", "id": id}
    return _refusal(404, "Not found", "The wallet does not know this hold, or has forgotten it.", more)
