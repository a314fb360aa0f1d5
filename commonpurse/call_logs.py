"""Calls of OpenAI and Anthropic as somebody logged them, read as rows of a backfill: usage, priced with the price book.

A line is an answer as it came (`usage` and `model` in it) or has one inside (`response`, `body`, `message`, ...), as
log lines do. A model without a price, or a report that leaves something out, makes no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from engine.core.amounts import SCALES, format_amount
from engine.prices import Price, PriceBook, Usage, cost
from projector.backfill import fields, hold_ids
from projector.backfill.reading import Format
from projector.backfill.rows import Row, RowError
from web.proxy.anthropic_usage import reading_of
from web.proxy.openai_usage import chat_usage, embeddings_usage, responses_usage

INSIDE = ("response", "result", "body", "message", "completion")
DEPTH_MAX = 4
MOMENTS = ("at", "created_at", "created", "timestamp")


class Priced(NamedTuple):
    """One call: what it cost, what else it used (tokens, one request), and the object that says so."""

    costs: dict[str, str]
    beside: dict[str, str]
    call: Mapping[str, object]


class CallReader:
    """Lines into rows, by the prices of one book."""

    def __init__(self, book: PriceBook, *, hold_field: str | None = None) -> None:
        self.book = book
        self._hold_field = hold_field

    def __call__(self, number: int, line: Mapping[str, object], kind: Format) -> Row | None:
        """None where nobody says what was used. Raises `RowError`."""
        found = self.priced(line, kind)
        if found is None:
            return None
        costs, beside, call = found
        hold = hold_ids.find(line, self._hold_field)
        return Row(number, hold, costs, _moment(line, call), beside=beside, by_price=True)

    def priced(self, line: Mapping[str, object], kind: Format) -> Priced | None:
        """What a call cost, whether its hold is named or not. None and `RowError` as above."""
        call = next(_calls(line, DEPTH_MAX), None)
        if call is None:
            if kind in ("openai", "anthropic"):
                raise RowError("usage", "expected what the call used, as its provider reported it")
            return None
        provider = kind if kind in ("openai", "anthropic") else _provider(line, call)
        usage = _anthropic(call) if provider == "anthropic" else _openai(call)
        if "custom_id" in line:  # the result of a batch job, which has prices of its own
            usage = replace(usage, batch=True)
        return Priced(*self.cost(provider, call.get("model"), usage), call)

    def cost(self, provider: str, model: object, usage: Usage) -> tuple[dict[str, str], dict[str, str]]:
        """What this usage of a model cost, and what else it used. `provider` may be "". Raises `RowError`."""
        price = self._price(provider, model, usage)
        costs = {unit: format_amount(spent, scale=SCALES[unit]) for unit, spent in cost(price, usage).items()}
        return costs, {"tokens": str(usage.input_tokens + usage.output_tokens), "requests": str(usage.calls)}

    def _price(self, provider: str, model: object, usage: Usage) -> Price:
        if not isinstance(model, str) or not model:
            raise RowError("model", "expected the model that answered")
        price = self.book.find(provider, model)
        if price is None or self._is_ceiling(price):
            raise RowError("model", "has no price in the price book; give it one in `[prices]`, or say its cost")
        if not price.offers(usage.service):
            raise RowError("service_tier", "has no price of its own in the price book")
        return price

    def _is_ceiling(self, price: Price) -> bool:
        """A ceiling bounds what a call may cost; what it did cost only a price of its own can say."""
        ceiling = self.book.contents.ceiling
        return ceiling is not None and price == replace(ceiling, provider=price.provider, model=price.model)


def _calls(line: Mapping[str, object], depth: int) -> Iterator[Mapping[str, object]]:
    """The nearest object that says what was used."""
    if isinstance(line.get("usage"), Mapping):
        yield line
    if depth:
        for name in INSIDE:
            inside = line.get(name)
            if isinstance(inside, Mapping):
                yield from _calls(inside, depth - 1)


def _provider(line: Mapping[str, object], call: Mapping[str, object]) -> str:
    said = line.get("provider")
    if isinstance(said, str) and said:
        return said.lower()
    usage, model = call["usage"], str(call.get("model", ""))
    assert isinstance(usage, Mapping)
    anthropic = call.get("type") == "message" or "cache_creation_input_tokens" in usage or model.startswith("claude")
    return "anthropic" if anthropic else "openai"


def _anthropic(call: Mapping[str, object]) -> Usage:
    reading = reading_of(call)
    if reading.usage is None:
        raise RowError("usage.output_tokens", "expected the tokens that went in and came out, whole numbers")
    if not reading.exact:
        raise RowError("usage.iterations", "more was run than the totals say; say its cost")
    return reading.usage


def _openai(call: Mapping[str, object]) -> Usage:
    said, service = call["usage"], call.get("service_tier")
    assert isinstance(said, Mapping)
    if "input_tokens" in said:
        usage = responses_usage(said, service=service)
    elif "completion_tokens" in said:
        usage = chat_usage(said, service=service)
    else:
        usage = embeddings_usage(said)
    if usage is None:
        raise RowError("usage", "expected the tokens that went in and came out, whole numbers")
    return usage


def _moment(line: Mapping[str, object], call: Mapping[str, object]) -> int | None:
    for name in MOMENTS:
        for where in (line, call):
            if where.get(name) not in (None, ""):
                return fields.moment(where[name], name)
    return None
