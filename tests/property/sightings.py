"""Names what happened in a story, so that a test can insist that each hard place was really reached."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from auditor import Auditor
from property.naive_books import Bound
from property.naive_calendar import SECOND, period_at
from property.naive_tiers import MILLION

from engine.core.messages import (
    Adjust,
    Adjusted,
    Again,
    AnyAsk,
    AnyOutcome,
    ApplyPlan,
    Clock,
    Closed,
    Conflict,
    Cooling,
    Done,
    Entry,
    Exhausted,
    Forgotten,
    Frozen,
    Held,
    Hold,
    Late,
    Line,
    Loss,
    Observe,
    Observed,
    Planned,
    Renew,
    Restore,
    Revoked,
    Settle,
    Settled,
    Stray,
)  # fmt: skip

HOUR, DAY = 3600 * SECOND, 24 * 3600 * SECOND

EVERY = frozenset((
    "a lapse at its grant", "a lapse at its progress", "never", "spent", "busy", "frozen", "revoked", "late hold",
    "a balancing grant", "a second option", "a grant of zero over the limit", "a day of 23 hours",
    "a day of 25 hours", "renewed", "a larger grant", "a refused renewal", "again: open", "again: refused",
    "a later by under an open hold", "a fresh hold after a give-up", "a give-up too early to count",
    "closed: settled", "closed: lapsed", "closed: estimated", "closed: stray", "closed: corrected", "conflict: hold",
    "conflict: settle", "conflict: operator", "overrun", "late", "unheld", "unreported", "corrected", "estimated",
    "progress", "settled after its period", "money came back", "stray", "a provisional stray", "a stray in the past",
    "forgotten", "dropped by a settle", "dropped by an adjust", "observed higher",
    "observed lower", "adjusted below zero", "restart", "a loss that raised", "a loss that raised nothing",
    "a loss that froze", "a loss that found a longer freeze", "a limit below what is used",
    "a charge to a budget that is gone or restarted", "a capped lapse", "settled while due", "closed while due",
    "under tier 1", "under tier 2", "under tier 3", "an option passed over for its grade", "times that helped",
    "a grade where no tier is", "no grade where tiers are", "exactly at a threshold", "one part above a threshold",
    "only a cheaper grade is left", "no grade is left", "a renewal under a tier",
    "cooling", "a guard that cools", "a guard that revokes", "a guard that alerts", "a guard on a refusal",
    "a revocation by a guard that was restored", "exactly at the end of a window",
    "a clock", "a stamp that was skipped",
    "a seal", "days sealed at once", "days beyond the cap of seals", "a seal in UTC", "a seal in another zone",
    "a sealed day of 23 hours", "a sealed day of 25 hours", "a seal over open holds",
    "a lapse before the seal", "a lapse at the very end of a sealed day", "a lapse between two seals",
    "a private meter that no seal shows", "a shared meter that was not touched", "a charge to a sealed day",
    "a correction to a sealed day", "an adjust to a sealed day", "a figure for a sealed day",
    "a day that another zone made longer", "a day that another zone ended early",
))  # fmt: skip


def sightings(asks: list[AnyAsk] | None, told: Entry, auditor: Auditor) -> set[str]:
    """What happened in this message. The auditor stands just after it."""
    seen = {name for ask, outcome in zip(asks or [], told.out, strict=False) for name in of_one(ask, outcome, auditor)}
    for lapse in told.lapsed:
        call = auditor.calls.get(lapse.hold)
        if call is not None and call.state == "lapsed":
            seen.add("a lapse at its grant" if call.on_lapse == "charge" else "a lapse at its progress")
    if any(auditor.due(call) for call in auditor.calls.values()):
        seen.add("a capped lapse")
    if asks:
        seen.update(
            name for ask, outcome in zip(asks, told.out, strict=True) for name in to_sealed(ask, outcome, auditor)
        )
    return seen | set(of_seals(told, auditor))


def of_seals(told: Entry, auditor: Auditor) -> Iterator[str]:
    """What the seals of this entry show."""
    for seal in told.sealed:
        yield "a seal"
        yield "a seal in UTC" if seal.end % DAY == 0 else "a seal in another zone"
        assert auditor.plan is not None
        name, start, end = period_at(seal.end - 1, "day", auditor.plan.zone)
        if (name, end) == (seal.day, seal.end) and end - start in (23 * HOUR, 25 * HOUR):
            yield f"a sealed day of {(end - start) // HOUR} hours"
        if seal.open_holds:
            yield "a seal over open holds"
    ends = [seal.end for seal in told.sealed]
    if len(ends) > 1:
        yield "days sealed at once"
    if ends and auditor.at - ends[-1] > 2 * DAY:
        yield "days beyond the cap of seals"
    yield from of_sealed_lapses(told, ends, auditor)


def of_sealed_lapses(told: Entry, ends: list[int], auditor: Auditor) -> Iterator[str]:
    expiries = [call.expires_at for call in auditor.history if call.id in {lapse.hold for lapse in told.lapsed}]
    for end in ends:
        if any(expires_at < end for expires_at in expiries):
            yield "a lapse before the seal"
        if end in expiries:
            yield "a lapse at the very end of a sealed day"
    if any(start <= expires_at < end for start, end in pairwise(ends) for expires_at in expiries):
        yield "a lapse between two seals"
    for seal in told.sealed:
        assert auditor.plan is not None
        shared = {name for name, budget in auditor.plan.budgets.items() if budget.each is None}
        if shared - seal.budgets.keys():
            yield "a shared meter that was not touched"
        if any(meter.end >= seal.end and key[0] not in shared for key, meter in auditor.alive.items()):
            yield "a private meter that no seal shows"


def to_sealed(ask: AnyAsk, outcome: AnyOutcome, auditor: Auditor) -> Iterator[str]:
    """What still counts to a day that is sealed, and what a plan did to the day."""
    match ask, outcome:
        case Settle(), Settled() if any(bound.end <= auditor.last_sealed for bound in auditor.calls[outcome.id].bounds):
            yield "a correction to a sealed day" if outcome.state == "corrected" else "a charge to a sealed day"
        case Adjust(), Adjusted(line=Line(end=end)) if end <= auditor.last_sealed:
            yield "an adjust to a sealed day"
        case Observe(), Observed(line=Line(end=end)) if end <= auditor.last_sealed:
            yield "a figure for a sealed day"
        case ApplyPlan(), Planned() if auditor.day_ends == auditor.at:
            yield "a day that another zone ended early"
        case ApplyPlan(), Planned() if auditor.day_ends - auditor.at > 25 * HOUR:
            yield "a day that another zone made longer"


def of_one(ask: AnyAsk, outcome: AnyOutcome, auditor: Auditor) -> Iterator[str]:
    """What this outcome shows."""
    match ask:
        case Hold() | Renew():
            yield from of_refusal(ask, outcome, auditor)
        case Settle():
            yield from of_unknown(outcome, auditor)
        case _:
            yield from of_operator(ask, outcome, auditor)
    match outcome:
        case Held():
            yield from of_held(ask, outcome, auditor)
        case Settled():
            yield from of_settled(outcome, auditor)
        case Again():
            yield from of_again(ask, outcome, auditor)
        case Conflict():
            asked = {Hold: "hold", Settle: "settle"}.get(type(ask), "operator")
            yield f"conflict: {asked}"


def of_refusal(ask: AnyAsk, outcome: AnyOutcome, auditor: Auditor) -> Iterator[str]:
    match outcome:
        case Exhausted():
            yield "a refused renewal" if isinstance(ask, Renew) else outcome.why
            if outcome.why == "tier":
                yield from of_tier_refusal(outcome, auditor)
        case Closed():
            yield f"closed: {outcome.state}"
            if outcome.state == "lapsed" and auditor.calls[outcome.id].state == "open":
                yield "closed while due"
        case Late():
            yield "late hold"
        case Frozen() | Revoked() | Cooling():
            yield type(outcome).__name__.lower()
            if isinstance(ask, Renew) and isinstance(outcome, Cooling):
                yield "a refused renewal while cooling"
    yield from of_guards(ask, outcome, auditor)


def of_guards(ask: AnyAsk, outcome: AnyOutcome, auditor: Auditor) -> Iterator[str]:
    """What guards had to do with it."""
    match outcome:
        case Cooling(fired=[_]):
            yield "a guard that cools"
        case Revoked(fired=[_]):
            yield "a guard that revokes"
        case Held(fired=[_, *_]):
            yield "a guard that alerts"
        case Exhausted(fired=[_, *_]):
            yield "a guard on a refusal"
    if isinstance(ask, Hold) and isinstance(outcome, Held | Exhausted):
        ends = [auditor.cooling.get(label, (None, ""))[0] for label in ask.labels.items()]
        if auditor.at in ends:
            yield "the first hold after a cooling"
        for guard in auditor.guards().values():
            mine = [at for at, labels in auditor.came if labels.get(guard.label) == ask.labels.get(guard.label, "")]
            if auditor.at - guard.within_s * SECOND in mine:
                yield "exactly at the end of a window"


def of_unknown(outcome: AnyOutcome, auditor: Auditor) -> Iterator[str]:
    match outcome:
        case Stray():
            yield "a provisional stray" if outcome.state == "estimated" else "stray"
            if outcome.at < auditor.at:
                yield "a stray in the past"
        case Forgotten():
            yield "forgotten"


def of_operator(ask: AnyAsk, outcome: AnyOutcome, auditor: Auditor) -> Iterator[str]:
    match outcome:
        case Observed():
            yield "observed higher" if outcome.raised_by else "observed lower"
        case Adjusted():
            if outcome.dropped is not None:
                yield "dropped by an adjust"
            if isinstance(ask, Adjust) and ask.amount < 0:
                yield "adjusted below zero"
        case Done() if isinstance(ask, Restore):
            yield from auditor.restored
        case Done() if isinstance(ask, Clock):
            yield "a clock"
        case Done():
            yield from (
                "a loss that raised" if raised.by else "a loss that raised nothing" for raised in outcome.raised
            )
            if outcome.frozen:
                yield "a loss that froze"
            standing = [auditor.frozen[name] for name in outcome.frozen if name in auditor.frozen]  # not thawed since
            if isinstance(ask, Loss) and any(frost.reason != ask.reason for frost in standing):
                yield "a loss that found a longer freeze"
        case Planned() if outcome.restarts:
            yield "restart"


def of_held(ask: AnyAsk, outcome: Held, auditor: Auditor) -> Iterator[str]:
    if isinstance(ask, Renew):
        yield "a larger grant" if ask.amounts else "renewed"
        if outcome.tier:
            yield "a renewal under a tier"
        return
    assert isinstance(ask, Hold)
    if outcome.amounts != ask.options[outcome.option].amounts:
        yield "a balancing grant"
    if outcome.option > 0:
        yield "a second option"
    yield from of_tier(ask, outcome, auditor)
    if any(line.remaining < 0 for line in outcome.budgets.values()):
        yield "a grant of zero over the limit"
    lengths = {(line.end - line.start) // HOUR for line in outcome.budgets.values()}
    yield from (f"a day of {hours} hours" for hours in sorted(lengths & {23, 25}))
    if any(call.id == ask.id and call.given_up_by is not None for call in auditor.history[:-1]):
        yield "a fresh hold after a give-up"


def of_tier(ask: Hold, outcome: Held, auditor: Auditor) -> Iterator[str]:
    """What the tiers of the plan had to do with this `held`."""
    grade, tiers = ask.options[outcome.option].grade, auditor.tiers()
    if tiers is None or grade is None:
        yield from (
            () if tiers is grade else ("a grade where no tier is" if tiers is None else "no grade where tiers are",)
        )
        return
    yield f"under tier {outcome.tier}"
    if any(option.grade is not None and option.grade < outcome.tier for option in ask.options[: outcome.option]):
        yield "an option passed over for its grade"
    full = max(fullness_before(outcome, auditor), default=Fraction(0))
    thresholds = [Fraction(step.up_to, MILLION) for step in tiers.steps]
    if full in thresholds:
        yield "exactly at a threshold"
    if all(grade < step.grade or full > threshold for step, threshold in zip(tiers.steps, thresholds, strict=True)):
        yield "times that helped"


def fullness_before(outcome: Held, auditor: Auditor) -> Iterator[Fraction]:
    for budget, line in outcome.budgets.items():
        granted = outcome.amounts[auditor.unit_of[budget]]
        if granted:
            yield Fraction(line.limit - line.remaining - granted, line.limit)


def of_tier_refusal(outcome: Exhausted, auditor: Auditor) -> Iterator[str]:
    yield "no grade is left" if outcome.tier is None else "only a cheaper grade is left"
    used, tiers = outcome.limit - outcome.remaining, auditor.tiers()
    for step in tiers.steps if tiers is not None else ():
        if (used - 1) * MILLION <= outcome.limit * step.up_to < used * MILLION:
            yield "one part above a threshold"


def of_settled(outcome: Settled, auditor: Auditor) -> Iterator[str]:
    yield from outcome.flags
    call = auditor.calls[outcome.id]
    if any(bound.end <= auditor.at for bound in call.bounds):
        yield "settled after its period"
    if outcome.state == "open":
        yield "progress"
    if call.state in ("settled", "open") and "late" in outcome.flags:
        yield "settled while due"
    if outcome.released:
        yield "money came back"
    if outcome.dropped:
        yield "dropped by a settle"
    if any(left.remaining < 0 for left in outcome.left.values()):
        yield "a limit below what is used"
    if any(left_behind(bound, auditor) for bound in call.bounds):
        yield "a charge to a budget that is gone or restarted"


def left_behind(bound: Bound, auditor: Auditor) -> bool:
    assert auditor.plan is not None
    return bound.budget not in auditor.plan.budgets or auditor.generation[bound.budget] != bound.key[1]


def of_again(ask: AnyAsk, outcome: Again, auditor: Auditor) -> Iterator[str]:
    if isinstance(ask, Hold):
        yield f"again: {outcome.state}"
        call = auditor.calls.get(ask.id)
        if call is not None and call.ask is not None and call.ask.by < ask.by == call.by:
            yield "a later by under an open hold"
    if isinstance(ask, Settle) and ask.release and ask.by is not None and outcome.state == "open":
        yield "a give-up too early to count"
