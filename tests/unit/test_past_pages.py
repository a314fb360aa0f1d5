"""The pages of the past: the calendar, a day, any moment of it, one call; and what of them is refused."""

from __future__ import annotations

import asyncio
import csv
import re
from collections.abc import AsyncIterator
from datetime import date
from io import StringIO

import msgspec
import pytest
import pytest_asyncio
from desk_client import KEY, Desk, open_desk
from past import LAST as TODAY
from past import NOW, NS, PastPurse, midnight, weeks

from engine.errors import NoAnswer
from projector.audit.looking import Look, Seen
from projector.audit.moment import wallet_at
from projector.days.decisions import Decisions
from projector.reading import CopySource
from web import lookback
from web.pages.taking_along import lines

FIRST = date(2026, 11, 24)
DAY = "2026-11-25"


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    """Signed in as admin, on the last of seven days."""
    purse = PastPurse(weeks(FIRST))
    async with open_desk(purse=purse, looking=purse.looking) as opened:
        await sign_in(opened)
        yield opened


async def sign_in(desk: Desk, key: str = KEY) -> None:
    answer = await desk.client.post("/sign-in", data={"key": key}, allow_redirects=False)
    assert answer.status == 303


async def page(desk: Desk, path: str) -> tuple[int, str]:
    answer = await desk.client.get(path)
    return answer.status, await answer.text()


def past_of(desk: Desk) -> PastPurse:
    assert isinstance(desk.purse, PastPurse)
    return desk.purse


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


# --- who may look -----------------------------------------------------------------------------------------------------

PATHS = (
    "/days", "/days.csv", f"/days/{DAY}", f"/days/{DAY}/moment?at=12:00", f"/days/{DAY}/decisions",
    f"/days/{DAY}/events.csv", f"/days/{DAY}/totals.json", "/holds/1125-001", "/holds/1125-001/events.json",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
async def test_whoever_is_not_signed_in_is_asked_to(path: str) -> None:
    async with open_desk() as desk:
        answer = await desk.client.get(path, allow_redirects=False)
        assert answer.status == 303
        assert answer.headers["Location"].startswith("/sign-in?then=/")


@pytest.mark.parametrize("path", [f"/v1/days/{DAY}/at?time=12:00", "/v1/holds/1125-001/events"])
async def test_the_past_is_for_whoever_may_audit(desk: Desk, path: str) -> None:
    assert (await desk.get(path)).status == 200
    assert (await desk.get(path, key=None)).status == 401


async def test_a_look_at_the_past_goes_on_record(desk: Desk) -> None:
    await page(desk, f"/days/{DAY}/moment?at=12:00")
    assert desk.purse.looks[-1].at == f"/days/{DAY}/moment?at=12:00"


# --- the calendar -----------------------------------------------------------------------------------------------------


async def test_every_day_is_in_the_calendar_with_what_was_used_and_how_far_it_is_proved(desk: Desk) -> None:
    status, html = await page(desk, "/days")
    assert status == 200
    for n in range(24, 31):
        assert f'href="/days/2026-11-{n}"' in html
    cells = dict(re.findall(r'<a href="/days/(2026-11-\d\d)">(.*?)</a></td>', html))
    totals = past_of(desk).past.projection.totals["neurons", DAY]
    share = (totals.settled + totals.extra + totals.held) * 100 // totals.limit
    assert f"neurons {share} %" in words(cells[DAY])
    assert "audited" in cells[DAY]
    assert "sealed" in cells["2026-11-28"]
    assert "running" in cells[TODAY.isoformat()]


async def test_no_day_is_called_audited_that_nobody_has_audited(desk: Desk) -> None:
    past_of(desk).audits = []
    _, html = await page(desk, "/days")
    assert "audited" not in html.lower().replace("nobody has audited it yet", "")
    _, html = await page(desk, f"/days/{DAY}")
    assert "Not audited yet." in html


async def test_a_day_that_an_audit_found_wrong_says_so(desk: Desk) -> None:
    past_of(desk).audits = [msgspec.structs.replace(one, right=False) for one in past_of(desk).audits]
    _, html = await page(desk, f"/days/{DAY}")
    assert "found that something does not add up" in html
    assert "all right" not in html


async def test_the_calendar_as_a_file_has_what_the_calendar_shows(desk: Desk) -> None:
    _, text = await page(desk, "/days.csv")
    rows = list(csv.DictReader(StringIO(text)))
    shown = (await desk.get("/v1/days"))["days"]
    for row in rows:
        total = next(one for one in shown if (one["budget"], one["period"]) == (row["budget"], row["day"]))
        assert (row["used"], row["limit"]) == (total["used"], total["limit"])
    assert {row["day"] for row in rows} == {f"2026-11-{n}" for n in range(24, 31)}


async def test_earlier_days_are_asked_for_by_a_day(desk: Desk) -> None:
    _, html = await page(desk, "/days?before=2026-11-26")
    assert f'href="/days/{DAY}"' in html
    assert 'href="/days/2026-11-26"' not in html
    assert (await page(desk, "/days?before=soon"))[0] == 400


# --- a day ------------------------------------------------------------------------------------------------------------


async def test_a_day_shows_the_figures_that_the_api_has(desk: Desk) -> None:
    status, html = await page(desk, f"/days/{DAY}")
    body = await desk.get(f"/v1/days/{DAY}")
    assert status == 200
    said = words(html).replace(",", "")
    for total in body["budgets"]:
        assert f"{total['used']} of {total['limit']} {total['unit']}" in said
        for row in total["by"]["model"]["top"]:
            assert row["value"] in said


@pytest.mark.parametrize(
    "day", ["2026-11-31", "2026-12-24", "today", "2026-1-1", "2019-01-01", "2026-11-25T14", "x" * 70]
)
async def test_what_is_no_day_on_record_is_not_found(desk: Desk, day: str) -> None:
    status, _ = await page(desk, f"/days/{day}")
    assert status == (400 if len(day) > 64 else 404)


async def test_neighbouring_days_are_linked_and_no_others(desk: Desk) -> None:
    _, first = await page(desk, "/days/2026-11-24")
    _, last = await page(desk, f"/days/{TODAY}")
    assert re.findall(r'href="/days/([\d-]+)" rel', first) == [DAY]
    assert re.findall(r'href="/days/([\d-]+)" rel', last) == ["2026-11-29"]


# --- a moment ---------------------------------------------------------------------------------------------------------


async def test_the_wallet_at_a_moment_is_the_audits(desk: Desk) -> None:
    at = midnight(date(2026, 11, 25)) + (15 * 60 + 30) * 60 * NS
    expected = msgspec.to_builtins(await wallet_at(CopySource(desk.purse.stream), at))
    shown = await desk.get(f"/v1/days/{DAY}/at?time=15:30:00")
    assert shown.body == expected
    assert (await desk.get(f"/v1/days/{DAY}/at?time=2026-11-25T16:30:00%2B01:00")).body == expected
    _, html = await page(desk, f"/days/{DAY}?at=15:30")
    for one in expected["budgets"]:
        assert f'data-budget="{one["budget"]}" data-used="{one["used"]}"' in html
    assert f"as of event #{expected['upto']:,}, told #{expected['told']:,}" in html
    _, part = await page(desk, f"/days/{DAY}/moment?at=15:30")
    assert part in html


@pytest.mark.parametrize("time", ["25:00", "12", "noon", "2026-11-26T00:00:00Z", "12:00:00.5", "12:60", ""])
async def test_what_is_no_time_of_that_day_is_refused_by_name(desk: Desk, time: str) -> None:
    answer = await desk.get(f"/v1/days/{DAY}/at?time={time}")
    assert (answer.status, answer["field"]) == (400, "time")
    assert (await page(desk, f"/days/{DAY}?at={time}"))[0] == 200


async def test_a_moment_that_is_still_to_come_is_refused(desk: Desk) -> None:
    answer = await desk.get(f"/v1/days/{TODAY}/at?time=23:00")
    assert (answer.status, answer["why"]) == (400, "is still to come")


async def test_a_moment_that_is_over_is_looked_up_once(desk: Desk) -> None:
    looks: list[Look] = []

    async def looking(what: Look) -> Seen:
        looks.append(what)
        return await past_of(desk).looking(what)

    async with open_desk(purse=desk.purse, looking=looking) as other:
        for time in ("12:00:00", "12:00", "12:00:00"):
            assert (await other.get(f"/v1/days/{DAY}/at?time={time}")).status == 200
        assert len(looks) == 1
        for _ in range(2):
            assert (await other.get(f"/v1/days/{TODAY}/at?time=17:47:00")).status == 200
        assert len(looks) == 3, "of a moment just passed something may still be told"
    assert desk.purse.now() == NOW


async def test_looks_wait_for_each_other_and_too_many_are_turned_away(desk: Desk) -> None:
    inside, most, gate = 0, 0, asyncio.Event()

    async def looking(what: Look) -> Seen:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await gate.wait()
        inside -= 1
        return Seen(error="nobody")

    async with open_desk(purse=desk.purse, looking=looking) as other:
        asked = [
            asyncio.create_task(other.get(f"/v1/days/{DAY}/at?time=12:00:{n:02}"))
            for n in range(lookback.WAITING_MAX + 2)
        ]
        done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        gate.set()
        answers = [*(task.result() for task in done), *(await asyncio.gather(*waiting))]
    assert most == 1
    assert {answer.status for answer in answers} == {503}
    assert sum(answer["type"] == "/problems/overloaded" for answer in answers) == 2


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        (Seen(untrusted="sequence 7 is missing"), "/problems/not-trusted"),
        (Seen(error="no answer"), "/problems/no-answer"),
        (TimeoutError(), "/problems/too-far"),
        (NoAnswer("gone"), "/problems/no-answer"),
    ],
)
async def test_a_look_that_fails_shows_no_figure(desk: Desk, seen: Seen | Exception, kind: str) -> None:
    async def looking(what: Look) -> Seen:
        if isinstance(seen, Exception):
            raise seen
        return seen

    async with open_desk(purse=desk.purse, looking=looking) as other:
        answer = await other.get(f"/v1/days/{DAY}/at?time=12:00")
        assert answer.status == 503
        assert answer["type"] == kind
        await sign_in(other)
        status, html = await page(other, f"/days/{DAY}?at=12:00")
        assert status == 200
        assert 'class="moment"' not in html


# --- decisions --------------------------------------------------------------------------------------------------------


async def test_decisions_come_page_by_page_and_each_leads_to_its_call(desk: Desk) -> None:
    seen, path = [], f"/days/{DAY}/decisions"
    while path:
        status, html = await page(desk, path)
        assert status == 200
        seen += re.findall(r'<td class="number">([\d,]+)</td></tr>', html)
        found = re.search(r'href="([^"]+after=[^"]+)" class="button"', html)
        path = found[1].replace("&amp;", "&") if found else ""
    async with desk.client.get(f"/days/{DAY}/events.jsonl") as answer:
        lines = [msgspec.json.decode(line) async for line in answer.content]
    assert [int(seq.replace(",", "")) for seq in seen] == [line["seq"] for line in lines]
    assert len(lines) > 200


async def test_every_decision_as_csv_is_the_same_as_the_lines(desk: Desk) -> None:
    _, text = await page(desk, f"/days/{DAY}/events.csv?limit=40")
    _, lines = await page(desk, f"/days/{DAY}/events.jsonl?limit=40")
    rows = list(csv.DictReader(StringIO(text)))
    decoded = [msgspec.json.decode(line) for line in lines.splitlines()]
    pairs = [(row["seq"], row["unit"], row["amount"]) for row in rows if row["unit"]]
    expected = [(str(one["seq"]), unit, figure) for one in decoded for unit, figure in one["amounts"].items()]
    assert pairs == expected


def test_no_cell_of_a_sheet_is_a_formula() -> None:
    written = lines([["=1+1", "-0.5", "@x", "a"]])
    assert written == b"'=1+1,-0.5,'@x,a\r\n"


# --- a call -----------------------------------------------------------------------------------------------------------


def some_call(desk: Desk, outcome: str) -> str:
    """A call of that day in which that happened."""
    span = past_of(desk).past.projection.span(DAY)
    decisions = Decisions(span, after=0)
    for stored in desk.purse.stream:
        if stored.seq > decisions.after:
            for _, made in decisions.take(stored):
                for one in made:
                    if one.outcome == outcome:
                        return one.id
    raise AssertionError(f"none is {outcome}")


async def test_a_calls_timeline_has_every_event_with_its_receipt(desk: Desk) -> None:
    id = some_call(desk, "settled")
    status, html = await page(desk, f"/holds/{id}")
    events = (await desk.get(f"/v1/holds/{id}/events"))["events"]
    assert status == 200
    assert [int(seq) for seq in re.findall(r'data-seq="(\d+)"', html)] == [event["seq"] for event in events]
    for event in events:
        assert event["receipt"]["chain"] in html
    assert "Held" in html
    assert "Settled at" in html
    assert "came back" in html


async def test_a_refused_call_says_why_in_words(desk: Desk) -> None:
    id = some_call(desk, "exhausted")
    status, html = await page(desk, f"/holds/{id}")
    assert status == 200
    assert 'data-state="refused"' in html
    assert "was used up" in html or "other calls held" in html


async def test_a_call_that_nobody_knows_is_not_found_and_says_where_else_to_look(desk: Desk) -> None:
    status, html = await page(desk, "/holds/never-there")
    assert status == 404
    assert "purse audit --hold" in html
    assert (await desk.get("/v1/holds/never-there/events")).status == 404


async def test_what_is_no_id_is_refused(desk: Desk) -> None:
    assert (await page(desk, "/holds/%3Cscript%3E"))[0] == 400
    assert (await page(desk, "/holds/1125-001?after=x"))[0] == 400
