"""Days over HTTP: what each came to, who spent it and when, and every decision of one, line by line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import msgspec
import pytest
from aiohttp import ClientPayloadError
from api_document import check_item
from desk_client import DOLLAR, KEY, Desk, open_desk
from integration.rig import eventually

from engine.core.documents import Breakdown, DayTotals, Detail, Point, Sealed, Series, Spent, WalletDay
from web import crowd

NS = 1_000_000_000
DAY = "2026-11-30"
START, END = 1_795_996_800 * NS, 1_796_083_200 * NS
TOTAL = DayTotals(
    "jev", "usd", 9, DAY, START, END, 42, DOLLAR, settled=DOLLAR // 2, held=DOLLAR // 4, peak=DOLLAR, peak_at=START,
    holds=3, settles=2, refused={"busy": 1}, wasted=DOLLAR // 10, unreconciled=-1, unreconciled_holds=1,
)  # fmt: skip
DETAIL = Detail(
    "jev", DAY, 40, DOLLAR // 4,
    [Breakdown("model", [Spent("m1", DOLLAR // 5, 2, 1), Spent(None, DOLLAR // 20, 1)], Spent(), 0)],
    Series(300, [Point(START, DOLLAR // 4, DOLLAR // 4, 3, 1)]),
)  # fmt: skip


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as opened:
        yield opened


# --- what a day came to -----------------------------------------------------------------------------------------------


async def test_the_days_are_written_as_decimal_strings(desk: Desk) -> None:
    desk.purse.total = [TOTAL]
    days = (await desk.get("/v1/days"))["days"]
    assert days == [
        {
            "budget": "jev", "unit": "usd", "period": DAY,
            "starts_at": "2026-11-30T00:00:00.000Z", "ends_at": "2026-12-01T00:00:00.000Z",
            "limit": "1", "settled": "0.5", "held": "0.25", "extra": "0", "used": "0.75",
            "remaining": "0.25", "peak": "1", "wasted": "0.1", "adjusted": "0", "unreconciled": "-0.000000001",
            "used_pct": 75.0, "peak_at": "2026-11-30T00:00:00.000Z", "first_exhausted_at": None,
            "holds": 3, "open_holds": 0, "settles": 2, "refused": {"busy": 1},
            "overruns": 0, "strays": 0, "lapsed": 0, "late": 0, "unheld": 0, "unreported": 0, "corrected": 0,
            "estimated": 0, "conflicts": 0, "unreconciled_holds": 1,
            "sealed": None, "after_seal": {"settled": "0", "extra": "0"}, "seq": 42,
        }
    ]  # fmt: skip


async def test_one_day_is_found_by_its_name(desk: Desk) -> None:
    desk.purse.total = [TOTAL]
    found = await desk.get(f"/v1/days/{DAY}")
    missing = await desk.get("/v1/days/2026-11-29")
    wrong = await desk.get("/v1/days/" + "9" * 65)
    assert (found["day"], found["budgets"][0]["used"]) == (DAY, "0.75")
    assert (found["budgets"][0]["by"], found["budgets"][0]["series"]) == ({}, None)
    assert (missing.status, wrong.status, wrong["field"]) == (404, 400, "day")


async def test_c19_a_sealed_day_shows_its_seal_and_what_came_after(desk: Desk) -> None:
    sealed = Sealed(DAY, END, 77, END + NS)
    desk.purse.total = [
        msgspec.structs.replace(TOTAL, sealed=sealed, settled_after_seal=DOLLAR // 4, extra_after_seal=-1),
        msgspec.structs.replace(TOTAL, budget="other"),
    ]
    found = await desk.get(f"/v1/days/{DAY}")
    shown = {"day": DAY, "seq": 77, "at": "2026-12-01T00:00:01.000Z"}
    assert (found["sealed"], found["budgets"][0]["sealed"], found["budgets"][1]["sealed"]) == (shown, shown, None)
    assert found["budgets"][0]["after_seal"] == {"settled": "0.25", "extra": "-0.000000001"}


async def test_who_spent_a_day_adds_up_to_it_also_where_more_came_when_that_was_final(desk: Desk) -> None:
    desk.purse.total, desk.purse.details = [TOTAL], [DETAIL]
    desk.purse.wallet_day = WalletDay(DAY, 42, {"late": 2, "busy": 1}, 1)
    found = await desk.get(f"/v1/days/{DAY}")
    assert found["budgets"][0]["by"] == {
        "model": {
            "top": [
                {"value": "m1", "settled": "0.2", "holds": 2, "refused": 1},
                {"value": None, "settled": "0.05", "holds": 1, "refused": 0},
            ],
            "other": {"settled": "0.25", "holds": 0, "refused": 0, "values": 0, "uncounted": False},
        }
    }
    assert found["budgets"][0]["series"] == {
        "step_s": 300,
        "before": None,
        "points": [{"at": "2026-11-30T00:00:00.000Z", "settled": "0.25", "held": "0.25", "holds": 3, "refused": 1}],
    }
    refused = {"late": 2, "busy": 1}
    assert found["decided"] == {"refused": refused, "conflicts": 1, "invalid": 0, "unknown": 0, "forgotten": 0}


# --- every decision ---------------------------------------------------------------------------------------------------


async def lines(desk: Desk, query: str = "", day: str = DAY) -> list[dict[str, object]]:
    async with desk.client.get(f"/v1/days/{day}/events{query}", headers={"Authorization": f"Bearer {KEY}"}) as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "application/x-ndjson"
        found = [json.loads(line) async for line in answer.content]
    for line in found:
        check_item(f"/v1/days/{day}/events", line)
    return found


async def spend(desk: Desk) -> None:
    labels = {"provider": "jev"}
    await desk.post("/v1/holds", {"id": "a", "amounts": {"usd": "0.5"}, "labels": labels})
    await desk.post("/v1/holds", {"id": "b", "amounts": {"usd": "0.9"}, "labels": labels})
    await desk.post("/v1/holds/a/settle", {"amounts": {"usd": "0.6"}})
    await desk.post("/v1/holds:batch", {"asks": [{"ask": "hold", "id": i, "amounts": {"usd": "0"}} for i in "cde"]})


async def test_every_decision_of_a_day_is_a_line(desk: Desk) -> None:
    await spend(desk)
    found = await lines(desk)
    assert [(one["seq"], one["told"], one["kind"], one["outcome"], one["id"]) for one in found] == [
        (2, 3, "plan", "planned", "plan-0"),
        (4, 5, "hold", "held", "a"),
        (6, 7, "hold", "exhausted", "b"),
        (8, 9, "settle", "settled", "a"),
        *((10, 11, "hold", "held", id) for id in "cde"),
    ]
    assert found[2] == {
        "seq": 6, "told": 7, "at": "2026-11-30T14:05:00.000Z", "kind": "hold", "outcome": "exhausted", "id": "b",
        "amounts": {"usd": "0.9"}, "why": "busy", "budget": "jev",
    }  # fmt: skip
    assert (found[3]["amounts"], found[3]["flags"], found[3]["state"]) == ({"usd": "0.6"}, ["overrun"], "settled")
    assert desk.purse.reading == 0


async def test_the_cursor_goes_on_behind_a_whole_message(desk: Desk) -> None:
    await spend(desk)
    whole, found = await lines(desk), []
    after = 0
    while page := await lines(desk, f"?after={after}&limit=2"):
        found += page
        after = page[-1]["seq"]
    assert found == whole
    assert [one["id"] for one in await lines(desk, "?after=8&limit=1")] == ["c", "d", "e"]
    assert await lines(desk, "?after=10") == []


@pytest.mark.parametrize(("query", "field"), [
    ("after=-1", "after"), ("after=x", "after"), ("after=", "after"), ("after=99999999999999999999", "after"),
    ("limit=0", "limit"), ("limit=1000001", "limit"), ("limit=\N{SUPERSCRIPT TWO}", "limit"),
])  # fmt: skip
async def test_a_cursor_that_is_none_is_named(desk: Desk, query: str, field: str) -> None:
    answer = await desk.get(f"/v1/days/{DAY}/events?{query}")
    assert (answer.status, answer["field"]) == (400, field)


async def test_there_are_no_events_of_what_is_no_day_of_the_wallet(desk: Desk) -> None:
    for day in ("2026-11-29", "2026-11", "total"):
        assert (await desk.get(f"/v1/days/{day}/events")).status == 404


async def test_what_breaks_off_cannot_be_taken_for_all_there_was(desk: Desk) -> None:
    await spend(desk)
    desk.purse.unheard, desk.purse.breaks_off = 1, True
    with pytest.raises(ClientPayloadError):
        await lines(desk)
    assert desk.purse.reading == 0


async def test_only_so_many_read_the_stream_at_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(crowd.INSIDE_MAX, "events", 0)
    answer = await desk.get(f"/v1/days/{DAY}/events")
    assert (answer.status, answer["type"]) == (503, "/problems/overloaded")


async def test_who_leaves_ends_the_reading(desk: Desk) -> None:
    await spend(desk)
    desk.purse.unheard = 1
    answer = await desk.client.get(f"/v1/days/{DAY}/events", headers={"Authorization": f"Bearer {KEY}"})
    await answer.content.readline()
    assert desk.purse.reading == 1
    answer.close()
    await eventually(lambda: not desk.purse.reading)
