"""What a call could cost and what it did, for guarded functions: by its arguments, and by the usage in its answer.

Usage is priced with the price book that came with this program, or with one that is given. Where an answer does not
tell (a stream, a model without a price, a part that the totals leave out) it says nothing, and never guesses.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from engine.errors import BadAsk
from engine.guarding import Measured

if TYPE_CHECKING:
    from engine.prices import PriceBook, Usage

OF_A_CALL = ("model", "messages", "input", "system", "tools", "n")
CAPS = ("max_completion_tokens", "max_output_tokens", "max_tokens")


def cost_of(result: object, book: PriceBook | None = None) -> Measured | None:
    """What an answer of OpenAI or Anthropic (their objects, or its JSON as a mapping) says it cost.

    In `usd` (or `neurons`), `tokens` and `requests`. None where it does not tell.
    """
    from commonpurse.call_logs import CallReader
    from projector.backfill.rows import RowError

    said = _mapping(result)
    if said is None:
        return None
    try:
        found = CallReader(book or _shipped()).priced(said, "auto")
    except RowError:
        return None
    return None if found is None else Measured({**found.costs, **found.beside})


def cost_of_usage(
    model: object, usage: Usage | None, *, provider: str = "", book: PriceBook | None = None
) -> Measured | None:
    """As `cost_of`, for usage that a framework has already taken out of its answer."""
    from commonpurse.call_logs import CallReader
    from projector.backfill.rows import RowError

    if usage is None:
        return None
    try:
        costs, beside = CallReader(book or _shipped()).cost(provider, model, usage)
    except RowError:
        return None
    return Measured({**costs, **beside})


def call_of(signature: inspect.Signature, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a model call among a function's arguments, as an estimate takes them.

    Raises `BadAsk` without `model`.
    """
    bound = signature.bind(*arguments, **named)
    bound.apply_defaults()
    given = dict(bound.arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            given |= given.pop(name, {})
    call = {name: given[name] for name in OF_A_CALL if given.get(name) is not None}
    if not isinstance(call.get("model"), str):
        raise BadAsk("worst", "say what a call could cost: there is no argument `model` to estimate it by")
    cap = next((given[name] for name in CAPS if given.get(name) is not None), None)
    return call if cap is None else {**call, "max_tokens": cap}


def _mapping(result: object) -> Mapping[str, object] | None:
    """An answer as its JSON: numbers exact, for some of them are money."""
    dump = getattr(result, "model_dump_json", None)
    if callable(dump):
        found = json.loads(dump(), parse_float=Decimal)
        return found if isinstance(found, dict) else None
    return result if isinstance(result, Mapping) else None


@functools.cache
def _shipped() -> PriceBook:
    from engine.prices import load_book

    return load_book()
