"""`[prices]` of a `purse.toml`: an operator's own prices, with the unit in the name of every field.

Amounts are decimal strings, read exactly. What could be a slip is refused by its place: a misspelt field, half of a
price, a price a million times off. Only a written zero is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from difflib import get_close_matches
from types import MappingProxyType

import msgspec

from engine.core.amounts import AmountError, format_amount, parse
from engine.errors import Misconfigured
from engine.prices.ids import MODEL_CHARS_MAX, plain
from engine.prices.price import Price, Rates

CEILING = "ceiling"
OWN_PRICES_MAX = 10_000
_NAME_SHOWN_MAX = 32
_FINE = 12  # digits after the point in which a slip is still a number, to be named as one


class _Field(msgspec.Struct, frozen=True):
    """Where an amount goes, and the range outside of which it is a slip (zero is always free)."""

    unit: str
    kind: str
    scale: int
    """Digits after the point: one of the field's smallest part is one pico."""
    low: str
    high: str
    meant: str


_USD_PER_MTOK = ("usd", 6, "0.001", "10000", "dollars for a million tokens")
_NEURONS_PER_MTOK = ("neurons", 6, "50", "1000000000", "neurons for a million tokens")


def _field(how: tuple[str, int, str, str, str], kind: str) -> _Field:
    unit, scale, low, high, meant = how
    return _Field(unit=unit, kind=kind, scale=scale, low=low, high=high, meant=meant)


FIELDS: Mapping[str, _Field] = MappingProxyType(
    {
        "input_usd_per_mtok": _field(_USD_PER_MTOK, "input"),
        "output_usd_per_mtok": _field(_USD_PER_MTOK, "output"),
        "cache_read_usd_per_mtok": _field(_USD_PER_MTOK, "cache_read"),
        "cache_write_usd_per_mtok": _field(_USD_PER_MTOK, "cache_write"),
        "cache_write_1h_usd_per_mtok": _field(_USD_PER_MTOK, "cache_write_1h"),
        "input_audio_usd_per_mtok": _field(_USD_PER_MTOK, "input_audio"),
        "output_audio_usd_per_mtok": _field(_USD_PER_MTOK, "output_audio"),
        "input_image_usd_per_mtok": _field(_USD_PER_MTOK, "input_image"),
        "output_image_usd_per_mtok": _field(_USD_PER_MTOK, "output_image"),
        "neurons_per_mtok_input": _field(_NEURONS_PER_MTOK, "input"),
        "neurons_per_mtok_output": _field(_NEURONS_PER_MTOK, "output"),
        "usd_per_call": _field(("usd", 12, "0.000001", "100", "dollars for a call"), "call"),
        "neurons_per_call": _field(("neurons", 12, "0.01", "1000000", "neurons for a call"), "call"),
    }
)


class OwnPrices(msgspec.Struct, frozen=True):
    """By `provider/model`, or `*/model` for any provider; `ceiling` stands for every model without a price."""

    prices: dict[str, Price]
    ceiling: Price | None = None


def read_own(tables: Mapping[str, object]) -> OwnPrices:
    """The `[prices]` table. Raises `Misconfigured` naming the place and what is allowed there."""
    if len(tables) > OWN_PRICES_MAX:
        raise Misconfigured(f"prices: at most {OWN_PRICES_MAX} models")
    prices: dict[str, Price] = {}
    ceiling: Price | None = None
    for model, written in tables.items():
        place = f'prices."{_shown(model)}"'
        if not plain(model) or len(model) > MODEL_CHARS_MAX:
            raise Misconfigured(f"{place}: expected the id of a model, 1 to {MODEL_CHARS_MAX} characters")
        if model == CEILING:
            ceiling = _price("", CEILING, written, place=f"prices.{CEILING}")
            continue
        price = _price(_provider(written, place=place), plain(model), written, place=place)
        key = f"{price.provider or '*'}/{price.model}"
        if key in prices:
            raise Misconfigured(f"{place}: the same model is given twice; upper and lower case do not matter")
        prices[key] = price
    return OwnPrices(prices, ceiling)


def _price(provider: str, model: str, written: object, *, place: str) -> Price:
    table = _table(written, place=place)
    allowed = FIELDS if model == CEILING else {**FIELDS, "provider": None}
    for name in table:
        if name not in allowed:
            meant = get_close_matches(name[:_NAME_SHOWN_MAX], allowed, n=1)
            hint = f'did you mean "{meant[0]}"?' if meant else f"known here: {', '.join(allowed)}"
            raise Misconfigured(f"{place}.{_shown(name)}: unknown; {hint}")
    rates: dict[str, Rates] = {}
    for name, field in FIELDS.items():
        if name in table:
            rates.setdefault(field.unit, {})[field.kind] = _pico(table[name], field, place=f"{place}.{name}")
    _check_whole(rates, place=place)
    return Price(provider=provider, model=model, usd=rates.get("usd"), neurons=rates.get("neurons"))


def _check_whole(rates: Mapping[str, Rates], *, place: str) -> None:
    """Tokens need the prices of both directions: half of a price would make the other half free by omission."""
    if not rates:
        raise Misconfigured(f'{place}: has no price; write "0" where something is free. Known: {", ".join(FIELDS)}')
    for unit, kinds in rates.items():
        if not kinds.keys() - {"call"}:
            continue
        for kind in ("input", "output"):
            if kind not in kinds:
                name = next(name for name, field in FIELDS.items() if (field.unit, field.kind) == (unit, kind))
                raise Misconfigured(f'{place}.{name}: is required beside the other prices of tokens; "0" makes it free')


def _pico(written: object, field: _Field, *, place: str) -> int:
    try:
        if not isinstance(written, str | int | Decimal):
            raise AmountError("expected a decimal string")
        fine = parse(written, unit=field.unit, scale=_FINE)
        if fine and not Decimal(field.low) <= Decimal(fine).scaleb(-_FINE) <= Decimal(field.high):
            raise AmountError(
                f'{format_amount(fine, scale=_FINE)} cannot be {field.meant}: expected "0" or {field.low} to '
                f"{field.high}. Prices are {field.meant} here"
            )
        return parse(written, unit=field.unit, scale=field.scale)
    except AmountError as error:
        raise Misconfigured(f"{place}: {error}") from None


def _provider(written: object, *, place: str) -> str:
    named = _table(written, place=place).get("provider", "")
    if not isinstance(named, str) or len(named) > MODEL_CHARS_MAX or "/" in named or named.strip() == "*":
        raise Misconfigured(f'{place}.provider: expected the name of a provider, such as "openai"')
    return plain(named)


def _table(written: object, *, place: str) -> Mapping[str, object]:
    if not isinstance(written, Mapping):
        raise Misconfigured(f"{place}: expected a table of names and prices")
    return written


def _shown(name: str) -> str:
    return name[:_NAME_SHOWN_MAX] if name.isprintable() else f"(a name of {len(name)} characters)"
