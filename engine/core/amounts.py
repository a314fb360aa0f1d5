"""Integer money: parse what people write, format what they read, round up once.

An amount is an `int` of a unit's smallest part. A unit has a *scale*: how many decimal digits that part has
(`usd` 9: one is a nano-dollar). Floats never come in: a JSON number arrives here as `Decimal` or `int`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from engine.core.limits import AMOUNT_MAX

SCALES: Mapping[str, int] = {"usd": 9, "neurons": 6, "tokens": 0, "jpy": 6, "requests": 0}
"""The units every wallet knows. A plan may add more; a unit's scale never changes."""

SCALE_MAX = 12

_DIGITS_MAX = 40  # on either side of the point: wide enough to tell "too much" from "not a number"
_PLAIN = re.compile(rf"(-?)(\d{{1,{_DIGITS_MAX}}})(?:\.(\d{{1,{_DIGITS_MAX}}}))?", re.ASCII)


class AmountError(ValueError):
    """What was written is no amount of that unit. Says why and what is allowed; never repeats a long value."""


def parse(written: str | int | Decimal, *, unit: str, scale: int, signed: bool = False) -> int:
    """Turn `"0.0123"` into the integer of `unit`'s smallest part (12,300,000 for scale 9).

    Takes a decimal string, an `int` or a `Decimal` (a JSON number read exactly). Plain digits only: no exponent,
    no sign unless `signed`, no more digits after the point than `scale`. Raises `AmountError`.
    """
    if isinstance(written, bool) or not isinstance(written, str | int | Decimal):
        raise AmountError(f"expected a decimal string of {unit}, got {_kind(written)}")
    text = _digits(written)
    found = _PLAIN.fullmatch(text)
    if found is None:
        raise AmountError(f"expected a decimal string of {unit} like {_example(scale)}, got {_show(text)}")
    sign, whole, fraction = found[1], found[2], (found[3] or "").rstrip("0")
    if sign and not signed:
        raise AmountError(f"{unit} must not be negative")
    if len(fraction) > scale:
        raise AmountError(f"{unit} has at most {scale} digits after the point, got {len(fraction)}")
    value = int(whole + fraction.ljust(scale, "0"))
    if value > AMOUNT_MAX:
        raise AmountError(f"{unit} must be at most {format_amount(AMOUNT_MAX, scale=scale)}")
    return -value if sign else value


def format_amount(amount: int, *, scale: int) -> str:
    """The shortest exact decimal string: `format_amount(12_300_000, scale=9)` is `"0.0123"`."""
    sign, digits = ("-" if amount < 0 else ""), str(abs(amount)).rjust(scale + 1, "0")
    whole, fraction = (digits[:-scale], digits[-scale:].rstrip("0")) if scale else (digits, "")
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def round_up(numerator: int, denominator: int) -> int:
    """The one rounding rule: a cost that falls between two smallest parts costs the larger one."""
    return -(-numerator // denominator)


def _digits(written: str | int | Decimal) -> str:
    if isinstance(written, int):
        bound = 10 ** (_DIGITS_MAX - 1)  # far too much already, and Python refuses to write out 4,300 digits
        return str(max(-bound, min(written, bound)))
    if isinstance(written, Decimal) and written.is_finite() and -_DIGITS_MAX < written.adjusted() < _DIGITS_MAX:
        return format(written, "f")  # 1e-3 and 0.001 are the same JSON number
    return str(written)


def _example(scale: int) -> str:
    return '"0.25"' if scale >= 2 else '"25"'


def _kind(value: object) -> str:
    names = {bool: "true or false", float: "a float", type(None): "null", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def _show(text: str) -> str:
    return f'"{text}"' if len(text) <= 24 and text.isprintable() else f"{len(text)} characters"
