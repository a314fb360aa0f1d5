"""The page about a budget: figures that hang together, the same in its exports, for whoever may look; and live."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import AsyncIterator
from html import unescape

import pytest
from browser.office import END, START, TODAY, YESTERDAY, office
from browser.stage import neurons, standing
from desk_client import KEY, Desk

from engine.core.documents import AlertShown, Point, Series
from engine.core.messages import Freeze, Revoke
from engine.errors import NoAnswer
from web.pages import pace
from web.pages.charts import Chart, Line, draw
from web.pages.pace import Mark, Pace, Step
from web.pages.panels import panels

NS = 1_000_000_000
HOUR = 3600 * NS


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with office() as desk:
        await desk.client.post("/sign-in", data={"key": KEY})
        yield desk


async def text(desk: Desk, path: str, status: int = 200) -> str:
    answer = await desk.client.get(path)
    assert answer.status == status, await answer.text()
    return unescape(await answer.text())


def said(html: str) -> str:
    """What stands on the page, without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


# --- what it shows ----------------------------------------------------------------------------------------------------


async def test_it_shows_today_of_the_first_budget_against_its_limit(desk: Desk) -> None:
    status = (await desk.get("/v1/status"))["budgets"][0]
    page = said(await text(desk, "/budget"))
    assert f"{status['settled_pct']} %" in page
    for name in ("settled", "held", "remaining"):
        assert status[name] in page
    assert "45 % used" in page
    assert "An even pace would have spent 58 %." in page
    assert re.search(r"At the pace of the last 1 h it will be used up at \d\d:\d\d UTC", page)


async def test_what_was_chosen_is_what_is_shown(desk: Desk) -> None:
    page = said(await text(desk, f"/budget?budget=jev&by=user&period={YESTERDAY}"))
    assert "How it went" in page
    assert "It was first exhausted at" in page
    assert "(without)" in page
    assert "Other (17 more)" in page
    assert "This day is sealed, by message #100,000" in page


@pytest.mark.parametrize("query", ["budget=nothing", "period=1999-01-01", "budget=jev&period=%00", "by=" + "x" * 200])
async def test_what_there_is_not_is_said_on_a_page(desk: Desk, query: str) -> None:
    answer = await desk.client.get(f"/budget?{query}")
    page = await answer.text()
    assert answer.status in (400, 404)
    assert answer.content_type == "text/html"
    assert "Back to the budget" in page


async def test_a_label_that_nobody_carries_has_no_rows(desk: Desk) -> None:
    assert "Nothing was asked of this budget" in said(await text(desk, "/budget?by=nothing"))


async def test_whatever_somebody_wrote_is_text(desk: Desk) -> None:
    row = desk.purse.details[0].breakdowns[0].top[0]
    row.value = "<script>alert(1)</script>"
    raw = await (await desk.client.get("/budget")).text()
    assert "<script>alert" not in raw
    assert "&lt;script&gt;alert(1)" in raw


async def test_a_wallet_where_nothing_happened_yet_has_its_page(desk: Desk) -> None:
    desk.purse.total.clear()
    desk.purse.details.clear()
    assert "Nothing was asked of this budget in this period yet." in said(await text(desk, "/budget"))


async def test_a_wallet_that_does_not_answer_is_a_page_and_no_figure(desk: Desk) -> None:
    desk.purse.error = NoAnswer("silence")
    page = said(await text(desk, "/budget", status=503))
    assert "The wallet does not answer now." in page
    assert "% used" not in page


def test_no_amount_of_a_period_that_is_over_stands_in_its_panel() -> None:
    status = standing(neurons())
    resets_at = status.budgets[0].resets_at
    before, after = (said(panels(status, "neurons", now=now)) for now in (resets_at - 1, resets_at))
    assert "5,281.4" in before
    assert "No figure yet" in after
    assert "5,281.4" not in after


async def test_how_old_the_providers_figure_is_stands_there(desk: Desk) -> None:
    assert "cloudflare says 4,567.84609 neurons, read 12 s ago." in said(await text(desk, "/budget?budget=neurons"))
    desk.purse.clock += 10 * 60 * NS
    assert "cloudflare has given nothing newer for 10 min" in said(await text(desk, "/budget?budget=neurons"))


async def test_alerts_of_the_budget_stand_there_with_what_became_of_them(desk: Desk) -> None:
    at = desk.purse.clock - 60 * NS
    desk.purse.alerts = [
        AlertShown("a", "percent", "jev: 75 % used", at, 7, "jev", TODAY, "75", deliveries={"ops": "sent"}),
        AlertShown("b", "percent", "neurons: 50 % used", at, 8, "neurons", TODAY, "50"),
    ]
    page = said(await text(desk, "/budget"))
    assert "14:04 UTC jev: 75 % used ops: told" in page
    assert "neurons: 50 %" not in page


async def test_what_is_stopped_has_its_way_back_for_an_admin_alone(desk: Desk) -> None:
    await desk.purse.ask_all([Freeze("f", "jev", "a test", "kim"), Revoke("r", "user", "mallory", "leaked", "kim")])
    page = await text(desk, "/budget")
    assert "mallory" in page
    assert 'action="/acts/thaw"' in page
    assert 'action="/acts/restore"' in page
    key, _ = await desk.new_key("audit")
    await desk.client.post("/sign-in", data={"key": key})
    page = await text(desk, "/budget")
    assert "mallory" in page
    assert "/acts/" not in page
    assert 'href="/keys"' not in page


async def test_a_look_is_on_record_before_it_is_answered(desk: Desk) -> None:
    desk.purse.looks.clear()
    await text(desk, "/budget?by=user")
    assert [(look.by_whom, look.at) for look in desk.purse.looks] == [("admin", "/budget?by=user")]


# --- exports ----------------------------------------------------------------------------------------------------------


async def test_the_exports_have_what_is_shown_and_add_up(desk: Desk) -> None:
    query = f"budget=jev&by=model&period={TODAY}"
    document = json.loads(await text(desk, f"/budget.json?{query}"))
    rows = list(csv.DictReader(io.StringIO(await text(desk, f"/budget.csv?{query}"))))
    page = said(await text(desk, f"/budget?{query}"))
    total = document["total"]["settled"]
    assert [row["settled"] for row in rows if row["what"] == "total"] == [total]
    assert total in page
    models = [row for row in rows if row["what"] == "by model"]
    assert all(row["name"] in page for row in models)

    def nanos(rows: list[dict[str, str]]) -> int:
        return sum(round(float(row["settled"]) * 10**9) for row in rows)

    assert nanos(models) == nanos([row for row in rows if row["what"] == "step"]) == nanos([document["total"]])
    assert {row["name"]: row["refused"] for row in rows if row["what"] == "refused"} == {
        "busy": "14",
        "never_fits": "2",
    }


async def test_a_label_in_the_export_is_no_formula(desk: Desk) -> None:
    desk.purse.details[0].breakdowns[0].top[0].value = "=1+1"
    rows = csv.DictReader(io.StringIO(await text(desk, "/budget.csv")))
    assert "'=1+1" in [row["name"] for row in rows]


# --- live -------------------------------------------------------------------------------------------------------------


async def test_the_stream_sends_the_parts_of_the_page_that_have_changed(desk: Desk) -> None:
    async with desk.client.get("/budget/stream?budget=jev") as answer:
        first = await _next(answer.content)
        assert set(first) == {
            "panels",
            "fresh",
            "course",
            "table",
            "who",
            "alerts",
            "refusals",
            "flags",
            "source",
            "stopped",
        }
        desk.purse.clock += NS
        await desk.purse.show()
        assert set(await _next(answer.content)) <= {"fresh", "panels"}
        desk.board.close()


async def _next(lines: object) -> dict[str, str]:
    async for line in lines:  # type: ignore[attr-defined]
        if line.startswith(b"data: "):
            parts: dict[str, str] = json.loads(line[6:])
            return parts
    raise AssertionError("the stream ended")


async def test_the_stream_is_for_whoever_is_signed_in(desk: Desk) -> None:
    desk.client.session.cookie_jar.clear()
    answer = await desk.client.get("/budget/stream", allow_redirects=False)
    assert answer.status == 303


# --- pace -------------------------------------------------------------------------------------------------------------

SERIES = Series(300, [Point(START + HOUR, 600, 50, 3, 1), Point(START + 2 * HOUR, 300, 20, 2, 0)])


def test_the_course_has_a_corner_where_something_began_and_ended() -> None:
    now = START + 3 * HOUR
    assert pace.marks(SERIES, start=START, end=END, now=now) == [
        Mark(START, 0, 0),
        Mark(START + HOUR, 0, 0),
        Mark(START + HOUR + 300 * NS, 600, 50),
        Mark(START + 2 * HOUR, 600, 50),
        Mark(START + 2 * HOUR + 300 * NS, 900, 20),
        Mark(now, 900, 20),
    ]


def test_steps_too_many_to_be_seen_are_put_together_and_add_up() -> None:
    points = [Point(START + n * 300 * NS, 1, n, 1, 0) for n in range(288)]
    steps = pace.steps(Series(300, points), start=START, end=END)
    assert len(steps) == pace.STEPS_SHOWN_MAX
    assert steps[0] == Step(START, START + 900 * NS, 3, 2, 3, 0)
    assert sum(step.settled for step in steps) == 288


def test_what_was_before_the_first_step_counts() -> None:
    series = Series(300, [Point(START + HOUR, 5)], before=Point(START, 7))
    assert pace.marks(series, start=START, end=END, now=START + 2 * HOUR)[-1].settled == 12
    assert sum(step.settled for step in pace.steps(series, start=START, end=END)) == 12


@pytest.mark.parametrize(
    ("spent_last_hour", "others", "expected"),
    [
        (0, 0, Pace(0, HOUR, None, 500, 500)),
        (100, 0, Pace(100, HOUR, START + 17 * HOUR, 0, 500)),
        (25, 0, Pace(25, HOUR, None, 200, 500)),
        (100, 500, Pace(100, HOUR, START + 12 * HOUR, 0, 500)),
    ],
)
def test_the_outlook_is_that_of_the_last_hour(spent_last_hour: int, others: int, expected: Pace) -> None:
    noon = START + 12 * HOUR
    line = [Mark(START, 0, 0), Mark(noon - HOUR, 500 - spent_last_hour, 0), Mark(noon, 500, 0)]
    assert pace.pace(line, limit=1000, others=others, start=START, end=END, now=noon) == expected


def test_a_period_that_has_just_begun_has_no_pace_yet() -> None:
    line = [Mark(START, 0, 0)]
    assert pace.pace(line, limit=1000, others=0, start=START, end=END, now=START) == Pace(0, 0, None, 1000, 0)


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.003, 0.7, 1.0, 9.99, 10.0, 12345.0, 9.2e18])
def test_any_figure_can_be_drawn(value: float) -> None:
    lines = [Line("a", "area", [START, END], [value, 0.0]), Line("b", "bars", [START], [value], [END])]
    html = draw(Chart("c", "says", "usd", START, END, lines, now=START + HOUR))
    assert html.count("<text") <= 16
    assert "nan" not in html
