"""Every English sentence of the page, in one place. Server and script fill in the same ones, so both say the same.

`{name}` marks what is filled in. Nothing here is HTML: whoever fills a sentence in escapes it.
"""

from __future__ import annotations

import msgspec

_PER = {
    "minute": "each minute", "hour": "hourly", "day": "daily", "week": "weekly", "month": "monthly", "year": "yearly",
    "total": "in all",
}  # fmt: skip
_TIERS = {
    "1": "The budget is getting short: answers are shorter now.",
    "2": "The budget is nearly used up: a cheaper model answers, and shorter.",
}  # what a tier's grade means, where options are made as `web.proxy.options` makes them


class Words(msgspec.Struct, frozen=True):
    """The page's vocabulary. Field names are the keys that `static/page.js` reads."""

    title: str = "Common Purse"
    lead: str = "One wallet for AI calls, shared by everyone here. This is how much of it is left."
    shared: str = "Shared budget"

    # how fresh the figures are
    as_of: str = "as of {at} UTC, event #{seq}"
    connecting: str = "connecting"
    live: str = "live"
    not_live: str = "not live since {at} UTC"
    reload: str = "Reload the page for newer figures."
    no_figures: str = "No figures yet. The wallet is starting, or has no plan; this page fills in by itself."
    no_budgets: str = "This wallet has no shared budget."

    # the ask box
    ask_title: str = "Ask"
    ask_question: str = "Your question"
    ask_placeholder: str = "Whatever you like"
    ask_send: str = "Ask"
    ask_stop: str = "Stop"
    ask_costs: str = "Could use up to {share} % of the shared budget."
    ask_costs_little: str = "Could use less than 0.1 % of the shared budget."
    ask_does_not_fit: str = "What is left does not cover this question now. A shorter one may fit."
    ask_again: str = "Your question stays here. You can ask again in {left}."
    ask_stopped: str = "Stopped. Only what was said is paid for."
    ask_broken: str = "The answer broke off. Only what was said is paid for; your question is still here."
    ask_cut: str = "The answer was cut at its cap."
    ask_tiers: dict[str, str] = msgspec.field(default_factory=lambda: dict(_TIERS))
    ask_needs_script: str = "Asking needs JavaScript; the figures do not."
    slow_down: str = "Slow down. You can ask again in {seconds} s."

    # the headline of a budget
    used: str = "{used} % used."
    used_a_little: str = "Less than 1 % used."
    unknown: str = "No figure yet."
    resets: str = "Resets {at} UTC{yours},"
    resets_in: str = "in {left}."
    yours: str = " ({at} your time)"
    never: str = "Never resets."
    ended: str = "This period ended at {at} UTC. The new figures are on their way."
    limit: str = "limit {limit} {unit}"
    per: dict[str, str] = msgspec.field(default_factory=lambda: dict(_PER))

    # its lines
    table: str = "Where the budget {name} stands"
    line: str = "Line"
    amount: str = "Amount"
    share: str = "Share of the limit"
    spent: str = "Spent"
    others: str = "Others on the account"
    others_hint: str = "from the provider\u2019s own figure"
    held: str = "Held for calls in progress"
    held_hint: str = "the unused part comes back when the call ends"
    left: str = "Left"
    percent: str = "{share} %"
    meter: str = (
        "{used} % used: {spent} % spent, {others} % others on the account, "
        "{held} % held for calls in progress, {left} % left"
    )

    # what to know besides
    used_up: str = "This shared budget is used up. New calls are refused until it resets."
    used_up_for_good: str = "This shared budget is used up. It never resets."
    all_held: str = "All that is left is held for calls in progress. The unused part comes back when they end."
    first_exhausted: str = "It was first exhausted at {at} UTC."
    refused: str = "Calls that did not fit into what was left have been refused, first at {at} UTC."
    over: str = "It is {over} % over its limit: what a call really cost is always recorded in full."
    frozen_all: str = "Frozen: new calls are refused {until}. Reason: {reason}. Calls in progress still settle."
    frozen_budget: str = (
        "{scope} is frozen: new calls on it are refused {until}. Reason: {reason}. Calls in progress still settle."
    )
    until: str = "until {at} UTC"
    until_lifted: str = "until an operator lifts it"
    no_reason: str = "none given"
    own_calls: str = "Counting its own calls since {at} UTC: {source} has given no newer figure."
    own_calls_only: str = "Counting its own calls since the period began: {source} has given no figure yet."
    own_calls_unreadable: str = "Counting its own calls since {at} UTC: {source} cannot be read."
    own_calls_only_unreadable: str = "Counting its own calls since the period began: {source} cannot be read."
    earlier_day_one: str = "1 call from before the reset is still being settled; it counts to yesterday."
    earlier_day: str = "{n} calls from before the reset are still being settled; they count to yesterday."
    earlier_one: str = "1 call from before the reset is still being settled; it counts to the period it began in."
    earlier: str = "{n} calls from before the reset are still being settled; they count to the periods they began in."
    heard: str = "{name}: {used} % of the shared budget is used."

    # times
    months: tuple[str, ...] = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    dated: str = "{day} {month} {year}, {clock}"
    days_left: str = "{d} days {h} h"
    hours_only: str = "{h} h"
    hours_left: str = "{h} h {m} min"
    seconds_left: str = "{s} s"
    minutes_left: str = "{m} min"
    moment_left: str = "less than a minute"

    # the foot
    what: str = (
        "Common Purse holds the most a call could cost before it is made and settles what it really cost, "
        "so that no two callers can both spend the last of the day."
    )
    how: str = "How to hold from a program"
    how_hold: str = "Ask before the call. Only the answer 201 is permission to make it."
    how_settle: str = "Then say what it really cost. The rest of the hold comes back."
    how_refused: str = "402 means used up until the reset; 429 that other calls hold what is left: ask again shortly."
    openapi: str = "API description"


WORDS = Words()
