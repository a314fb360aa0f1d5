"""From what a provider says to the integer that is observed: exact, and rounded up once. No float comes near it."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, localcontext

from engine.core.amounts import round_up
from engine.core.limits import AMOUNT_MAX
from projector.observers.source import Unreadable

_DIGITS_MAX = 40  # on either side of the point; a provider's own floats have 17
_PRECISION = 4 * _DIGITS_MAX  # sums of such numbers stay exact


def exact_sum(parts: Iterable[Decimal]) -> Decimal:
    """The sum, to the last digit. Raises `Unreadable` for what is no number a bill could have."""
    with localcontext(prec=_PRECISION):
        return sum((_plain(part) for part in parts), Decimal(0))


def _plain(part: Decimal) -> Decimal:
    exponent = part.as_tuple().exponent
    if not isinstance(exponent, int) or part.adjusted() >= _DIGITS_MAX or exponent < -_DIGITS_MAX:
        raise Unreadable("its answer has a number that is no amount")
    return part


def smallest_parts(figure: Decimal, *, scale: int) -> int:
    """The figure in its unit's smallest part, rounded up. Raises `Unreadable` if it is negative or out of range."""
    numerator, denominator = _plain(figure).as_integer_ratio()
    amount = round_up(numerator * 10**scale, denominator)
    if not 0 <= amount <= AMOUNT_MAX:
        raise Unreadable("its figure is negative" if amount < 0 else "its figure is larger than any amount")
    return amount
