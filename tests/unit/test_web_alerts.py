"""`/v1/alerts` for operators, a test alert, and nothing of either for strangers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest
from desk_client import PLAN, Desk, open_desk
from fake_purse import NOON

from engine.core.documents import AlertBrief, AlertShown
from engine.errors import NoAnswer
from web.status import document

ALERT = AlertShown(
    "alert:percent:jev:2026-11-30:75", "percent", "jev 2026-11-30: 75 % used: $0.75 of $1.00", NOON, 12, "jev",
    "2026-11-30", "75", "usd", {"used": "0.75", "limit": "1"}, {"ops": "sent", "pager": "waiting"},
)  # fmt: skip


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as found:
        yield found


async def test_an_operator_reads_each_alert_and_what_became_of_it(desk: Desk) -> None:
    desk.purse.alerts = [ALERT]
    heard = await desk.get("/v1/alerts")
    assert (heard.status, heard.body) == (200, {"alerts": [{
        "id": "alert:percent:jev:2026-11-30:75", "rule": "percent", "budget": "jev", "period": "2026-11-30",
        "threshold": "75", "unit": "usd", "figures": {"used": "0.75", "limit": "1"},
        "text": "jev 2026-11-30: 75 % used: $0.75 of $1.00", "at": "2026-11-30T14:05:00.000Z", "seq": 12,
        "deliveries": {"ops": "sent", "pager": "waiting"},
    }]})  # fmt: skip


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/alerts"), ("POST", "/v1/alerts/test")])
async def test_strangers_get_nothing(desk: Desk, method: str, path: str) -> None:
    assert (await desk.send(method, path, key=None)).status == 401


async def test_a_test_says_what_each_target_answered(desk: Desk) -> None:
    desk.purse.targets = {"ops": "", "pager": "it answers with status 500"}
    heard = await desk.post("/v1/alerts/test")
    assert heard["targets"] == [
        {"target": "ops", "delivered": True},
        {"target": "pager", "delivered": False, "why": "it answers with status 500"},
    ]
    heard = await desk.post("/v1/alerts/test", {"target": "ops"})
    assert heard["targets"] == [{"target": "ops", "delivered": True}]


async def test_a_test_without_a_target_to_go_to_says_so(desk: Desk) -> None:
    heard = await desk.post("/v1/alerts/test", {})
    assert (heard.status, heard["type"]) == (404, "/problems/no-target")
    desk.purse.targets = {"ops": ""}
    heard = await desk.post("/v1/alerts/test", {"target": "nobody"})
    assert (heard.status, heard["detail"]) == (404, "No target of that name is configured.")
    heard = await desk.post("/v1/alerts/test", {"target": ""})
    assert (heard.status, heard["field"]) == (400, "target")


async def test_nobody_answers(desk: Desk) -> None:
    desk.purse.error = NoAnswer("away")
    assert (await desk.get("/v1/alerts")).status == 503


async def test_the_status_has_the_newest_for_operators_alone(desk: Desk) -> None:
    desk.purse.apply(PLAN)
    status = await desk.purse.status()
    assert status is not None
    status = msgspec.structs.replace(status, alerts=[AlertBrief(ALERT.id, ALERT.text, NOON, delivered=True)])
    said = document(status, audience="operator", live=True)
    assert said["alerts"] == [{"id": ALERT.id, "text": ALERT.text, "at": "2026-11-30T14:05:00.000Z", "delivered": True}]
    assert "alerts" not in document(status, audience="public", live=True)
