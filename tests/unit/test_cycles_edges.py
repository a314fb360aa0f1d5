"""What every answer of Cycles' routes has: ids, the tenant, errors in one shape; and who is let in."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from cycles_client import ACTION, Cycles, open_cycles, usd

from engine.core.plan import Budget, Plan

OBSERVED = Plan(budgets={"acme": Budget("usd", 10**9, each=None, where={"tenant": "acme"}, source="openai")})
TRACE = "0af7651916cd43dd8448eb211c80319c"
RESERVE = "/v1/reservations"


@pytest_asyncio.fixture
async def cycles() -> AsyncIterator[Cycles]:
    async with open_cycles() as cycles:
        yield cycles


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/balances?tenant=acme", 200), ("GET", "/v1/reservations/x", 404), ("PUT", RESERVE, 405),
        ("DELETE", "/v1/reservations/x", 405), ("PATCH", "/v1/balances", 405), ("TRACE", "/v1/decide", 405),
        ("OPTIONS", RESERVE, 405), ("GET", "/v1/events", 405), ("POST", RESERVE, 400), ("GET", "/actuator/env", 404),
        ("GET", "/v1/reservations/x/y", 404), ("GET", "/actuator/health/readiness", 200),
    ],
)  # fmt: skip
async def test_every_answer_has_its_ids(cycles: Cycles, method: str, path: str, status: int) -> None:
    await cycles.reserved()
    answer = await cycles.send(method, path)
    assert answer.status == status
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["X-Cycles-Trace-Id"])
    assert answer.headers["X-Request-Id"]
    assert answer.headers["Content-Type"] == "application/json"
    if status >= 400:
        assert set(answer.body) <= {"error", "message", "request_id", "details"}
        assert answer["request_id"] == answer.headers["X-Request-Id"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}, True),
        ({"X-Cycles-Trace-Id": TRACE}, True),
        ({"X-Cycles-Trace-Id": TRACE.upper()}, False),
        ({"X-Cycles-Trace-Id": "0" * 32}, False),
        ({"traceparent": "nonsense", "X-Cycles-Trace-Id": TRACE}, True),
        ({}, False),
    ],
    ids=["traceparent", "own", "upper case", "zeros", "one of two", "none"],
)
async def test_a_trace_goes_on_and_one_that_is_none_is_replaced(
    cycles: Cycles, sent: dict[str, str], kept: bool
) -> None:
    answer = await cycles.send("GET", "/v1/balances?tenant=acme", headers=sent)
    assert answer.status == 200
    assert (answer.headers["X-Cycles-Trace-Id"] == TRACE) is kept
    assert answer.headers["X-Cycles-Tenant"] == "acme"


async def test_without_a_key_or_with_a_wrong_one_nobody_gets_in(cycles: Cycles) -> None:
    for headers in ({"X-Cycles-API-Key": "nonsense"}, {"X-Cycles-API-Key": ""}, {"X-Cycles-API-Key": cycles.key + "x"}):
        refused = await cycles.desk.send("GET", RESERVE, key=None, headers=headers)
        assert (refused.status, refused["error"]) == (401, "UNAUTHORIZED")
    refused = await cycles.desk.send("GET", RESERVE)  # the wallet's own header opens the wallet's own routes
    assert (refused.status, refused["error"]) == (401, "UNAUTHORIZED")


async def test_a_key_of_another_role_is_forbidden(cycles: Cycles) -> None:
    observer = Cycles(cycles.desk, (await cycles.desk.new_key("observe"))[0])
    assert (await observer.reserve())["error"] == "FORBIDDEN"


async def test_an_open_wallet_takes_any_tenants_word() -> None:
    async with open_cycles(open=True) as cycles:
        anybody = Cycles(cycles.desk, "anything", "globex")
        id = await anybody.reserved()
        assert (await anybody.commit(id, 5)).status == 200


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"x"', b'{"a": NaN}', b'{"a":1,"a":2}', b"\xff"], ids=repr
)
async def test_what_is_no_body_is_refused(cycles: Cycles, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    for path in (RESERVE, "/v1/decide", "/v1/events", f"{RESERVE}/{await cycles.reserved()}/commit"):
        refused = await cycles.send("POST", path, data=body, headers=headers)
        assert (refused.status, refused["error"]) == (400, "INVALID_REQUEST")


async def test_another_content_type_is_refused(cycles: Cycles) -> None:
    refused = await cycles.send("POST", RESERVE, data=b"a=b", headers={"Content-Type": "text/plain"})
    assert (refused.status, refused["error"]) == (400, "INVALID_REQUEST")


async def test_what_nobody_foresaw_is_logged_and_says_no_more(
    cycles: Cycles, capfd: pytest.CaptureFixture[str]
) -> None:
    cycles.desk.purse.by = None  # type: ignore[assignment,method-assign]
    refused = await cycles.reserve()
    assert (refused.status, refused["error"]) == (500, "INTERNAL_ERROR")
    assert "TypeError" not in refused["message"]


async def test_readiness_is_the_whole_wallets_and_needs_no_key(cycles: Cycles) -> None:
    ready = await cycles.desk.get("/actuator/health/readiness", key=None)
    assert (ready.status, ready.body) == (200, {"status": "UP"})
    cycles.desk.purse.engine_ready = False
    down = await cycles.desk.get("/actuator/health/readiness", key=None)
    assert (down.status, down.body) == (503, {"status": "DOWN"})


async def test_a_providers_figure_is_observed_on_a_route_of_our_own(cycles: Cycles) -> None:
    observer = Cycles(cycles.desk, (await cycles.desk.new_key("observe"))[0])
    path = "/v1/x-commonpurse/observations"
    refused = await observer.send("POST", path, json={"budget": "acme", "figure": "0.5"})
    assert (refused.status, refused["error"]) == (400, "INVALID_REQUEST")
    assert "source" in refused["message"]
    assert (await cycles.send("POST", path, json={"budget": "acme", "figure": "0.5"})).status == 403


async def test_an_observed_figure_counts_as_spent() -> None:
    async with open_cycles(OBSERVED) as cycles:
        observer = Cycles(cycles.desk, (await cycles.desk.new_key("observe"))[0])
        body = {"budget": "acme", "figure": "0.5"}
        assert (await observer.send("POST", "/v1/x-commonpurse/observations", json=body)).status == 200
        assert (await cycles.balance())["spent"] == 50_000_000


async def test_decide_reads_the_header_key_like_all_others(cycles: Cycles) -> None:
    body = {"idempotency_key": "a", "subject": {"tenant": "acme"}, "action": ACTION, "estimate": usd(1)}
    same = await cycles.send("POST", "/v1/decide", json=body, headers={"X-Idempotency-Key": "a"})
    other = await cycles.send("POST", "/v1/decide", json=body, headers={"X-Idempotency-Key": "b"})
    assert (same.status, other.status) == (200, 400)
