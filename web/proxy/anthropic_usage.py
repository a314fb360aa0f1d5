"""What Anthropic says that a message used, in the words of the price book. Read from answers and from streams alike."""

from __future__ import annotations

from collections.abc import Mapping

from engine.prices import Usage
from web.proxy.dialect import Reading


def reading_of(message: object, said: Mapping[str, object] | None = None) -> Reading:
    """Of a message; `said` where its usage has come to be known otherwise, in later events."""
    if not isinstance(message, dict):
        return Reading()
    usage = message.get("usage") if said is None else said
    model = message.get("model")
    return Reading(usage_of(usage), model if isinstance(model, str) else "", exact=not _more_was_run(usage))


def usage_of(said: object) -> Usage | None:
    """None unless it says what came out. Where nothing went in and nothing came out, it is no report either.

    Its own `input_tokens` leave out what was cached; here everything that went in is in it.
    """
    if not isinstance(said, dict):
        return None
    output = _count(said, "output_tokens")
    read = _count(said, "cache_read_input_tokens") or 0
    written = _count(said, "cache_creation_input_tokens") or 0
    written, written_1h = _written(said.get("cache_creation"), written)
    went_in = (_count(said, "input_tokens") or 0) + read + written
    if output is None or not (output or went_in):
        return None
    return Usage(
        input_tokens=went_in,
        cache_read_tokens=read,
        cache_write_tokens=written - written_1h,
        cache_write_1h_tokens=written_1h,
        output_tokens=output,
        web_searches=_count(said.get("server_tool_use"), "web_search_requests") or 0,
        service="fast" if said.get("speed") == "fast" else "",
    )


def says_output(said: object) -> bool:
    """Whether it says how much came out: nothing, too, is a report beside what went in."""
    return _count(said, "output_tokens") is not None


def _written(parts: object, written: int) -> tuple[int, int]:
    """What was written to a cache, and how much of it for an hour: the dearer, and so whatever the parts leave out."""
    if not isinstance(parts, dict):
        return written, 0  # without parts there are only the usual five minutes
    for_5m = _count(parts, "ephemeral_5m_input_tokens") or 0
    for_1h = _count(parts, "ephemeral_1h_input_tokens") or 0
    written = max(written, for_5m + for_1h)
    return written, written - for_5m


def merged(before: Mapping[str, object], later: object) -> dict[str, object]:
    """Later events say totals so far of some counts: they take the place of those before, and null is silence."""
    if not isinstance(later, dict):
        return dict(before)
    return {**before, **{name: count for name, count in later.items() if count is not None}}


def _more_was_run(said: object) -> bool:
    """Whether parts of it were run that the totals leave out (a summary, another model)."""
    rounds = said.get("iterations") if isinstance(said, dict) else None
    return isinstance(rounds, list) and any(
        not isinstance(each, dict) or each.get("type") != "message" for each in rounds
    )


def _count(said: object, name: str) -> int | None:
    """A count as it must be: a whole number, not below zero."""
    found = said.get(name) if isinstance(said, dict) else None
    return found if type(found) is int and found >= 0 else None
