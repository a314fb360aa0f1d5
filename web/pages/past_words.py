"""Every English sentence of the pages of the past: the calendar, a day, a call. Nothing here is HTML.

`{name}` marks what is filled in; whoever fills a sentence in escapes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_STATES: Mapping[str, str] = {
    "open": "In progress",
    "settled": "Settled",
    "estimated": "Settled by an estimate; an exact cost may still come",
    "lapsed": "Ended by time: nobody said what it cost",
    "corrected": "Ended by time, then settled at its real cost",
    "stray": "Settled without a hold",
    "refused": "Refused",
}
_FLAGS: Mapping[str, str] = {
    "overrun": "It cost more than was held.",
    "late": "It was settled after its time was over.",
    "unheld": "It was charged for something that was not held.",
    "unreported": "It ended without a word on its cost.",
    "corrected": "An earlier charge was corrected.",
    "estimated": "The cost is an estimate.",
}


_OUTCOMES: Mapping[str, str] = {
    "held": "Held",
    "settled": "Settled",
    "lapsed": "Ended by time",
    "stray": "Settled without a hold",
    "exhausted": "Refused",
    "frozen": "Refused",
    "cooling": "Refused",
    "revoked": "Refused",
    "late": "Refused",
    "invalid": "Not understood",
    "again": "Asked again",
    "conflict": "Conflict",
    "closed": "Had ended already",
    "observed": "Observed",
    "adjusted": "Adjusted",
    "planned": "New plan",
    "done": "Done",
    "unknown": "Not known",
    "forgotten": "Forgotten",
}


@dataclass(frozen=True, slots=True)
class DaysWords:
    title: str = "Days"
    lead: str = "Every day of this wallet: how much of each shared budget was used, what was refused, what is proved."
    months: tuple[str, ...] = (
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
        "December",
    )  # fmt: skip
    weekdays: tuple[str, ...] = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    month: str = "{month} {year}"
    caption: str = "{month}: percent used of each shared daily budget, day by day"
    date: str = "{day} {month} {year}"
    whole_date: str = "{weekday}, {day} {month} {year}"
    percent: str = "{share} %"
    used: str = "{budget}: {share} % used"
    refused_one: str = "1 refused"
    refused: str = "{n} refused"
    exhausted: str = "exhausted at {at}"
    audited: str = "audited"
    sealed: str = "sealed"
    wrong: str = "audit found something off"
    running: str = "running"
    legend: str = "What the marks mean"
    audited_means: str = "Audited: every decision was made again by the rules, and every total added up twice."
    sealed_means: str = "Sealed: the day is over, and its chain was proved as it was read. Nobody has audited it yet."
    wrong_means: str = "Off: an audit found that something does not add up. `purse audit DAY` says what."
    bars: str = "The bars are, from above: {budgets}."
    bars_fullest: str = "The bars are the {n} fullest budgets of each day, in the order of their names."
    none: str = "No day has been spent yet. Once a shared daily budget is used, its days stand here."
    earlier: str = "Earlier days"
    newest: str = "The newest days"
    as_list: str = "The same as a list"
    list_caption: str = "Every day shown above, by budget"
    day: str = "Day"
    budget: str = "Budget"
    share: str = "Used"
    amount: str = "Amount"
    refusals: str = "Refused"
    exhausted_at: str = "First exhausted"
    proof: str = "Proof"
    export: str = "Take this list along:"
    csv: str = "CSV"
    json: str = "JSON"


@dataclass(frozen=True, slots=True)
class DayWords:
    around: str = "Days beside this one"
    back: str = "All days"
    audited: str = "Audited {at} UTC: all right. Every decision was made again, every total added up twice."
    sealed: str = "Sealed at {at} {zone} by message #{seq}; its chain was proved as it was read. Not audited yet."
    wrong: str = "An audit of {at} UTC found that something does not add up. `purse audit {day}` says what."
    running: str = "This day is still running: the figures are those so far."
    unsealed: str = "This day is not sealed yet."
    after_seal: str = "Since it was sealed {amount} {unit} came to it."

    # the budgets
    totals: str = "What it came to"
    of_limit: str = "{used} of {limit} {unit}"
    used: str = "{share} % used"
    meter: str = "{used} % used: {spent} % spent, {others} % others on the account, {held} % held, {left} % left"
    spent: str = "Spent"
    others: str = "Others on the account"
    held: str = "Held for calls in progress"
    left: str = "Left"
    peak: str = "Most ever used: {share} %, at {at}."
    exhausted: str = "First exhausted at {at}."
    never_exhausted: str = "Never exhausted."
    calls: str = "{holds} holds, {settles} settlements, {refused} refused."
    wasted: str = "{amount} {unit} was held and then not needed."
    nothing: str = "No shared daily budget was used on this day."
    other_periods: str = "Hours and other periods of this day"
    other_caption: str = "Periods within this day, by budget"
    period: str = "Period"

    # the moment
    moment: str = "The wallet at any moment"
    moment_lead: str = "Pick a time of the day. The wallet of that moment is made again from the record itself."
    time: str = "Time ({zone})"
    slider: str = "Time of day"
    show: str = "Show"
    as_of: str = "At {at} {zone}: as of event #{upto}, told #{told}."
    nothing_yet: str = "Before the wallet's first event."
    proved: str = "Read and proved {since}."
    since_snapshot: str = "from the proved snapshot at told #{start} on"
    since_first: str = "from the first event on"
    looking: str = "Reading the record\u2026"
    not_now: str = "The wallet of that moment cannot be shown now. Try again in a moment."
    none_in_progress: str = "No call in progress"
    in_progress_one: str = "1 call in progress"
    in_progress: str = "{n} calls in progress"
    due: str = "{n} of them past their time"
    frozen: str = "Frozen: {scope}. {reason}"
    revoked: str = "Revoked: {what}"
    moment_caption: str = "Budgets at {at}"
    more_meters: str = "{n} more budgets of single users, keys or sessions are not listed."
    link: str = "Link to this moment"
    at_least: str = "Something is wrong with the time: {why}"

    # how it went
    course: str = "How it went"
    course_says: str = "{budget}: spent, and spent with held, in the course of the day. {used} % was used at its end."
    line_spent: str = "Spent"
    line_used: str = "Spent and held"
    line_limit: str = "Limit"
    as_table: str = "How {budget} went, as a table"
    course_caption: str = "{budget} in steps of five minutes, in {unit}"
    step: str = "Time ({zone})"
    in_step: str = "Spent"
    so_far: str = "So far"
    no_course: str = "There is no course of this day."

    # who, and who not
    who: str = "Who spent it"
    who_caption: str = "{budget} by {label} ({unit})"
    none: str = "(without)"
    other: str = "Other ({n} more)"
    drawn: str = "As a bar"
    calls_short: str = "Calls"
    refusals: str = "Refusals, and why"
    refusals_caption: str = "Refused calls of the day, by reason"
    no_refusals: str = "No call was refused."
    one_by_one: str = "See them one by one"
    reason: str = "Why"
    count: str = "Calls"

    # decisions
    decisions: str = "Every decision"
    export: str = "Take this day along:"
    csv: str = "Every decision as CSV"
    lines: str = "Every decision as JSON lines"
    json: str = "The totals as JSON"


@dataclass(frozen=True, slots=True)
class HoldWords:
    title: str = "One call"
    id: str = "Call {id}"
    find: str = "Look at another call"
    find_id: str = "Its id"
    look: str = "Look"
    wanted: str = "Asked for"
    granted: str = "Held"
    charged: str = "Cost"
    returned: str = "Came back"
    counts_to: str = "Counts to"
    in_period: str = "{budget} of {period}"
    labels: str = "Labels"
    price_book: str = "Price book"
    lasted: str = "Took"
    timeline: str = "What happened"
    meter: str = "{share} % of what was held was used; the rest came back."
    meter_open: str = "{share} % of what is held was used so far."
    meter_over: str = "It cost {share} % of what was held."
    after: str = "+{time}"
    message: str = "event #{seq}"
    receipt: str = "told #{seq}"
    chain: str = "chain {chain}"
    only_recorded: str = (
        "These are the moments that are on the record. When the call was sent on, and when its first word came, "
        "nobody recorded."
    )
    read_to: str = "Read from event #{after} to #{upto} of #{end}."
    read_on: str = "Read on"
    more: str = "{n} more events are not shown."
    not_found: str = (
        "Nothing names this call where it was looked for: the wallet does not remember it, and none of the newest "
        "{n} messages speaks of it. `purse audit --hold ID` reads the whole record."
    )
    not_found_title: str = "No such call"
    json: str = "This as JSON"
    export: str = "Take it along:"

    # what happened, in words
    held: str = "Held {amounts} until {until}."
    held_option: str = "Held {amounts} by option {n}, until {until}."
    renewed: str = "Held on: {amounts}, until {until}."
    asked: str = "Asked for {amounts}."
    progress: str = "Used so far: {amounts}."
    settled: str = "Settled at {amounts}."
    estimated: str = "Settled at {amounts}, by an estimate."
    settled_zero: str = "Ended without a cost."
    came_back: str = "{amounts} came back."
    lapsed: str = "Ended by time. Charged {amounts}."
    lapsed_free: str = "Ended by time. Nothing was charged."
    stray: str = "A settlement of {amounts} came without a hold, and was charged all the same."
    again: str = "Asked again: the answer of event #{first} stands."
    conflict: str = "Asked again with another {field}: refused, what stands is {amounts}."
    adjusted: str = "An operator adjusted {budget} of {period} by {amount}: {reason}"
    forgotten: str = "A settlement came after the wallet had forgotten this call; nothing was charged."
    unknown: str = "The wallet did not know this call."
    closed: str = "Asked for again after its end: no permission."
    done: str = "Done."
    nothing: str = "nothing"
    refused_spent: str = "Refused: {budget} of {period} was used up. {fits} would still have fitted."
    refused_busy: str = "Refused: other calls held what was left of {budget}. Trying again could have helped."
    refused_never: str = "Refused: it could cost more than the whole limit of {budget}, so it can never fit."
    refused_tier: str = "Refused: {budget} was running low, and only cheaper options were allowed."
    refused_frozen: str = "Refused: {scope} was frozen. {reason}"
    refused_cooling: str = "Refused: {label} had been told to slow down until {until}."
    refused_revoked: str = "Refused: this {label} was revoked. {reason}"
    refused_late: str = "Refused: it was heard only after the caller had stopped waiting. Nothing was held."
    refused_invalid: str = "Not understood: {field}: {why}"
    states: Mapping[str, str] = field(default_factory=lambda: _STATES)
    flags: Mapping[str, str] = field(default_factory=lambda: _FLAGS)


@dataclass(frozen=True, slots=True)
class DecisionsWords:
    title: str = "Every decision of {day}"
    around: str = "The day of these decisions"
    all: str = "All"
    refused: str = "Refused only"
    caption: str = "Decisions, in their order on the record"
    time: str = "Time ({zone})"
    call: str = "Call"
    decision: str = "Decision"
    amount: str = "Amount"
    event: str = "Event"
    none: str = "There is none here."
    next: str = "Those that follow"
    outcomes: Mapping[str, str] = field(default_factory=lambda: _OUTCOMES)


DAYS: Final = DaysWords()
DAY: Final = DayWords()
DECISIONS: Final = DecisionsWords()
HOLD: Final = HoldWords()
