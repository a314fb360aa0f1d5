"""What no record says, what is frozen because of an alert, and what a target gets: pure functions and one loop."""

from __future__ import annotations

import msgspec
import pytest

from engine.core.documents import BudgetStatus, Reading, Status
from engine.core.messages import Conflict, Done, Freeze, Frost
from engine.errors import BadAsk, NoAnswer
from projector.alerts.alert import Alert
from projector.alerts.freezing import NEWS_S, Freezing
from projector.alerts.rules import Rules
from projector.alerts.target import parcel_of
from projector.alerts.watching import SILENT_S, seen_now

NS = 1_000_000_000
NOON = 1_796_040_000 * NS
"""2026-11-30 12:00 UTC."""


def status(*, as_of: int = NOON, reading: Reading | None = None, frozen: list[Frost] | None = None) -> Status:
    jev = BudgetStatus(
        "jev", "usd", 9, "day", "UTC", "2026-11-30", NOON - 12 * 3600 * NS, 0, 1, 0, 0, 0, reading=reading
    )
    return Status("main", 7, as_of, "", [jev], frozen or [])


def seen(now: Status, *, waiting: int = 0, oldest: int = 0, rules: Rules | None = None) -> list[str]:
    return [alert.id for alert in seen_now(rules or Rules(), now, waiting=waiting, oldest=oldest)]


# --- seen beside the record -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ago_s", "alert"), [(90, []), (91, ["alert:unreadable:jev:2026-11-30:"])])
def test_a_source_is_unreadable_once_its_figure_is_older_than_three_intervals(ago_s: int, alert: list[str]) -> None:
    assert seen(status(reading=Reading("cloudflare", 30, NOON - ago_s * NS, "its key may not read"))) == alert


def test_a_source_that_answers_is_readable_however_old_its_figure() -> None:
    assert seen(status(reading=Reading("cloudflare", 30, NOON - 3600 * NS))) == []


@pytest.mark.parametrize(("ago_s", "alert"), [(SILENT_S - 1, []), (SILENT_S, ["alert:silent::2026-11-30T12:"])])
def test_no_engine_answers_once_a_message_has_waited_too_long(ago_s: int, alert: list[str]) -> None:
    assert seen(status(), waiting=2, oldest=NOON - ago_s * NS) == alert
    assert seen(status(), waiting=0, oldest=0) == []


def test_rules_that_are_off_see_nothing() -> None:
    rules = Rules(off=frozenset({"silent", "unreadable"}))
    reading = Reading("cloudflare", 30, 0, "gone")
    assert seen(status(reading=reading), waiting=1, oldest=NOON - 3600 * NS, rules=rules) == []


# --- freezing ---------------------------------------------------------------------------------------------------------

RUNAWAY = Alert(
    "alert:runaway:jev:2026-11-30T12:4", "runaway", "$5 ...", NOON, 7, "jev", "2026-11-30T12", "4", "usd",
    freezes="$5.00 spent in this hour",
)  # fmt: skip


class Desk:
    """Hears asks, and answers or fails as told."""

    def __init__(self, *answers: object) -> None:
        self.asked: list[Freeze] = []
        self.answers = list(answers)
        self.outcome: object = None

    async def ask(self, ask: Freeze) -> Desk:
        self.asked.append(ask)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.outcome = answer
        return self


async def test_a_runaway_is_frozen_under_an_id_that_follows_from_the_hour() -> None:
    desk = Desk(Done("f"))
    freezing = Freezing(desk)
    for _ in range(3):
        await freezing.look([RUNAWAY], status())
    assert desk.asked == [
        Freeze("freeze:jev:2026-11-30T12", "jev", "$5.00 spent in this hour", by_whom="alert: runaway")
    ]


async def test_what_nobody_answered_is_asked_again_and_what_was_refused_is_not() -> None:
    for answers, asked in (
        ([NoAnswer("away"), Done("f")], 2),
        ([BadAsk("scope", "no")], 1),
        ([Conflict("f", "reason")], 1),
    ):
        desk = Desk(*answers)
        freezing = Freezing(desk)
        for _ in range(3):
            await freezing.look([RUNAWAY], status())
        assert len(desk.asked) == asked


@pytest.mark.parametrize("scope", ["all", "jev"])
async def test_what_is_frozen_already_keeps_its_operators_reason_and_end(scope: str) -> None:
    desk = Desk()
    await Freezing(desk).look([RUNAWAY], status(frozen=[Frost(scope, "by hand", NOON)]))
    assert desk.asked == []


async def test_old_news_freezes_nothing() -> None:
    desk = Desk()
    await Freezing(desk).look([RUNAWAY], status(as_of=NOON + NEWS_S * NS))
    await Freezing(desk).look([msgspec.structs.replace(RUNAWAY, freezes="")], status())
    assert desk.asked == []


# --- what a target gets -----------------------------------------------------------------------------------------------


def test_slack_gets_a_text_and_programs_get_every_figure() -> None:
    alert = Alert(
        "alert:percent:jev:2026-11-30:75", "percent", "jev 2026-11-30: 75 % used: $3.75 of $5.00", NOON, 9041, "jev",
        "2026-11-30", "75", "usd", {"used": "3.75", "limit": "5"},
    )  # fmt: skip
    assert msgspec.json.decode(parcel_of(alert, "slack", "main").body) == {
        "text": "[main] jev 2026-11-30: 75 % used: $3.75 of $5.00"
    }
    parcel = parcel_of(alert, "json", "main")
    assert parcel.id == alert.id
    assert msgspec.json.decode(parcel.body) == {
        "v": 1, "id": alert.id, "wallet": "main", "rule": "percent", "budget": "jev", "period": "2026-11-30",
        "threshold": "75", "unit": "usd", "figures": {"used": "3.75", "limit": "5"}, "text": alert.text, "seq": 9041,
        "at": "2026-11-30T12:00:00Z",
    }  # fmt: skip


def test_an_id_that_no_header_can_hold_is_written_so_that_one_can() -> None:
    alert = Alert("alert:loss::2026-11-30:lö ss\n", "loss", "", NOON)
    assert parcel_of(alert, "json", "main").id == "alert:loss::2026-11-30:l??ss?"
