"""What a stranger may read of the wallet, worked out from its Status: shares of each limit, and sentences.

Pure: no clock (`now` comes in, nanoseconds since 1970), no I/O, no HTML. `static/page.js` says the same things from the
same words when figures change; `tests/browser` holds the two against each other. Never shows an amount of a budget
whose plan does not say `public = "amounts"`, nor a freeze that names one user.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import msgspec

from engine.core.amounts import format_amount
from engine.core.documents import BudgetStatus, Status
from engine.core.messages import (
    Frost,
)
from engine.core.periods import TOTAL
from web.words import WORDS

SECOND = 1_000_000_000
OBSERVED_EVERY_S = 30  # how often a figure is expected where nobody says: from an observer elsewhere, or a script
INTERVALS_MAX = 3  # a figure older than so many intervals is no longer the account's: the wallet counts its own calls
_DAY_S = 24 * 3600


class Shares(msgspec.Struct, frozen=True):
    """A budget in tenths of a percent of its limit. The lines add up to `used`: 1000 only when nothing is left."""

    spent: int
    others: int
    held: int
    used: int

    @property
    def left(self) -> int:
        return max(0, 1000 - self.used)

    @property
    def base(self) -> int:
        return self.spent + self.others


def shares(budget: BudgetStatus) -> Shares:
    """Where the budget stands. A limit of zero counts as used up.

    The running totals are rounded down and the lines are their differences: rounding each line by itself would
    print statements that do not add up, and rounding up would say 100 % while a call still fits.
    """
    if budget.limit <= 0:
        return Shares(0, 0, 0, 1000)
    totals = (0, budget.settled, budget.settled + budget.extra, budget.used)
    marks = (max(0, total) * 1000 // budget.limit for total in totals)
    spent, others, held = (high - low for low, high in pairwise(marks))
    return Shares(spent, others, held, spent + others + held)


class Amounts(msgspec.Struct, frozen=True):
    """The same lines as amounts, written to one number of digits so that a column of them lines up."""

    limit: str
    spent: str
    others: str
    held: str
    left: str


def amounts(budget: BudgetStatus) -> Amounts | None:
    """The budget's amounts, or None where the plan keeps them from strangers."""
    if budget.public != "amounts":
        return None
    lines = (budget.limit, budget.settled, budget.extra, budget.held, max(0, budget.remaining))
    _, *column = aligned([format_amount(line, scale=budget.scale) for line in lines])
    return Amounts(grouped(format_amount(budget.limit, scale=budget.scale)), *column)


def aligned(written: list[str]) -> list[str]:
    """Decimal strings with the digits after the point filled up to the longest, and thousands set apart."""
    parts = [(whole, digits) for whole, _, digits in (one.partition(".") for one in written)]
    longest = max(len(digits) for _, digits in parts)
    return [grouped(f"{whole}.{digits.ljust(longest, '0')}" if longest else whole) for whole, digits in parts]


def grouped(written: str) -> str:
    """`"-12345.6"` as `"-12,345.6"`: no float ever touches it."""
    whole, point, part = written.partition(".")
    return f"{int(whole):,}{point}{part}" if whole != "-0" else f"-0{point}{part}"


def tenths(share: int) -> str:
    """703 as `"70.3"`."""
    return f"{share // 10}.{share % 10}"


# --- the provider's figure --------------------------------------------------------------------------------------------


class Observation(msgspec.Struct, frozen=True):
    """How current the provider's figure is. `at`: when it was last known to be so, None if never in this period."""

    source: str
    every_s: int
    at: int | None
    unreadable: bool

    def stale(self, now: int) -> bool:
        """Whether the wallet counts its own calls alone."""
        return self.at is None or now - self.at > INTERVALS_MAX * self.every_s * SECOND


def observation(budget: BudgetStatus) -> Observation | None:
    """None where the plan names no source: then nobody is asked, and the wallet's own count is all there is."""
    source = budget.observed.source if budget.observed else budget.source
    if not source:
        return None
    at = budget.observed.as_of if budget.observed else 0
    if budget.reading is None:
        return Observation(source, OBSERVED_EVERY_S, at or None, unreadable=False)
    at = max(at, budget.reading.read_at)
    return Observation(source, budget.reading.every_s, at or None, bool(budget.reading.unreadable))


# --- moments ----------------------------------------------------------------------------------------------------------


def when(at: int, now: int, *, seconds: bool = False) -> str:
    """The UTC time of day of `at`, with its date where it is a day or more from `now`."""
    moment = datetime.fromtimestamp(at // SECOND, UTC)
    clock = moment.strftime("%H:%M:%S" if seconds else "%H:%M")
    if abs(at // SECOND - now // SECOND) <= _DAY_S:
        return clock
    return WORDS.dated.format(day=moment.day, month=WORDS.months[moment.month - 1], year=moment.year, clock=clock)


def countdown(at: int, now: int) -> str:
    """How long from `now` until `at`, in the two largest parts that matter."""
    minutes = (at - now) // SECOND // 60
    if minutes >= 2 * 24 * 60:
        return WORDS.days_left.format(d=minutes // 1440, h=minutes % 1440 // 60)
    if minutes >= 60:
        return WORDS.hours_left.format(h=minutes // 60, m=minutes % 60)
    return WORDS.minutes_left.format(m=minutes) if minutes > 0 else WORDS.moment_left


def never_resets(budget: BudgetStatus) -> bool:
    return budget.resets_at >= TOTAL.end


def ended(budget: BudgetStatus, now: int) -> bool:
    """Whether these figures are of a period that is over: then none of them may be shown as today's."""
    return now >= budget.resets_at


# --- sentences --------------------------------------------------------------------------------------------------------


def used_words(budget: BudgetStatus, now: int) -> str:
    if ended(budget, now):
        return WORDS.unknown
    used = shares(budget).used
    return WORDS.used_a_little if 0 < used < 10 else WORDS.used.format(used=used // 10)


def resets_words(budget: BudgetStatus, now: int) -> str:
    if never_resets(budget):
        return WORDS.never
    if ended(budget, now):
        return WORDS.ended.format(at=when(budget.resets_at, now))
    return WORDS.resets.format(at=when(budget.resets_at, now), yours="")


def resets_in_words(budget: BudgetStatus, now: int) -> str:
    """The end of the same sentence: the part that changes every minute."""
    if never_resets(budget) or ended(budget, now):
        return ""
    return WORDS.resets_in.format(left=countdown(budget.resets_at, now))


def meter_words(share: Shares) -> str:
    """The whole meter as one sentence, for those who do not see it."""
    lines = ("used", "spent", "others", "held", "left")
    return WORDS.meter.format(**{line: tenths(getattr(share, line)) for line in lines})


def full_words(budget: BudgetStatus, now: int) -> str:
    """That nothing is left, and why; empty while something is."""
    share = shares(budget)
    if ended(budget, now) or share.used < 1000:
        return ""
    if share.base < 1000 and share.held:
        said = [WORDS.all_held]
    else:
        said = [WORDS.used_up_for_good if never_resets(budget) else WORDS.used_up]
    if budget.first_exhausted_at is not None:
        said.append(WORDS.first_exhausted.format(at=when(budget.first_exhausted_at, now)))
    if share.used > 1000:
        said.append(WORDS.over.format(over=tenths(share.used - 1000)))
    return " ".join(said)


def refused_words(budget: BudgetStatus, now: int) -> str:
    """That calls did not fit although something is left: 97 % used can mean that nothing fits any more."""
    if ended(budget, now) or budget.first_exhausted_at is None or shares(budget).used >= 1000:
        return ""
    return WORDS.refused.format(at=when(budget.first_exhausted_at, now))


def own_calls_words(budget: BudgetStatus, now: int) -> str:
    """That the provider's figure is missing or old; empty where it is fresh or the budget has no source."""
    read = observation(budget)
    if read is None or ended(budget, now) or not read.stale(now):
        return ""
    if read.at is None:
        sentence = WORDS.own_calls_only_unreadable if read.unreadable else WORDS.own_calls_only
        return sentence.format(source=read.source)
    sentence = WORDS.own_calls_unreadable if read.unreadable else WORDS.own_calls
    return sentence.format(source=read.source, at=when(read.at, now))


def as_of_words(status: Status, now: int) -> str:
    return WORDS.as_of.format(at=when(status.as_of, now, seconds=True), seq=f"{status.seq:,}")


def freeze_shown(status: Status) -> Frost | None:
    """The freeze that concerns everybody: of all, else of the first shared budget. A user's is that user's affair."""
    scopes = {frost.scope: frost for frost in status.frozen}
    names = ("all", *(budget.name for budget in status.budgets))
    return next((scopes[name] for name in names if name in scopes), None)


def frozen_words(frost: Frost | None, now: int) -> str:
    if frost is None or (frost.until is not None and frost.until <= now):
        return ""
    until = WORDS.until_lifted if frost.until is None else WORDS.until.format(at=when(frost.until, now))
    sentence = WORDS.frozen_all if frost.scope == "all" else WORDS.frozen_budget
    return sentence.format(scope=frost.scope, until=until, reason=frost.reason.rstrip(" .") or WORDS.no_reason)


def earlier(status: Status) -> int:
    """Calls held before a reset and not yet settled. One call may stand in several budgets, so they are not summed."""
    return max((budget.earlier_open for budget in status.budgets), default=0)


def earlier_words(status: Status) -> str:
    count = earlier(status)
    daily = all(budget.per == "day" for budget in status.budgets)
    match count, daily:
        case 0, _:
            return ""
        case 1, True:
            return WORDS.earlier_day_one
        case 1, False:
            return WORDS.earlier_one
        case _:
            return (WORDS.earlier_day if daily else WORDS.earlier).format(n=f"{count:,}")
