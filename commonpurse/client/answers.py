"""What the wallet answers a program, typed: amounts are `Decimal`, moments `datetime`, and a refusal is data.

Reading is tolerant, for a newer wallet may say more, and never guesses: an answer that cannot be read is `NoAnswer`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TypeAlias, TypeVar

import msgspec

from commonpurse.client.connections import Answer
from engine.errors import BadAsk, Exhausted, NoAnswer, NotAllowed, Refused

Amounts: TypeAlias = dict[str, Decimal]
"""Unit -> amount in units."""

Kind = TypeVar("Kind")

WORLD_FAILED = frozenset({408, 425, 429, 500, 502, 503, 504})


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """The only permission to call. `option`: which of the options was granted; `remaining`: by budget, where shown."""

    id: str
    amounts: Amounts
    at: datetime
    expires_at: datetime
    option: int = 0
    remaining: Amounts = {}
    tier: int = 0
    n: int = 0


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What a call is charged. `outcome`: settled, again, stray or forgotten; `flags`: late, overrun, unheld, ..."""

    outcome: str
    id: str
    state: str = ""
    charged: Amounts = {}
    released: Amounts = {}
    remaining: Amounts = {}
    flags: list[str] = []


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Any other outcome: exhausted, frozen, cooling, revoked, closed, conflict, unknown. `detail` is a sentence.

    Of an exhausted one: `why` (never, spent, busy, tier), the budget, the most of `unit` that would have fitted, and
    when its period ends. `retry_after_s`: 0 unless trying again soon can help.
    """

    outcome: str
    id: str = ""
    detail: str = ""
    why: str = ""
    budget: str = ""
    unit: str = ""
    fits: Decimal | None = None
    resets_at: datetime | None = None
    retry_after_s: float = 0.0

    def error(self) -> Refused:
        """As what a `with` block raises."""
        if self.outcome != "exhausted":
            return Refused(name=self.outcome, detail=self.detail)
        return Exhausted(
            why=self.why, budget=self.budget, unit=self.unit, fits=self.fits or Decimal(0), resets_at=self.resets_at,
            detail=self.detail,
        )  # fmt: skip


class Estimated(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a call could cost, by unit, and whether that fits now."""

    amounts: Amounts
    fits: bool
    input_tokens_max: int = 0
    max_tokens: int = 0
    affordable_max_tokens: int | None = None


class NotNow(Exception):
    """Nobody decided, or it is not known: the same ask may be sent again. `kept`: it need not be."""

    def __init__(self, why: str, retry_after_s: float = 0.0, *, kept: bool = False) -> None:
        super().__init__(why)
        self.retry_after_s, self.kept = retry_after_s, kept


class _Problem(msgspec.Struct, frozen=True):
    """What every answer that is no permission may say."""

    type: str = ""
    title: str = ""
    detail: str = ""
    outcome: str = ""
    id: str = ""
    field: str = ""
    why: str = ""
    budget: str = ""
    unit: str = ""
    fits: str | None = None
    resets_at: str | None = None
    spooled: bool = False


def held(answer: Answer) -> Held | Refusal:
    """The answer to a hold or a renewal. Raises `NotNow`, `NotAllowed`, `BadAsk`, `NoAnswer`."""
    return _read(answer, Held) if answer.status in (200, 201) else refusal(answer)


def settled(answer: Answer) -> Settled | Refusal:
    """The answer to a settle or a release. Raises as `held` does."""
    return _read(answer, Settled) if answer.status == 200 else refusal(answer)


def estimated(answer: Answer) -> Estimated:
    """The answer to an estimate. Raises as `held` does; `BadAsk` for a model without a price."""
    if answer.status == 200:
        return _read(answer, Estimated)
    said = refusal(answer)
    raise BadAsk("model", said.detail or said.outcome)


def refusal(answer: Answer) -> Refusal:
    """What a problem is: an outcome, or one of the errors."""
    said = _problem(answer.body)
    decided = said.outcome not in ("", "late", "invalid")
    if decided and (answer.status < 500 or said.outcome in ("frozen", "revoked")):
        return Refusal(
            outcome=said.outcome, id=said.id, detail=said.detail, why=said.why, budget=said.budget, unit=said.unit,
            fits=None if said.fits is None else Decimal(said.fits), resets_at=_moment(said.resets_at),
            retry_after_s=answer.retry_after_s,
        )  # fmt: skip
    told = said.detail or said.title or f"HTTP {answer.status}"
    if answer.status in WORLD_FAILED and not said.type.endswith("/untrusted"):
        raise NotNow(told, answer.retry_after_s, kept=said.spooled)
    if answer.status in (401, 403):
        raise NotAllowed(told)
    if answer.status in (400, 404, 413, 422):
        raise BadAsk(said.field or "request", said.why or told)
    raise NoAnswer(told)


def _problem(body: bytes) -> _Problem:
    try:
        return msgspec.json.decode(body, type=_Problem, strict=False)
    except msgspec.MsgspecError:
        return _Problem()


def _moment(written: str | None) -> datetime | None:
    return None if written is None else datetime.fromisoformat(written).astimezone(UTC)


def _read(answer: Answer, kind: type[Kind]) -> Kind:
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except msgspec.MsgspecError as error:
        raise NotNow(f"an answer that cannot be read ({error})") from error
