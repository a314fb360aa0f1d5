"""Every English sentence of the page about one budget. Nothing here is HTML.

`{name}` marks what is filled in; whoever fills a sentence in escapes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_REASONS: Mapping[str, str] = {
    "spent": "Used up: it did not fit until the reset",
    "busy": "Busy: held for other calls; trying again could help",
    "never_fits": "Could never fit: more than the whole limit",
    "tier": "Getting short: only cheaper options were allowed",
    "frozen": "Frozen by an operator",
    "revoked": "The key, user or label was revoked",
    "cooling": "A guard had told it to slow down",
    "late": "Decided after the caller had stopped waiting",
    "closed": "The hold had ended already",
}
_FLAGS: Mapping[str, str] = {
    "overruns": "Cost more than was held",
    "strays": "Settled without a hold",
    "lapsed": "Never settled: charged as the plan says",
    "late": "Settled after the hold had lapsed",
    "unheld": "Charged past what was held",
    "unreported": "Ended without a word on the cost",
    "corrected": "An estimate that was settled anew",
    "estimated": "Settled by an estimate",
    "conflicts": "Came twice with different amounts",
    "unreconciled_holds": "Real cost came too late to be charged",
}
_DELIVERIES: Mapping[str, str] = {
    "new": "waiting", "sending": "on its way", "waiting": "tried, waiting", "sent": "told", "missed": "never reached",
}  # fmt: skip
_LABELS: Mapping[str, str] = {"model": "Model", "user": "User", "key": "Key"}


@dataclass(frozen=True, slots=True)
class BudgetWords:
    title: str = "Budget"
    now: str = "Now"
    budgets: str = "Shared budgets"
    stale: str = "not live since {at} UTC"
    live: str = "live"
    reconnecting: str = "not live: connecting again"
    no_script: str = "Reload the page for newer figures."
    of_limit: str = "{used} of {limit} {unit}"
    spent: str = "Spent"
    others: str = "Others"
    held: str = "Held"
    left: str = "Left"
    open_holds_one: str = "1 call in progress"
    open_holds: str = "{n} calls in progress"

    # the choice
    filters: str = "What is shown"
    budget: str = "Budget"
    period: str = "Period"
    by: str = "Broken down by"
    apply: str = "Show"
    current: str = "{period} (now)"
    nothing_there: str = "There is no such budget or period, or nothing is known of it yet."
    export: str = "Export what is shown:"
    csv: str = "CSV"
    json: str = "JSON"

    # the course
    course: str = "How it goes"
    course_was: str = "How it went"
    burn_down: str = "What is left"
    in_steps: str = "Spent and held over time"
    pace_now: str = "{used} % is spent, and {passed} % of the time has passed."
    ahead: str = "That is faster than an even pace."
    behind: str = "An even pace would have spent {even} %."
    used_up_at: str = "At the pace of the last {window} it will be used up at {at} UTC, {before} before the reset."
    left_at_end: str = "At the pace of the last {window}, {left} % will be left at the reset."
    resting: str = "Nothing was spent in the last {window}."
    used_up_now: str = "Nothing is left until the reset in {left}."
    never_ends: str = "{used} % is spent. This budget never resets."
    was: str = "{used} % was spent in the whole period."
    peak: str = "The most that was ever used, with what was held, is {peak} %, at {at} UTC."
    exhausted: str = "It was first exhausted at {at} UTC."
    no_course: str = "Periods shorter than a day have no course; their totals are below."
    nothing_yet: str = "Nothing was asked of this budget in this period yet."
    others_off: str = "What others used on the account ({others} {unit}) is taken off from the beginning."
    line_left: str = "Left"
    line_even: str = "Even pace"
    line_ahead: str = "At the pace of late"
    bar_spent: str = "Spent in each step"
    line_held: str = "Held as it ended"
    chart_table: str = "The same as a table"
    chart_caption: str = "In steps of {step}, in {unit}"
    time: str = "Time (UTC)"
    holds: str = "Holds"
    refused: str = "Refused"

    # who
    who: str = "Who spent it"
    value: str = "{label}"
    none: str = "(without)"
    other: str = "Other"
    other_many: str = "Other ({n} more)"
    other_uncounted: str = "Other (more than are told apart)"
    adjusted: str = "Other has what operators adjusted, {amount} {unit}, too."
    amount: str = "Spent"
    share: str = "Share"
    total: str = "Total"
    more_labels: str = "Calls have more labels than are broken down here."
    who_caption: str = "Spent by {label}, in {unit}"

    # refusals and flags
    refusals: str = "Refusals, and why"
    refusals_caption: str = "Calls that this budget refused"
    no_refusals: str = "No call was refused."
    wallet_refusals: str = "All refusals of the day, those of other budgets too: {n}."
    reason: str = "Why"
    count: str = "Calls"
    flags: str = "To look at"
    flags_caption: str = "What did not go as it should"
    no_flags: str = "Nothing out of the ordinary."
    wasted: str = "Held and then not needed, in all: {amount} {unit}."
    sealed: str = "This day is sealed, by message #{seq} at {at} UTC."
    after_seal: str = "Since then {amount} {unit} came to it."

    # alerts
    alerts: str = "Alerts"
    alerts_caption: str = "Alerts that were raised"
    no_alerts: str = "No alert was raised."
    when: str = "When"
    said: str = "What"
    delivered: str = "Told to"
    told_nobody: str = "nobody: no target is set up"

    # the provider
    source: str = "The provider\u2019s own figure"
    source_fresh: str = "{source} says {figure} {unit}, read {age} ago."
    source_none: str = "{source} has given no figure yet: the wallet counts its own calls alone."
    source_stale: str = "{source} has given nothing newer for {age}: the wallet counts its own calls alone since then."
    source_unreadable: str = "The newest try to read it failed: {why}"
    no_source: str = "Nobody is asked: the plan names no source for this budget."

    # stopped
    stopped: str = "Stopped"
    nobody_stopped: str = "Nothing is frozen, cooling or revoked."
    frozen: str = "Frozen"
    cooling: str = "Cooling"
    revoked: str = "Revoked"
    how: str = "How"
    what: str = "What"
    why: str = "Why"
    until: str = "Until"
    until_lifted: str = "until somebody lifts it"
    until_restored: str = "for good"
    everything: str = "everything"
    stopped_more: str = "{n} more are not listed."

    reasons: Mapping[str, str] = field(default_factory=lambda: _REASONS)
    flagged: Mapping[str, str] = field(default_factory=lambda: _FLAGS)
    deliveries: Mapping[str, str] = field(default_factory=lambda: _DELIVERIES)
    labels: Mapping[str, str] = field(default_factory=lambda: _LABELS)

    def label(self, name: str) -> str:
        return self.labels.get(name, name)


BUDGET: Final = BudgetWords()
