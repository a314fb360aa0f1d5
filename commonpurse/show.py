"""What the API answered, as sentences a person understands at once. Pure: the clock comes in, nothing is printed here.

The words are those of the page: spent, held, left, used up, resets. Amounts are shown exactly as the wallet wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from commonpurse.said import AlertSaid, BudgetNow, Frost, Reading, Said, Wallet

FLAGS = {
    "overrun": "more than was held",
    "late": "after the hold had lapsed",
    "unheld": "in a unit the hold did not have",
    "unreported": "a unit was not reported and stands as held",
    "corrected": "corrects what stood provisionally",
    "estimated": "an estimate, which one exact settle may correct",
}
DONE = {"freeze": "frozen", "thaw": "thawed", "revoke": "revoked", "restore": "restored", "adjust": "adjusted"}
BAR_CELLS = 20


def sentence(said: Said, *, verb: str, now: datetime) -> str:
    """One line about one outcome. `verb` is the command that asked: an outcome reads differently after another one."""
    match said.outcome:
        case "held":
            return _held(said, now)
        case "settled":
            return f"{_settled(said, verb)}{_left(said)}{_flags(said)}"
        case "stray":
            return f"charged {_charge(said)}, though no hold of that id is known{_left(said)}"
        case "forgotten":
            return "not charged: that hold is older than the wallet remembers; recorded for a backfill"
        case "observed":
            return f"observed: {_rise(said)}{_left(said)}"
        case "again":
            return f"already {f'at {_charge(said)}' if said.charged else 'so'}; nothing changed"
        case "planned":
            return f"in force: plan {said.digest}" + (f"; at zero: {', '.join(said.restarts)}" if said.restarts else "")
        case "adjusted" | "done":
            return f"{DONE.get(verb, 'done')}{_left(said)}"
        case "exhausted":
            return f"refused{_exhausted(said, now)}{_note(said)}"
        case _ if verb in {"hold", "renew"}:
            return f"refused: {said.problem or said.outcome}"
        case _:
            return f"{said.outcome}: {said.problem}" + (f" It stands at {_charge(said)}." if said.charged else "")


def _held(said: Said, now: datetime) -> str:
    budgets = f" from {' and '.join(said.periods)}" if said.periods else ", which no budget limits,"
    until = f" until {moment(said.expires_at, now)}" if said.expires_at else ""
    return f"held {listed(said.amounts)}{budgets}{until}{_left(said)}"


def _settled(said: Said, verb: str) -> str:
    if verb == "release":
        return f"released: {listed(said.released) or 'nothing'} came back{_kept(said)}"
    if said.state == "open":
        return f"recorded: {_charge(said)} so far; the hold goes on"
    return f"settled at {_charge(said)}{_came_back(said)}"


def _exhausted(said: Said, now: datetime) -> str:
    if said.why != "spent":
        return f" by the {said.budget} budget: {said.problem}"
    whose = "today's" if _is_day(said.period) else "the"
    resets = f"; it resets at {moment(said.resets_at, now)}{_in(said.resets_at, now)}" if said.resets_at else ""
    return f": {whose} {said.budget} budget is used up{_fits(said)}{resets}"


def _rise(said: Said) -> str:
    return f"the wallet counts {said.raised_by} more" if _some(said.raised_by) else "the wallet had counted that much"


def _fits(said: Said) -> str:
    """What would have fitted, where that is something."""
    return f"; at most {said.fits} {said.unit} would fit" if _some(said.fits) else ""


def _left(said: Said) -> str:
    if not said.remaining:
        return ""
    if isinstance(said.remaining, str):
        return f"; {said.remaining} left in {said.budget}"
    units = set(said.amounts) | set(said.charged)
    if len(said.remaining) == 1 and len(units) == 1:
        return f"; {next(iter(said.remaining.values()))} {next(iter(units))} left"
    return "; left: " + ", ".join(f"{amount} in {budget}" for budget, amount in said.remaining.items())


def _charge(said: Said) -> str:
    return listed(said.charged) or "nothing"


def _kept(said: Said) -> str:
    return f", {listed(said.charged)} had been used" if any(map(_some, said.charged.values())) else ""


def _came_back(said: Said) -> str:
    return f"; {listed(said.released)} came back" if said.released else ""


def _flags(said: Said) -> str:
    return f" ({'; '.join(FLAGS.get(flag, flag) for flag in said.flags)})" if said.flags else ""


def _note(said: Said) -> str:
    return (f" - {said.note}" if said.note else "") + (f" <{said.link}>" if said.link else "")


def _some(amount: str | None) -> bool:
    return bool(amount and amount.strip("-0."))


def listed(amounts: Mapping[str, str]) -> str:
    """`0.01 usd and 300 neurons`."""
    return " and ".join(f"{amount} {unit}" for unit, amount in amounts.items())


# --- moments ----------------------------------------------------------------------------------------------------------


def moment(written: str, now: datetime, *, exact: bool = False) -> str:
    """`14:05:12 UTC`, without zero seconds unless `exact`, with the date where it is a day or more from `now`."""
    at = _read(written)
    if at is None:
        return written
    clock = f"{at:%H:%M}" if at.second == 0 and not exact else f"{at:%H:%M:%S}"
    return f"{clock} UTC" if abs(at - now) <= timedelta(days=1) else f"{at:%Y-%m-%d} {clock} UTC"


def _in(written: str, now: datetime) -> str:
    at = _read(written)
    minutes = int((at - now).total_seconds()) // 60 if at is not None else 0
    if minutes < 1 or minutes >= 48 * 60:
        return ""
    return f" (in {minutes // 60} h {minutes % 60} min)" if minutes >= 60 else f" (in {minutes} min)"


def _read(written: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(written)
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo else None


def _is_day(period: str) -> bool:
    return len(period) == 10 and period[4:8:3] == "--"


# --- the wallet now ---------------------------------------------------------------------------------------------------


def wallet_lines(wallet: Wallet, *, now: datetime) -> list[str]:
    """The status document: a headline, one line a budget, and what is frozen."""
    stale = "" if wallet.live else " (not live: nothing newer comes)"
    headline = f"wallet {wallet.wallet} as of {moment(wallet.as_of, now, exact=True)}, event #{wallet.seq:,}{stale}"
    width = max((len(budget.name) for budget in wallet.budgets), default=0)
    budgets = [_budget_line(budget, width=width, now=now) for budget in wallet.budgets]
    freezes = wallet.freezes or ([wallet.frozen] if wallet.frozen else [])
    return [headline, *(budgets or ["no shared budget"]), *(_frozen_line(frost, now) for frost in freezes)]


def _budget_line(budget: BudgetNow, *, width: int, now: datetime) -> str:
    parts = [f"{budget.used_pct:g} % used", *_amount_parts(budget)]
    if budget.resets_at:
        parts.append(f"resets at {moment(budget.resets_at, now)}{_in(budget.resets_at, now)}")
    if budget.first_exhausted_at:
        parts.append(f"first exhausted at {moment(budget.first_exhausted_at, now)}")
    if budget.reading is not None and budget.reading.stale:
        parts.append(_own_calls(budget.reading, now))
    return f"  {budget.name.ljust(width)}  {bar(budget)}  {', '.join(parts)}"


def _amount_parts(budget: BudgetNow) -> Iterator[str]:
    if budget.used is not None and budget.limit is not None:
        yield f"{budget.used} of {budget.limit} {budget.unit}"
    if _some(budget.held):
        yield f"{budget.held} held"
    if _some(budget.extra):
        yield f"{budget.extra} by others on the account"
    if budget.remaining is not None:
        yield f"{budget.remaining} left"


def _own_calls(reading: Reading, now: datetime) -> str:
    since = moment(reading.read_at, now) if reading.read_at else "the period began"
    why = f"cannot be read{f' ({reading.why})' if reading.why else ''}" if reading.unreadable else "has no newer figure"
    return f"counting its own calls since {since}: {reading.source} {why}"


def bar(budget: BudgetNow) -> str:
    """Spent as `#`, held as `=`, left as `.`: readable without colour."""
    used, held = _cells(budget.used_pct), _cells(budget.held_pct)
    return "#" * (used - min(held, used)) + "=" * min(held, used) + "." * (BAR_CELLS - used)


def _cells(percent: float) -> int:
    return max(0, min(BAR_CELLS, int(percent * BAR_CELLS / 100)))


def _frozen_line(frost: Frost, now: datetime) -> str:
    scope = "everything" if frost.scope == "all" else frost.scope
    until = f"until {moment(frost.until, now)}" if frost.until else "until an operator lifts it"
    return f"  frozen: {scope}, {until}: {frost.reason}"


# --- alerts -----------------------------------------------------------------------------------------------------------


def alert_lines(alerts: Sequence[AlertSaid], *, now: datetime) -> list[str]:
    """One line an alert: when, what, and where it has not arrived."""
    return [f"{moment(alert.at, now)}  {alert.text}{_arrived(alert.deliveries)}" for alert in alerts]


def _arrived(deliveries: Mapping[str, str]) -> str:
    """`  (ops: sent, pager: waiting)`; nothing where nobody is to hear of it."""
    said = ", ".join(f"{target}: {state}" for target, state in deliveries.items())
    return f"  ({said})" if said else ""
