"""Every way a call is refused, and the error that each client makes of it. `docs/refusals.md` shows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from desk_client import DOLLAR
from guarded_provider import DOLLAR_A_DAY, GuardedProvider

from engine.core.messages import Adjust, Freeze, Hold, Option, Revoke, Settle
from engine.core.plan import Budget, Plan, Tier, Tiers

Before = Callable[[GuardedProvider], Awaitable[None]]

_ALL = {
    400: "BadRequestError", 401: "AuthenticationError", 402: "APIStatusError", 403: "PermissionDeniedError",
    404: "NotFoundError", 409: "ConflictError", 422: "UnprocessableEntityError", 429: "RateLimitError",
}  # fmt: skip
RAISES: Mapping[str, Mapping[int, str]] = {
    "openai": _ALL,
    "anthropic": {**_ALL, 402: "PaymentRequiredError"},
    "anthropic 1": _ALL,
    "openai (npm)": {**_ALL, 402: "APIError"},
    "@anthropic-ai/sdk": {**_ALL, 402: "PaymentRequiredError"},
    "ai": dict.fromkeys(_ALL, "AI_APICallError"),
}
"""Family of clients -> status -> the name of the error."""

RETRIED = {"ai": "AI_RetryError"}
"""Family of clients -> the name of the error after the last try, where that is another."""

TRIES = 3
"""Of every client as it comes, if it is not told to stop."""


CODES: Mapping[str, tuple[str, str]] = {
    "spent": ("insufficient_quota", "spent"),
    "tier": ("insufficient_quota", "tier"),
    "never": ("call_exceeds_budget", "never"),
    "frozen": ("budget_frozen", "frozen"),
    "revoked": ("access_revoked", "revoked"),
    "not priced": ("model_not_priced", "model_not_priced"),
    "wrong key": ("invalid_api_key", "wrong_key"),
    "not guarded": ("unknown_url", "unknown_url"),
    "other call": ("conflict", "conflict"),
    "ended": ("closed", "closed"),
    "busy": ("rate_limit_exceeded", "busy"),
}
"""Situation -> `error.code` of OpenAI's shape, `error.details.error_code` of Anthropic's."""


async def nothing(guard: GuardedProvider) -> None:
    pass


async def spend(guard: GuardedProvider, amount: int = DOLLAR) -> None:
    """So much of today is gone."""
    await guard.purse.ask(Adjust("spent", "day", "2026-11-30", amount, "a test", "test"))


async def spend_most(guard: GuardedProvider) -> None:
    await spend(guard, DOLLAR * 6 // 10)


async def freeze(guard: GuardedProvider) -> None:
    await guard.purse.ask(Freeze("frozen", "all", "a bill to look at"))


async def revoke(guard: GuardedProvider) -> None:
    for provider in ("openai", "anthropic"):
        await guard.purse.ask(Revoke(f"revoked-{provider}", "provider", provider, "too dear"))


async def hold_the_same_id(guard: GuardedProvider) -> None:
    await guard.purse.ask(Hold("a-key", [Option({"usd": 1})], by=guard.purse.by(5), labels={"provider": "other"}))


async def hold_all(guard: GuardedProvider) -> None:
    """Somebody else's call that is still running."""
    await guard.purse.ask(Hold("theirs", [Option({"usd": DOLLAR})], by=guard.purse.by(5), labels={}))


async def give_back(guard: GuardedProvider) -> None:
    """That call has ended, and cost nothing."""
    await guard.purse.ask(Settle("theirs", release=True))


@dataclass(frozen=True)
class Refusal:
    """`before`: how the wallet comes to it. `asked`: what the call says otherwise."""

    name: str
    meaning: str
    status: int
    words: str
    before: Before = nothing
    plan: Plan = DOLLAR_A_DAY
    asked: Mapping[str, Any] = field(default_factory=dict)
    does: str = ""
    """What is asked for in place of an answer."""


TIERS = Plan(budgets={"day": Budget("usd", DOLLAR)}, tiers=Tiers([Tier(up_to=500_000, grade=2)]))
SMALL = Plan(budgets={"day": Budget("usd", 10)})
IDEMPOTENT = {"headers": {"Idempotency-Key": "a-key"}}

REFUSALS = (
    Refusal("spent", "the budget is used up", 402, "resets at 00:00 UTC", spend),
    Refusal("tier", "only cached answers are left", 402, "resets at 00:00 UTC", spend_most, TIERS),
    Refusal("never", "the call is larger than the budget", 400, "budget", plan=SMALL),
    Refusal("not priced", "the model has no price", 400, "has no price here", asked={"model": "unheard-of"}),
    Refusal("frozen", "an operator stopped spending", 403, "a bill to look at", freeze),
    Refusal("revoked", "the access was taken away", 403, "too dear", revoke),
    Refusal("wrong key", "not a key of this wallet", 401, "key", asked={"key": "purse_another"}),
    Refusal("not guarded", "the address is not guarded", 404, "Nothing is guarded", does="elsewhere"),
    Refusal("other call", "the Idempotency-Key stands for another call", 422, "differs", hold_the_same_id,
            asked=IDEMPOTENT),
)  # fmt: skip
"""Asked again, each would be refused again: one request, whatever the client."""

ENDED = Refusal("ended", "the call under this Idempotency-Key has had its answer", 409, "has ended")
"""As those, but the AI SDK, which does not read `x-should-retry`, tries it again."""

BUSY = Refusal("busy", "other calls hold what is left", 429, "Try again")
"""Tried again by every client, when it is told to."""


def situations() -> Iterator[str]:
    """The rows of the table of situations."""
    for refusal in (*REFUSALS, ENDED, BUSY):
        openai, anthropic = CODES[refusal.name]
        requests = "up to 3" if refusal is BUSY else "1; `ai`: 3" if refusal is ENDED else "1"
        yield f"| {refusal.meaning} | {refusal.status} | `{openai}` | `{anthropic}` | {requests} |"


def errors() -> Iterator[str]:
    """The rows of the table of errors."""
    for status in sorted({refusal.status for refusal in (*REFUSALS, ENDED, BUSY)}):
        names = [f"`{raised[status]}`" for raised in RAISES.values()]
        if status in (BUSY.status, ENDED.status):
            names = [f"`{RETRIED[family]}`" if family in RETRIED else name
                     for family, name in zip(RAISES, names, strict=True)]  # fmt: skip
        yield f"| {status} | {' | '.join(names)} |"


def code_of(error: Mapping[str, Any]) -> str:
    """The one word for programs, where this provider's clients look for it."""
    told = error["body"].get("error", error["body"])
    return str(told.get("code") or told["details"]["error_code"])


def caught_as(error: Mapping[str, Any]) -> str:
    """The first of its classes that is the official client's own: LangChain's stand before them, with longer names."""
    return str(next(kind for kind in error["catch"] if kind == "OpenAIError" or not kind.startswith("OpenAI")))
