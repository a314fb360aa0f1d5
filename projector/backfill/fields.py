"""The fields of a row as people and programs write them: ids, amounts, moments, labels. Errors never repeat a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal

from engine.core import checks
from engine.core.limits import AMOUNT_MAX, ID_CHARS_MAX
from projector.backfill.rows import RowError

UNIT_CHARS_MAX = 32
FLOAT_DIGITS = 15  # that a float keeps; what it shows behind them was never written by anybody

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = re.compile(r"\d{1,40}(?:\.\d{1,40})?", re.ASCII)
_WHOLE = re.compile(r"\d{1,19}", re.ASCII)
_NS, _MS = 10**17, 10**11  # a whole number is ns from here on, ms from there on, else seconds


def hold_id(value: object, field: str = "hold") -> str:
    """Whether it has the right characters is for the wallet to say."""
    if not isinstance(value, str) or not 1 <= len(value) <= ID_CHARS_MAX:
        raise RowError(field, f"expected the id of a hold, 1 to {ID_CHARS_MAX} characters")
    return value


def amounts(said: Mapping[str, object], field: str = "amounts") -> dict[str, str]:
    """Unit -> exact decimal text in its shortest form. What is empty or null is not said."""
    given = {unit: value for unit, value in said.items() if value is not None and value != ""}
    for unit in given:
        if not 1 <= len(unit) <= UNIT_CHARS_MAX:
            raise RowError(field, f"expected units of 1 to {UNIT_CHARS_MAX} characters")
    return {unit: amount(value, f"{field}.{unit}" if field else unit) for unit, value in given.items()}


def amount(value: object, field: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise RowError(field, "expected a decimal string like 0.25")
    text = format(value, "f") if isinstance(value, Decimal) and _is_small(value) else str(value).strip()
    if not _DIGITS.fullmatch(text):
        raise RowError(field, "expected plain digits like 0.25: no sign, no exponent, at most 40 on each side")
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


def from_float(value: object, field: str, *, scale: int) -> str:
    """An amount another program kept as a float: what it meant, rounded up to the smallest part."""
    try:
        number = Decimal(str(value).strip())
        if isinstance(value, bool) or not number.is_finite() or not 0 <= number <= AMOUNT_MAX:
            raise ArithmeticError
        meant = number if not number else round(number, FLOAT_DIGITS - 1 - number.adjusted())
        return amount(meant.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_CEILING), field)
    except ArithmeticError:
        raise RowError(field, "expected an amount that is not negative") from None


def moment(value: object, field: str, *, zone_known: bool = False) -> int | None:
    """Nanoseconds: of an RFC 3339 time, or of a whole number of ns, ms or s. `zone_known`: without an offset it is UTC.

    None where it is not said.
    """
    if value is None or value == "":
        return None
    if isinstance(value, Decimal | float | int) and not isinstance(value, bool):
        return _counted(int(value) if 0 <= value < 2**63 else -1, field)
    if not isinstance(value, str):
        raise RowError(field, "expected a time")
    if _WHOLE.fullmatch(value):
        return _counted(int(value), field)
    try:
        found = datetime.fromisoformat(value.strip())
        if found.tzinfo is None and zone_known:
            found = found.replace(tzinfo=UTC)
        since = (found - _EPOCH) // timedelta(microseconds=1) * 1_000
    except (ValueError, TypeError, OverflowError):
        raise RowError(field, "expected a time with its offset, such as 2026-11-30T14:05:00Z") from None
    return _counted(since, field, ns=True)


def labels(value: object, field: str = "labels") -> dict[str, str]:
    if value is None or value == "":
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
        raise RowError(field, "expected an object of names and texts")
    said = {str(name): one for name, one in value.items() if one}
    wrong = checks.labels(said)
    if wrong is not None:
        raise RowError(field, wrong[1])
    return said


def _is_small(value: Decimal) -> bool:
    return value.is_finite() and -40 < value.adjusted() < 40


def _counted(number: int, field: str, *, ns: bool = False) -> int:
    at = number if ns or number >= _NS else number * (10**6 if number >= _MS else 10**9)
    if not 0 <= at <= AMOUNT_MAX:
        raise RowError(field, "expected a time from 1970 to 2262")
    return at
