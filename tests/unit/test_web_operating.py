"""What an operator does over HTTP, who may do what, and what every answer carries."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from desk_client import DOLLAR, KEY, NEURON, PLAN, Desk, open_desk
from fake_purse import NS
from structlog.testing import capture_logs

from engine.core.messages import (
    Adjust,
    Observe,
)
from engine.core.plan import digest
from engine.plan_file import plan_to_json
from web import spending
from web.app import _TABLES
from web.keys import make_key


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


# --- figures and corrections ------------------------------------------------------------------------------------------


async def test_an_observation_needs_only_budget_and_figure(desk: Desk) -> None:
    observed = await desk.post("/v1/observations", {"budget": "neurons", "figure": "4300"})
    assert (observed.status, observed["outcome"], observed["raised_by"]) == (200, "observed", "4300")
    assert (observed["period"], observed["remaining"], observed["used_pct"]) == ("2026-11-30", "5700", 43.0)
    ask = desk.purse.asked[-1]
    assert isinstance(ask, Observe)
    assert (ask.source, ask.figure, ask.as_of) == ("cloudflare", 4300 * NEURON, desk.purse.clock - NS)


async def test_an_observation_names_period_time_and_source(desk: Desk) -> None:
    body = {
        "budget": "neurons",
        "figure": 12.5,
        "period": "2026-11-29",
        "as_of": "2026-11-29T23:00:00Z",
        "source": "cloudflare",
    }
    observed = await desk.post("/v1/observations", body)
    assert (observed["period"], observed["raised_by"]) == ("2026-11-29", "12.5")


async def test_a_figure_from_another_source_is_a_400_by_the_wallet(desk: Desk) -> None:
    refused = await desk.post("/v1/observations", {"budget": "neurons", "figure": "1", "source": "openai"})
    assert (refused.status, refused["outcome"], refused["field"]) == (400, "invalid", "source")


async def test_an_adjustment_goes_on_record_with_its_reason_and_who_made_it(desk: Desk) -> None:
    body = {
        "id": "fix-1",
        "budget": "jev",
        "period": "2026-11-30",
        "amount": "0.25",
        "reason": "typo in March",
        "hold": "h",
    }
    adjusted = await desk.post("/v1/adjustments", body)
    assert (adjusted.status, adjusted["outcome"], adjusted["remaining"]) == (200, "adjusted", "0.75")
    assert desk.purse.asked[-1] == Adjust(
        "fix-1", "jev", "2026-11-30", DOLLAR // 4, "typo in March", by_whom="admin", hold="h"
    )


async def test_the_same_adjustment_twice_counts_once_and_another_under_its_id_is_422(desk: Desk) -> None:
    body = {"budget": "jev", "period": "2026-11-30", "amount": "-0.25", "reason": "typo"}
    headers = {"Idempotency-Key": "fix-1"}
    first = await desk.post("/v1/adjustments", body, headers=headers)
    again = await desk.post("/v1/adjustments", body, headers=headers)
    other = await desk.post("/v1/adjustments", {**body, "amount": "-0.5"}, headers=headers)
    assert [(one.status, one["outcome"]) for one in (first, again, other)] == [
        (200, "adjusted"),
        (200, "again"),
        (422, "conflict"),
    ]


# --- freeze, revoke ---------------------------------------------------------------------------------------------------


async def test_b25_a_freeze_stops_holds_but_never_settles(desk: Desk) -> None:
    await desk.hold("before", "0.5")
    frozen = await desk.post("/v1/freeze", {"scope": "all", "reason": "checking"})
    refused = await desk.hold("after", "0.1")
    settled = await desk.settle("before", "0.2")
    thawed = await desk.post("/v1/thaw", {"scope": "all", "reason": "checked"})
    held = await desk.hold("later", "0.1")
    assert [one.status for one in (frozen, refused, settled, thawed, held)] == [200, 403, 200, 200, 201]
    assert frozen["outcome"] == thawed["outcome"] == "done"


async def test_thaw_of_what_is_not_frozen_says_again(desk: Desk) -> None:
    again = await desk.post("/v1/thaw", {"scope": "jev"})
    assert (again.status, again["outcome"]) == (200, "again")


async def test_a_revoked_user_is_refused_until_restored(desk: Desk) -> None:
    labels = {"user": "mallory"}
    await desk.post("/v1/revoke", {"label": "user", "value": "mallory", "reason": "abuse"})
    refused = await desk.hold("a", "0.1", labels=labels)
    await desk.post("/v1/restore", {"label": "user", "value": "mallory"})
    held = await desk.hold("b", "0.1", labels=labels)
    assert [refused.status, held.status] == [403, 201]


# --- the plan ---------------------------------------------------------------------------------------------------------


async def test_the_plan_is_shown_as_people_write_it_with_its_digest(desk: Desk) -> None:
    shown = await desk.get("/v1/plan")
    assert shown.status == 200
    assert shown["plan"]["budgets"]["jev"]["limit"] == "1"
    assert shown["digest"] == digest(PLAN)


async def test_a_changed_plan_is_decided_by_at_once(desk: Desk) -> None:
    shown = await desk.get("/v1/plan")
    plan = shown["plan"]
    plan["budgets"]["jev"]["limit"] = "0.1"
    planned = await desk.post("/v1/plan", {"plan": plan, "replaces": shown["digest"]})
    refused = await desk.hold("a", "0.25")
    assert (planned.status, planned["outcome"], planned["restarts"]) == (200, "planned", [])
    assert planned["digest"] == desk.purse.wallet.plan_digest
    assert (refused.status, refused["limit"]) == (400, "0.1")


async def test_a_plan_made_from_an_older_one_is_409(desk: Desk) -> None:
    written = plan_to_json(PLAN)
    newer = msgspec.structs.replace(PLAN, ttl_s=300)
    desk.purse.apply(newer)
    stale = await desk.post("/v1/plan", {"plan": {**written, "plan": {"ttl_s": 60}}, "replaces": digest(PLAN)})
    assert (stale.status, stale["outcome"], stale["field"]) == (409, "conflict", "replaces")
    assert desk.purse.wallet.plan == newer


async def test_restarting_meters_are_named(desk: Desk) -> None:
    await desk.hold("a", "0.1")
    shown = await desk.get("/v1/plan")
    plan = shown["plan"]
    plan["budgets"]["jev"]["zone"] = "Asia/Tokyo"
    planned = await desk.post("/v1/plan", {"plan": plan, "replaces": shown["digest"]})
    assert planned["restarts"] == ["jev"]


async def test_the_first_plan_can_be_posted_and_serves_at_once() -> None:
    async with open_desk(plan=None) as desk:
        planned = await desk.post("/v1/plan", {"plan": plan_to_json(PLAN), "replaces": ""})
        held = await desk.hold("a", "0.1")
    assert (planned.status, held.status) == (200, 201)


# --- who may do what --------------------------------------------------------------------------------------------------

OPEN_TO_ALL = {"/v1/status", "/v1/status/stream", "/v1/estimate", "/livez", "/readyz"}
SPENDING = {route.path for route in spending.ROUTES}


@pytest.mark.parametrize(
    "route",
    [route for route in _TABLES if route.path not in OPEN_TO_ALL],
    ids=lambda route: f"{route.method} {route.path}",
)
@pytest.mark.parametrize("key", [None, "", "guessed-it", f"{KEY}x", KEY[:-1], "\N{SNOWMAN}"])
async def test_without_the_key_there_is_nothing_but_a_401(desk: Desk, route: object, key: str | None) -> None:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    answer = await desk.send(
        route.method, route.path.replace("{id}", "a").replace("{day}", "d"), key=None, headers=headers
    )  # type: ignore[attr-defined]
    assert (answer.status, answer.headers["Content-Type"]) == (401, "application/problem+json")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert desk.purse.asked == []
    assert not key or key not in json.dumps(answer.body)


async def test_no_key_file_means_nobody_is_an_admin() -> None:
    async with open_desk(admin_key="") as desk:
        answers = [
            await desk.get("/v1/plan", headers={"Authorization": said}, key=None) for said in ("Bearer ", "Bearer", "")
        ]
    assert [answer.status for answer in answers] == [401, 401, 401]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_is_read_in_any_case(desk: Desk, scheme: str) -> None:
    assert (await desk.get("/v1/plan", key=None, headers={"Authorization": f"{scheme} {KEY}"})).status == 200


async def test_an_open_wallet_takes_holds_and_settles_from_anybody_but_nothing_else() -> None:
    async with open_desk(open=True) as desk:
        spent = [
            await desk.post(
                "/v1/holds", {"id": "a", "amounts": {"usd": "0.5"}, "labels": {"provider": "jev"}}, key=None
            ),
            await desk.get("/v1/holds/a", key=None),
            await desk.post("/v1/holds/a/renew", {"n": 1}, key=None),
            await desk.post("/v1/holds/a/settle", {"amounts": {"usd": "0.1"}}, key=None),
            await desk.post("/v1/holds/a/release", key=None),
            await desk.post("/v1/holds:batch", {"asks": [{"ask": "hold", "amounts": {"usd": "0.1"}}]}, key=None),
        ]
        assert [answer.status for answer in spent] == [201, 200, 200, 200, 422, 200]
        closed = [route for route in _TABLES if route.path not in OPEN_TO_ALL | SPENDING]
        for route in closed:
            assert (
                await desk.send(route.method, route.path.replace("{day}", "d").replace("{id}", "a"), key=None)
            ).status == 401


async def test_an_operators_ask_in_a_batch_needs_the_key_and_nothing_of_the_batch_is_sent() -> None:
    async with open_desk(open=True) as desk:
        asks = [{"ask": "hold", "amounts": {"usd": "0.1"}}, {"ask": "freeze", "scope": "all", "reason": "mischief"}]
        refused = await desk.post("/v1/holds:batch", {"asks": asks}, key=None)
        assert refused.status == 401
        assert "asks[1]" in refused["detail"]
        assert desk.purse.asked == []


@pytest.mark.parametrize(
    "wrong",
    ["purse_wrong", "cp_wrong", f"{KEY}x", make_key()[1]],
    ids=["of purse up", "mistyped", "longer", "unknown"],
)
async def test_a_wrong_key_is_refused_even_where_none_is_needed(wrong: str) -> None:
    async with open_desk(open=True) as desk:
        answers = [
            await desk.get("/v1/status", key=wrong),
            await desk.post("/v1/holds", {"amounts": {"usd": "0"}}, key=wrong),
        ]
    assert [answer.status for answer in answers] == [401, 401]


async def test_an_open_wallet_takes_a_key_of_somebody_elses_for_none() -> None:
    async with open_desk(open=True) as desk:
        status = await desk.get("/v1/status", key="sk-dummy")
        held = await desk.post("/v1/holds", {"amounts": {"usd": "0"}}, key="sk-dummy")
        plan = await desk.get("/v1/plan", key="sk-dummy")
    assert [answer.status for answer in (status, held, plan)] == [200, 201, 401]


async def test_an_admin_may_name_any_label(desk: Desk) -> None:
    labels = {"user": "alice", "key": "k1", "cohort": "premium", "origin": "o1"}
    held = await desk.post("/v1/holds", {"id": "a", "amounts": {"jpy": "30"}, "labels": labels})
    assert (held.status, held["remaining"]) == (201, {"user-daily": "50"})


# --- what every answer carries ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/v1/status", "/v1/plan", "/nowhere", "/v1/holds", "/livez", "/openapi.json"])
async def test_every_answer_has_a_request_id_and_the_security_headers(desk: Desk, path: str) -> None:
    answer = await desk.get(path)
    assert len(answer.headers["x-request-id"]) == 32
    assert answer.headers["Content-Security-Policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == ("no-store" if path != "/openapi.json" else "no-cache")
    assert "aiohttp" not in answer.headers["Server"]


@pytest.mark.parametrize(
    ("said", "kept"), [("my-trace.1", True), ("x" * 65, False), ("a b", False), ("<script>", False)]
)
async def test_a_callers_own_request_id_is_kept_if_it_is_one(desk: Desk, said: str, kept: bool) -> None:
    answer = await desk.get("/livez", headers={"x-request-id": said})
    assert (answer.headers["x-request-id"] == said) is kept


@pytest.mark.parametrize(("method", "path", "status"), [
    ("HEAD", "/v1/status", 200), ("HEAD", "/livez", 200), ("HEAD", "/v1/holds", 405),
    ("HEAD", "/v1/status/stream", 405),
    ("HEAD", "/nowhere", 404), ("DELETE", "/v1/holds/a", 405), ("PUT", "/v1/plan", 405), ("OPTIONS", "/nowhere", 404),
])  # fmt: skip
async def test_other_methods_are_answered_as_problems(desk: Desk, method: str, path: str, status: int) -> None:
    answer = await desk.send(method, path)
    assert answer.status == status
    assert status == 200 or answer.headers["Content-Type"] == "application/problem+json"
    assert status != 405 or answer.headers["Allow"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/status", {"GET", "HEAD", "OPTIONS"}), ("/v1/plan", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("/v1/holds", {"POST", "OPTIONS"}), ("/v1/status/stream", {"GET", "OPTIONS"}),
    ],
)  # fmt: skip
async def test_whoever_asks_for_its_methods_is_told(desk: Desk, path: str, allowed: set[str]) -> None:
    answer = await desk.send("OPTIONS", path, key=None)
    assert (answer.status, answer.body) == (204, "")
    assert {method.strip() for method in answer.headers["Allow"].split(",")} == allowed


async def test_an_error_of_ours_is_a_500_without_its_text_and_is_logged(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.purse, "now", lambda: 1 // 0)
    with capture_logs() as logged:
        answer = await desk.post("/v1/holds/secret-call/settle", {"amounts": {"usd": "1"}})
    assert (answer.status, answer["type"]) == (500, "/problems/internal")
    assert "division" not in json.dumps(answer.body)
    assert logged == [
        {
            "event": "request_failed", "log_level": "error", "exc_info": True, "method": "POST",
            "path": "/v1/holds/{id}/settle", "request_id": answer.headers["x-request-id"],
        }
    ]  # fmt: skip


# --- health -----------------------------------------------------------------------------------------------------------


async def test_ready_only_when_engine_projector_and_plan_are_there(desk: Desk) -> None:
    desk.purse.spool_depth = 3
    ready = await desk.get("/readyz?verbose", key=None)
    desk.purse.engine_ready = False
    unready = await desk.get("/readyz", key=None)
    assert (ready.status, ready.body) == (
        200,
        {"ready": True, "checks": {"engine": True, "projector": True, "plan": True, "web": True}, "spool_depth": 3},
    )
    assert (unready.status, unready["checks"]["engine"], unready["detail"]) == (503, False, "Not ready: engine.")


async def test_not_ready_without_a_plan_but_alive() -> None:
    async with open_desk(plan=None) as desk:
        ready, live = await desk.get("/readyz"), await desk.get("/livez")
    assert (ready.status, ready["checks"]["plan"], live.status) == (503, False, 200)
