"""What happened to a call, event by event, in words: from the plain events that `projector.audit.life` writes.

It says what the record says. What nobody recorded, when a call was sent on say, it leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from projector.audit.life import Event
from web.known import Terms
from web.pages.amounts import counted
from web.pages.past_words import HOLD
from web.statement import grouped

Kind = Literal["held", "more", "progress", "end", "refused", "other"]


class Happening(msgspec.Struct, frozen=True):
    """One event: of what kind, its headline, and what there is to say besides."""

    kind: Kind
    headline: str
    notes: list[str]


def happening(event: Event, terms: Terms) -> Happening:
    """The event in words. `terms` know how amounts of a single unit are written."""
    ask, told = event.ask or {}, event.outcome
    notes = [HOLD.flags[flag] for flag in told.get("flags", ()) if flag in HOLD.flags]
    match told["outcome"]:
        case "held":
            return _held(ask, told)
        case "settled":
            return _settled(ask, told, notes)
        case "lapsed":
            said = HOLD.lapsed if _any(told["charged"]) else HOLD.lapsed_free
            return Happening("end", said.format(amounts=written(told["charged"])), [])
        case "stray":
            return Happening("end", HOLD.stray.format(amounts=written(told["charged"])), notes)
        case "exhausted" | "frozen" | "cooling" | "revoked" | "late" | "invalid":
            return Happening(
                "refused", _refused(told, terms), [HOLD.asked.format(amounts=_asked(ask))] if _asked(ask) else []
            )
        case _:
            return Happening("other", _other(ask, told, terms), [])


def _held(ask: Mapping[str, Any], told: Mapping[str, Any]) -> Happening:
    amounts, until = written(told["amounts"]), clock(told["expires_at"])
    if told.get("n"):
        return Happening("more", HOLD.renewed.format(amounts=amounts, until=until), [])
    if len(ask.get("options", ())) > 1:
        said = HOLD.held_option.format(amounts=amounts, n=told["option"] + 1, until=until)
        return Happening("held", said, [])
    return Happening("held", HOLD.held.format(amounts=amounts, until=until), [])


def _settled(ask: Mapping[str, Any], told: Mapping[str, Any], notes: list[str]) -> Happening:
    charged = written(told["charged"])
    if told["state"] == "open":
        return Happening("progress", HOLD.progress.format(amounts=charged), notes)
    if not _any(told["charged"]):
        said = HOLD.settled_zero
    else:
        said = (HOLD.estimated if ask.get("estimated") else HOLD.settled).format(amounts=charged)
    back = told.get("released", {})
    came_back = [HOLD.came_back.format(amounts=written(back))] if _any(back) else []
    return Happening("end", said, [*came_back, *notes])


def _refused(told: Mapping[str, Any], terms: Terms) -> str:
    match told["outcome"], told.get("why"):
        case "exhausted", "busy":
            return HOLD.refused_busy.format(budget=told["budget"])
        case "exhausted", "never":
            return HOLD.refused_never.format(budget=told["budget"])
        case "exhausted", "tier":
            return HOLD.refused_tier.format(budget=told["budget"])
        case "exhausted", _:
            fits = written(terms.written({told["unit"]: told["fits"]}))
            return HOLD.refused_spent.format(budget=told["budget"], period=told["period"], fits=fits)
        case "frozen", _:
            return HOLD.refused_frozen.format(scope=told["scope"], reason=told["reason"])
        case "cooling", _:
            return HOLD.refused_cooling.format(label=told["label"], until=clock(told["until"]))
        case "revoked", _:
            return HOLD.refused_revoked.format(label=told["label"], reason=told["reason"])
        case "late", _:
            return HOLD.refused_late
        case _:
            return HOLD.refused_invalid.format(field=told["field"], why=told["why"])


def _other(ask: Mapping[str, Any], told: Mapping[str, Any], terms: Terms) -> str:
    match told["outcome"]:
        case "again":
            return HOLD.again.format(first=counted(told["first"]))
        case "conflict":
            return HOLD.conflict.format(field=told["field"], amounts=written(told.get("charged", {})))
        case "adjusted":
            amount = written(terms.written({terms.budget_units.get(ask["budget"], ""): ask["amount"]}))
            return HOLD.adjusted.format(budget=ask["budget"], period=ask["period"], amount=amount, reason=ask["reason"])
        case "forgotten":
            return HOLD.forgotten
        case "unknown":
            return HOLD.unknown
        case "closed":
            return HOLD.closed
        case _:
            return HOLD.done


def written(amounts: Mapping[str, str]) -> str:
    """`0.25 usd and 300 neurons`."""
    return " and ".join(f"{grouped(amount)} {unit}" for unit, amount in amounts.items()) or HOLD.nothing


def clock(written_at: str) -> str:
    """The time of day of a moment as the audit writes it, in UTC."""
    return f"{written_at[11:19]} UTC"


def _asked(ask: Mapping[str, Any]) -> str:
    options = ask.get("options", ())
    return " or ".join(written(one["amounts"]) for one in options)


def _any(amounts: Mapping[str, str]) -> bool:
    return any(amount.strip("-0.") for amount in amounts.values())
