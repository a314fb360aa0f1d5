"""LiteLLM's proxy: a callback that holds every request before it is routed and settles it by what came back.

    # purse_callback.py, beside the proxy's config.yaml
    purse = Purse(os.environ["PURSE_URL"], os.environ["PURSE_KEY"])
    guard = PurseGuard(purse)

    # config.yaml
    litellm_settings:
      callbacks: purse_callback.guard

One that does not fit is answered with 402 (429 where only others' holds are in the way) and goes nowhere. Retries and
fallbacks of one request share its hold. Fail closed: without the wallet the answer is 503. A stream that its client
leaves, and whatever ends without a word, lapses at its grant.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_UP, Decimal
from typing import Any

from fastapi import HTTPException
from litellm.integrations.custom_logger import CustomLogger

from commonpurse.aio import Holding, Purse
from commonpurse.costs import CAPS, OF_A_CALL, cost_of
from commonpurse.integrations.open_holds import OpenHolds
from engine.errors import BadAsk, Exhausted, NoAnswer, NotAllowed, Refused
from engine.guarding import Measured, Said, Terms, Worst
from engine.holding import OnError

HOLD = "purse_hold"
NOTES = ("litellm_metadata", "metadata")
"""Where LiteLLM keeps notes on a request: the first where it would send the other to the provider."""

NANO = Decimal("1e-9")
NO_RETRY = {"x-should-retry": "false"}
BUSY_S = 5


class PurseGuard(CustomLogger):
    """For `litellm_settings.callbacks`. One a proxy process."""

    def __init__(
        self,
        purse: Purse,
        worst: Worst | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        on_error: OnError = "charge",
        ttl_s: int | None = None,
    ) -> None:
        """`worst`: the most a request could cost, or a function of its body; None: the wallet is asked for an estimate.

        `on_error`: what an error that no retry or fallback mended means; see `engine.holding`.
        """
        super().__init__()
        self._purse, self._worst, self._labels = purse, worst, dict(labels or {})
        self._on_error, self._ttl_s = on_error, ttl_s
        self._open: OpenHolds[Holding] = OpenHolds()

    # --- what LiteLLM calls -------------------------------------------------------------------------------------------

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> Any:
        """Raises `HTTPException` where the request must not be made."""
        model = str(data.get("model") or "")
        try:
            worst = await self._most(data)
            hold = await self._purse.open(worst, labels={**self._labels, "model": model}, ttl_s=self._ttl_s)
        except Exhausted as refused:
            raise _refused(refused) from refused
        except Refused as refused:
            raise _answer(403, refused.name, str(refused), NO_RETRY) from refused
        except BadAsk as wrong:
            raise _answer(400, "invalid", str(wrong), NO_RETRY) from wrong
        except (NoAnswer, NotAllowed) as error:
            raise _answer(503, "no_answer", f"the wallet cannot be asked: {error}", {"Retry-After": "2"}) from error
        self._open.put(hold.id, hold)
        where = next((name for name in NOTES if isinstance(data.get(name), dict)), NOTES[-1])
        data[where] = {**(data.get(where) or {}), HOLD: hold.id}  # whatever the client wrote there
        return data

    async def async_log_success_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Of a stream it comes once, at its end, with the answer put together."""
        hold = self._take(kwargs.get("litellm_params") or {})
        if hold is not None:
            Terms({}, lambda said: cost_of(said) or _by_litellm(kwargs)).settle(hold, response_obj)
            await hold.end()

    async def async_post_call_failure_hook(
        self, request_data: dict[str, Any], original_exception: Exception, *about: Any, **more: Any
    ) -> None:
        """The request has failed for good."""
        hold = self._take(request_data)
        if hold is not None:
            hold.failed(original_exception, self._on_error)
            await hold.end()

    # --- holding ------------------------------------------------------------------------------------------------------

    async def _most(self, data: dict[str, Any]) -> Said:
        if callable(self._worst):
            said: Any = self._worst(data)
            return dict(said)
        if self._worst is not None:
            return self._worst
        call = {name: data[name] for name in OF_A_CALL if data.get(name) is not None}
        if (cap := next((data[name] for name in CAPS if data.get(name) is not None), None)) is not None:
            call["max_tokens"] = cap
        return (await self._purse.estimate(**call)).amounts

    def _take(self, about: Mapping[str, Any]) -> Holding | None:
        """The hold of a request, which is in its notes."""
        noted = (about[name][HOLD] for name in NOTES if HOLD in (about.get(name) or {}))
        return self._open.take(str(next(noted, "")))


def _by_litellm(kwargs: Mapping[str, Any]) -> Measured | None:
    """Its own figure, where the price book has none: the shortest decimal of it, to the next nano-dollar."""
    figure = kwargs.get("response_cost")
    if isinstance(figure, bool) or not isinstance(figure, int | float) or not figure > 0:
        return None
    return Measured(usd=Decimal(repr(figure)).quantize(NANO, rounding=ROUND_UP), requests=1)


def _refused(refused: Exhausted) -> HTTPException:
    more = {
        "why": refused.why, "budget": refused.budget, "fits": f"{refused.fits:f}", "unit": refused.unit,
        "resets_at": None if refused.resets_at is None else refused.resets_at.isoformat(),
    }  # fmt: skip
    if refused.why == "busy":
        return _answer(429, "exhausted", str(refused), {"Retry-After": str(BUSY_S)}, **more)
    return _answer(400 if refused.why == "never" else 402, "exhausted", str(refused), NO_RETRY, **more)


def _answer(status: int, outcome: str, error: str, headers: dict[str, str], **more: object) -> HTTPException:
    return HTTPException(status, {"error": error, "outcome": outcome, **more}, headers)
