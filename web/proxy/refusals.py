"""Why a call was not made, in no provider's shape yet. A dialect's provider writes it as its own clients read errors.

    Declined    raised anywhere before the call, answered in one place

An outcome of the wallet becomes the same words, status and headers that `POST /v1/holds` answers with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.core.messages import Exhausted, Held
from web.answers import Answer
from web.problems import NO_RETRY, Problem
from web.purse import Answered

_METADATA = (
    "budget",
    "used_pct",
    "held_pct",
    "resets_at",
    "until",
    "seconds",
    "scope",
    "label",
    "field",
    "note",
    "link",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """`reason` is one short word for programs. Without `retry_s` trying again is useless, and the client is told so."""

    status: int
    reason: str
    message: str
    param: str | None = None
    retry_s: int | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def headers(self) -> Mapping[str, str]:
        return NO_RETRY if self.retry_s is None else {"Retry-After": str(self.retry_s)}


class Declined(Exception):
    """Ends a call before anything was sent."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"{refusal.status} {refusal.reason}")
        self.refusal = refusal


def bad(param: str, why: str) -> Declined:
    """The caller's error in one field of the body."""
    return Declined(Refusal(status=400, reason="invalid", message=f"{param}: {why}", param=param))


def unbounded(param: str, why: str) -> Declined:
    """What this field asks for has no upper bound that we know: it could cost anything, so it is not sent."""
    message = f"{param}: {why}. What it could cost has no bound known here, so it is not sent."
    return Declined(Refusal(status=400, reason="cannot_bound", message=message, param=param))


def not_priced(model: str) -> Declined:
    message = f"The model {model} has no price here, so what it could cost is not known. The operator can set one."
    return Declined(Refusal(status=400, reason="model_not_priced", message=message, param="model"))


def no_budget(provider: str) -> Declined:
    """A guard that guards nothing must not look like one."""
    message = (
        f"No budget of this wallet counts calls to {provider}, so nothing would limit them. The operator can add one."
    )
    return Declined(Refusal(status=403, reason="no_budget", message=message))


def of_problem(problem: Problem) -> Refusal:
    """One of our own HTTP errors (no key, nobody to decide) in neutral form."""
    reason = str(problem.body["type"]).rpartition("/")[2].replace("-", "_")
    retry_s = problem.headers.get("Retry-After")
    param = problem.body.get("field")
    return Refusal(
        status=problem.status, reason=reason, message=str(problem.body["detail"]),
        param=param if isinstance(param, str) else None, retry_s=None if retry_s is None else int(retry_s),
    )  # fmt: skip


def of_outcome(answered: Answered, answer: Answer, *, affordable: int | None, wallet: str, hold: str) -> Refusal:
    """What the wallet said to `hold` that is no permission. `affordable`: the output tokens that would have fitted."""
    body = answer.body
    outcome = answered.outcome
    was = getattr(outcome, "was", None) or outcome
    if isinstance(was, Held):
        message = "A call with this Idempotency-Key is being made. Its answer goes to whoever asked first."
        return Refusal(status=409, reason="in_progress", message=message, metadata={"hold": hold})
    metadata: dict[str, object] = {"wallet": wallet, "reason": body.get("why") or body["outcome"], "hold": hold}
    metadata |= {name: body[name] for name in _METADATA if name in body}
    message = str(body["detail"])
    if isinstance(was, Exhausted):
        metadata["held_pct"] = was.held * 1000 // was.limit / 10 if was.limit > 0 else 100.0
        metadata["affordable_max_tokens"] = affordable
        if affordable is not None and affordable > 0:
            message += f" Try max_tokens <= {affordable}."
    retry_s = answer.headers.get("Retry-After")
    return Refusal(
        status=answer.status, reason=str(metadata["reason"]), message=message,
        retry_s=None if retry_s is None else int(retry_s), metadata=metadata,
    )  # fmt: skip
