"""One observer through days and failures, in a world whose clock moves only while it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from structlog.testing import capture_logs

from engine.core.documents import BudgetStatus, Figure, Reading, Status
from engine.core.messages import Again, AnyOutcome, Invalid, Line, Observe, Observed
from engine.errors import BadAsk, NoAnswer, StreamRefused
from projector.observers import pace as pace_
from projector.observers.kinds import KINDS, Name
from projector.observers.observer import HEARTBEAT_S, RECORD_S_MAX, Observer
from projector.observers.pace import Pace
from projector.observers.running import Observers
from projector.observers.settings import ObserverSettings
from projector.observers.source import Figures, Unreadable

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
TODAY, YESTERDAY = "2026-11-30", "2026-11-29"
KEY = "a-secret"


def moment(written: str) -> int:
    return int(datetime.fromisoformat(f"{written}+00:00").timestamp()) * SECOND


MIDNIGHT = moment("2026-11-30 00:00:00")
NOON = moment("2026-11-30 12:00:00")
BUDGETS = {
    "cloudflare": BudgetStatus("b", "neurons", 6, "day", "UTC", TODAY, 0, 0, 10**10, 0, 0, 0, source="cloudflare"),
    "openrouter": BudgetStatus("b", "usd", 9, "day", "UTC", TODAY, 0, 0, 10**9, 0, 0, 0, source="openrouter"),
}


class Stop(Exception):
    pass


class World:
    """Source, wallet and clock of one observer. `says` is the figure of each day, or what is raised instead."""

    def __init__(self, at: int, *, source: Name = "cloudflare", every_s: int = 30, chance: float = 0.0) -> None:
        self.at = at
        self.plan = "p"
        self.budget: BudgetStatus | None = BUDGETS[source]
        self.says: dict[str, str] = {}
        self.fails: list[Exception] = []
        self.refuses: list[Exception | AnyOutcome] = []
        self.answer_s = 0.5
        self.tried: list[int] = []
        self.days: list[list[str]] = []
        self.asked: list[Observe] = []
        self.waits: list[float] = []
        self.until = at
        settings = ObserverSettings(
            name="o", source=source, budget="b", account="", every_s=every_s, base_url="", key=KEY
        )
        pace = Pace(every_s, lambda: chance)
        self.observer = Observer(settings, self, self, turn=asyncio.Lock(), pace=pace, sleep=self.sleep)

    def status(self) -> Status:
        budgets = [self.budget] if self.budget is not None else []
        return Status("main", 1, self.at, self.plan, budgets)

    async def read(self, days: Sequence[date]) -> Figures:
        self.tried.append(self.at)
        self.days.append([day.isoformat() for day in days])
        self.at += int(self.answer_s * SECOND)
        if self.fails:
            raise self.fails.pop(0)
        return {day: Decimal(self.says.get(day.isoformat(), "0")) for day in days}

    async def observe(self, ask: Observe, *, wait_s: float) -> AnyOutcome:
        assert wait_s == RECORD_S_MAX
        if self.refuses:
            refusal = self.refuses.pop(0)
            if isinstance(refusal, Exception):
                raise refusal
            return refusal
        self.asked.append(ask)
        return Observed(ask.id, 0, Line(ask.period, 0, 0, 0, 0))

    async def sleep(self, wait_s: float) -> None:
        self.waits.append(wait_s)
        self.at += int(wait_s * SECOND)
        if self.at >= self.until:
            raise Stop

    async def run(self, seconds: float) -> None:
        """The observer for so long."""
        self.until = self.at + int(seconds * SECOND)
        with pytest.raises(Stop):
            await self.observer.run(self.status)

    async def look(self) -> float:
        return await self.observer.look(self.status)

    def observed(self) -> list[tuple[str, int]]:
        return [(ask.period, ask.figure) for ask in self.asked]

    def reading(self, period: str = TODAY) -> Reading:
        return self.observer.reading(period)


# --- observing --------------------------------------------------------------------------------------------------------


async def test_a_figure_is_observed_as_of_the_moment_before_it_was_asked_for() -> None:
    world = World(NOON)
    world.says = {TODAY: "4300.25"}
    await world.look()
    (ask,) = world.asked
    assert (ask.budget, ask.period, ask.figure, ask.source, ask.each) == ("b", TODAY, 4_300_250_000, "cloudflare", None)
    assert (ask.as_of, world.at) == (NOON, NOON + SECOND // 2)
    assert ask.id == f"observe:b:{TODAY}:4300250000:{NOON}"


async def test_the_longest_id_is_still_an_id() -> None:
    world = World(2**63 - 1 - DAY)
    assert world.budget is not None
    world.budget = replace(world.budget, name="b" * 32)
    world.observer.settings = replace_settings(world.observer.settings, budget="b" * 32)
    await world.look()
    world.asked.clear()
    await world.observer._record("2262-04-11", 2**63 - 1, world.at)
    assert len(world.asked[0].id) <= 96


def replace_settings(settings: ObserverSettings, *, budget: str) -> ObserverSettings:
    return ObserverSettings(
        name=settings.name, source=settings.source, budget=budget, account="", every_s=30, base_url="", key=KEY
    )


async def test_a_figure_that_has_not_changed_is_observed_again_only_every_five_minutes() -> None:
    world = World(NOON)
    world.says = {TODAY: "12"}
    await world.run(20 * 60)
    gaps = [later.as_of - earlier.as_of for earlier, later in pairwise(world.asked)]
    assert len(world.tried) > 30
    assert len(world.asked) == 4
    assert all(HEARTBEAT_S * SECOND <= gap <= (HEARTBEAT_S + 31) * SECOND for gap in gaps)


async def test_a_figure_that_changes_is_observed_at_once() -> None:
    world = World(NOON)
    for figure in ("12", "12", "13", "13"):
        world.says = {TODAY: figure}
        await world.look()
    assert world.observed() == [(TODAY, 12_000_000), (TODAY, 13_000_000)]


async def test_a_figure_lower_than_before_is_observed_too() -> None:
    """It is the wallet that keeps the highest."""
    world = World(NOON)
    for figure in ("12", "7", "7"):
        world.says = {TODAY: figure}
        await world.look()
    assert world.observed() == [(TODAY, 12_000_000), (TODAY, 7_000_000)]


async def test_what_was_observed_before_is_no_news() -> None:
    world = World(NOON)
    world.refuses = [Again("o", 5)]
    await world.look()
    await world.look()
    assert world.asked == []
    assert world.reading().unreadable == ""


async def test_the_status_says_when_the_figure_was_last_read_though_it_is_the_same() -> None:
    world = World(NOON)
    await world.look()
    assert world.reading() == Reading("cloudflare", 30, NOON)
    world.at = NOON + 30 * SECOND
    await world.look()
    assert len(world.asked) == 1
    assert world.reading() == Reading("cloudflare", 30, NOON + 30 * SECOND)


# --- around midnight --------------------------------------------------------------------------------------------------


async def test_the_day_that_has_ended_is_read_on_for_a_while_and_observed_as_itself() -> None:
    world = World(MIDNIGHT + 60 * SECOND)
    world.says = {YESTERDAY: "9000", TODAY: "1"}
    await world.look()
    assert world.observed() == [(TODAY, 1_000_000), (YESTERDAY, 9_000_000_000)]
    world.says[YESTERDAY] = "9100"
    world.at = MIDNIGHT + 365 * SECOND  # the longest lag that was measured
    await world.look()
    assert (YESTERDAY, 9_100_000_000) in world.observed()
    world.at = MIDNIGHT + KINDS["cloudflare"].read_on_s * SECOND
    await world.look()
    assert world.days == [[YESTERDAY, TODAY], [YESTERDAY, TODAY], [TODAY]]


async def test_a_day_past_the_wallets_memory_does_not_stand_in_the_way_of_today() -> None:
    world = World(MIDNIGHT + 60 * SECOND)
    world.says = {YESTERDAY: "9000", TODAY: "1"}
    taken = Observed("o", 0, Line(TODAY, 0, 0, 0, 0))
    world.refuses = [taken, Invalid("o", "period", "this period is past the wallet's memory")]
    assert await world.look() == 30
    assert world.reading() == Reading("cloudflare", 30, MIDNIGHT + 60 * SECOND)
    await world.look()
    assert world.asked == [], "it is not told again at every try"


async def test_a_running_day_that_is_not_taken_is_no_reading() -> None:
    world = World(MIDNIGHT + 60 * SECOND)
    world.refuses = [Invalid("o", "period", "this period has not begun")]
    await world.look()
    assert world.reading().unreadable == "what it said was not recorded: period: this period has not begun"


async def test_the_last_moment_of_a_day_is_still_that_day() -> None:
    world = World(MIDNIGHT - 1)
    await world.look()
    assert world.days == [[YESTERDAY]]


async def test_a_figure_of_yesterday_says_nothing_of_today() -> None:
    world = World(MIDNIGHT - SECOND)
    await world.look()
    assert world.reading(YESTERDAY).read_at == MIDNIGHT - SECOND
    assert world.reading(TODAY).read_at == 0


async def test_a_source_that_does_not_name_its_day_is_not_asked_just_after_midnight() -> None:
    """Its "today" may still be yesterday, and a figure never falls."""
    world = World(MIDNIGHT - SECOND, source="openrouter")
    world.says = {YESTERDAY: "9", TODAY: "0.5"}
    await world.run(400)
    quiet = [at for at in world.tried if MIDNIGHT <= at < MIDNIGHT + 300 * SECOND]
    assert quiet == []
    assert world.observed() == [(YESTERDAY, 9 * SECOND), (TODAY, SECOND // 2)]
    assert all(len(days) == 1 for days in world.days)


# --- pace -------------------------------------------------------------------------------------------------------------


async def test_it_asks_at_most_every_interval_with_some_chance_on_top() -> None:
    for chance in (0.0, 0.5, 1.0):
        world = World(NOON, chance=chance)
        await world.run(3_600)
        gaps = [later - earlier for earlier, later in pairwise(world.tried)]
        assert all(30 * SECOND <= gap <= 34 * SECOND for gap in gaps)
        assert len(gaps) > 100


async def test_k6_a_source_that_refuses_is_asked_less_and_less_often() -> None:
    world = World(NOON)
    world.fails = [Unreadable("no") for _ in range(1_000)]
    await world.run(24 * 3600)
    assert world.waits[1:7] == [60, 120, 240, 480, 900, 900]
    assert len(world.tried) < 110


async def test_after_an_answer_it_asks_as_often_as_before() -> None:
    world = World(NOON)
    world.fails = [Unreadable("no"), Unreadable("no")]
    assert [await world.look() for _ in range(4)] == [60, 120, 30, 30]
    world.fails = [Unreadable("no")]
    assert await world.look() == 60


@pytest.mark.parametrize(("asks_s", "wait_s"), [(7, 60), (200, 200), (1e12, pace_.RETRY_AFTER_S_MAX)])
async def test_it_waits_as_long_as_it_is_asked_to_within_reason(asks_s: float, wait_s: float) -> None:
    world = World(NOON)
    world.fails = [Unreadable("no", retry_after_s=asks_s)]
    assert await world.look() == wait_s


async def test_a_restart_does_not_ask_again_at_once() -> None:
    world = World(NOON)
    assert world.budget is not None
    world.budget = replace(world.budget, observed=Figure("cloudflare", 1, NOON - 10 * SECOND))
    await world.run(100)
    assert world.waits[0] == 20
    world = World(NOON, chance=1.0)
    await world.run(100)
    assert world.waits[0] == pace_.START_S_MAX


@given(
    every_s=st.integers(30, 86_400),
    chance=st.floats(0, 1),
    failures=st.integers(1, 10_000),
    retry_after_s=st.floats(0, 1e12),
    since=st.none() | st.floats(-1e6, 1e6),
)
def test_no_wait_is_shorter_than_the_interval_or_without_end(
    every_s: int, chance: float, failures: int, retry_after_s: float, since: float | None
) -> None:
    pace = Pace(every_s, lambda: chance)
    longest = 1.1 * max(every_s, pace_.BACKOFF_S_MAX, pace_.RETRY_AFTER_S_MAX)
    assert every_s <= pace.next_s() <= longest
    assert every_s <= pace.again_s(failures, retry_after_s=retry_after_s) <= longest
    first_s = pace.first_s(since_last_s=since)
    assert 0 <= first_s <= every_s + pace_.START_S_MAX
    if since is not None and 0 <= since <= every_s:
        assert since + first_s >= every_s * (1 - 1e-9)


async def test_one_provider_is_asked_by_one_observer_at_a_time() -> None:
    inside = most = 0

    class Slow:
        async def read(self, days: Sequence[date]) -> Figures:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            inside -= 1
            return {day: Decimal(0) for day in days}

    turn = asyncio.Lock()
    worlds = [World(NOON) for _ in range(3)]
    for world in worlds:
        world.observer._source, world.observer._turn = Slow(), turn
    await asyncio.gather(*(world.look() for world in worlds))
    assert most == 1


# --- unreadable -------------------------------------------------------------------------------------------------------


async def test_why_it_cannot_be_read_is_shown_until_it_can_and_logged_once() -> None:
    world = World(NOON)
    await world.look()
    world.fails = [Unreadable("no"), Unreadable("no"), Unreadable("otherwise")]
    with capture_logs() as logs:
        for _ in range(3):
            await world.look()
        assert world.reading() == Reading("cloudflare", 30, NOON, "otherwise")
        await world.look()
    assert world.reading().unreadable == ""
    said = [(line["event"], line.get("why")) for line in logs]
    assert said == [("source_unreadable", "no"), ("source_unreadable", "otherwise"), ("source_readable", None)]
    assert KEY not in str(logs)


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (NoAnswer("timeout"), "what it said could not be recorded: the wallet does not answer"),
        (StreamRefused("full"), "what it said could not be recorded: the wallet does not answer"),
        (
            BadAsk("as_of", "a figure is not from the future"),
            "was not recorded: as_of: a figure is not from the future",
        ),
        (Invalid("o", "period", "past the memory"), "what it said was not recorded: period: past the memory"),
    ],
)
async def test_what_the_wallet_does_not_take_counts_as_not_read(refusal: Exception | AnyOutcome, said: str) -> None:
    world = World(NOON)
    world.refuses = [refusal]
    assert await world.look() == 60
    assert said in world.reading().unreadable
    assert world.reading().read_at == 0
    await world.look()
    assert len(world.asked) == 1, "it is said again"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda budget: None, "the plan in force has no shared budget of this name"),
        (lambda budget: replace(budget, source="openai"), 'its `source` in the plan is "openai"'),
        (lambda budget: replace(budget, per="month"), "cloudflare counts by days, this budget by the month"),
        (lambda budget: replace(budget, unit="usd"), "it counts usd, cloudflare counts neurons"),
        (lambda budget: replace(budget, zone="Asia/Tokyo"), "by those of Asia/Tokyo"),
    ],
)
async def test_a_plan_that_changed_under_it_is_said_and_nobody_is_asked(
    change: Callable[[BudgetStatus], BudgetStatus | None], said: str
) -> None:
    world = World(NOON)
    fitting = world.budget
    assert fitting is not None
    world.budget = change(fitting)
    assert [await world.look() for _ in range(3)] == [30, 30, 30], "it may be put right at any moment"
    assert said in world.reading().unreadable
    assert (world.tried, world.asked) == ([], [])
    world.budget = fitting
    await world.look()
    assert world.reading() == Reading("cloudflare", 30, NOON)


async def test_before_the_first_plan_nobody_is_asked_and_nothing_is_wrong() -> None:
    world = World(NOON)
    world.plan, fitting, world.budget = "", world.budget, None
    assert await world.look() < 30
    assert (world.tried, world.reading()) == ([], Reading("cloudflare", 30))
    world.plan, world.budget = "p", fitting
    assert await world.look() == 30
    assert len(world.asked) == 1


async def test_in_a_zone_that_was_utc_until_last_night_only_days_that_are_its_periods_are_observed() -> None:
    """In London the 29th of March 2026 has 23 hours: it begins as a UTC day and ends otherwise."""
    world = World(moment("2026-03-29 00:10:00"))
    assert world.budget is not None
    world.budget = replace(world.budget, zone="Europe/London")
    await world.look()
    assert "by those of Europe/London" in world.reading("2026-03-29").unreadable
    world = World(moment("2026-10-26 00:10:00"))
    world.budget = replace(world.budget, zone="Europe/London") if world.budget else None
    await world.look()
    assert [period for period, _ in world.observed()] == ["2026-10-26"]


async def test_a_read_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projector.observers.observer.READ_S_MAX", 0.01)  # it never answers

    class Silent:
        async def read(self, days: Sequence[date]) -> Figures:
            await asyncio.Event().wait()
            raise AssertionError

    world = World(NOON)
    world.observer._source = Silent()
    await world.look()
    assert world.reading().unreadable == "it does not answer in time"


async def test_a_negative_figure_is_none() -> None:
    world = World(NOON)
    world.says = {TODAY: "-1"}
    await world.look()
    assert world.reading().unreadable == "its figure is negative"
    assert world.asked == []


async def test_what_is_not_read_any_more_is_not_remembered() -> None:
    world = World(MIDNIGHT)
    for _ in range(200):
        await world.look()
        world.at += DAY // 4
    assert len(world.observer._said) <= 2
    assert len(world.observer._read_at) <= 2


# --- beside the status ------------------------------------------------------------------------------------------------


async def test_the_status_shows_how_reading_fares_only_where_somebody_reads() -> None:
    world = World(NOON)
    await world.look()
    other = replace(BUDGETS["openrouter"], name="other")
    status = Status("main", 1, NOON, "p", [BUDGETS["cloudflare"], other])
    shown = Observers([world.observer]).shown(status)
    assert [budget.reading for budget in shown.budgets] == [Reading("cloudflare", 30, NOON), None]
    assert Observers([]).shown(status) is status
