"""What a program asks, as the HTTP API takes it: amounts become decimal strings, and floats never leave here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from urllib.parse import quote

from commonpurse.client.answers import Amounts
from engine.core.plan import LapsePolicy
from engine.errors import BadAsk
from engine.guarding import Said
from engine.holding import Ending

DIGITS_MAX = 40
IDS_KEEP = ":"  # needs no escape in a path
NOTHING: Mapping[str, str | int | Decimal] = {}


@dataclass(frozen=True, slots=True)
class Option:
    """One way to make the call, and the most it could cost. `least`: grant what is left, but at least this much.

    `grade`: how cheap an answer it is, 0 the best; the plan's tiers judge it.
    """

    amounts: Said
    least: Said = field(default_factory=lambda: NOTHING)
    grade: int | None = None
    name: str = ""


def hold(
    id: str,
    amounts: Said | None,
    options: Sequence[Option] | None,
    *,
    labels: Mapping[str, str] | None,
    ttl_s: int | None,
    on_lapse: LapsePolicy | None,
    wait_s: float,
) -> dict[str, object]:
    """The body of a hold. Raises `BadAsk`."""
    if (amounts is None) == (options is None):
        raise BadAsk("amounts", "say either amounts or options")
    body: dict[str, object] = {"id": id, "labels": dict(labels or {}), "wait_s": wait_s}
    if amounts is not None:
        body["amounts"] = written(amounts)
    else:
        body["options"] = [_option(option, f"options[{index}]") for index, option in enumerate(options or ())]
    more = {"ttl_s": ttl_s, "on_lapse": on_lapse}
    return body | {name: value for name, value in more.items() if value is not None}


def path_of(hold: str, verb: str) -> str:
    """Where `settle`, `release` or `renew` of this hold is asked."""
    return f"/v1/holds/{quote(hold, safe=IDS_KEEP)}/{verb}"


def ending(hold: str, end: Ending[Decimal]) -> tuple[str, dict[str, object]]:
    """Where and how a hold is ended."""
    if end.release:
        return path_of(hold, "release"), {}
    return path_of(hold, "settle"), {"amounts": written(end.amounts), "estimated": end.estimated}


def decimals(amounts: Said, field: str = "amounts") -> Amounts:
    """Amounts in units as exact numbers. Raises `BadAsk` naming the unit."""
    return {unit: _decimal(amount, f"{field}.{unit}") for unit, amount in amounts.items()}


def written(amounts: Said, field: str = "amounts") -> dict[str, str]:
    """Amounts in units as decimal strings. Raises `BadAsk` naming the unit."""
    return {unit: format(amount, "f") for unit, amount in decimals(amounts, field).items()}


def _option(option: Option, place: str) -> dict[str, object]:
    said: dict[str, object] = {"amounts": written(option.amounts, f"{place}.amounts"), "name": option.name}
    if option.least:
        said["least"] = written(option.least, f"{place}.least")
    if option.grade is not None:
        said["grade"] = option.grade
    return said


def _decimal(amount: object, place: str) -> Decimal:
    if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal):
        raise BadAsk(place, "expected a decimal string, an int or a Decimal; never a float")
    try:
        exact = Decimal(amount)
    except InvalidOperation:
        raise BadAsk(place, 'expected a decimal string like "0.25"') from None
    if not exact.is_finite() or not -DIGITS_MAX < exact.adjusted() < DIGITS_MAX:
        raise BadAsk(place, f"expected a number of fewer than {DIGITS_MAX} digits")
    return exact
