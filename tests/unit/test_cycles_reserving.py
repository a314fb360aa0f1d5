"""A reservation of Cycles is a hold: what is granted, what is refused, and what a repeat hears."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from cycles_client import ACTION, DOLLAR, PLAN, Cycles, of_tenant, open_cycles, tokens, usd
from desk_client import KEY, open_desk
from fake_purse import NOON, NS

from engine.core.amounts import SCALES
from engine.core.messages import Hold, Settle
from engine.core.plan import Budget, Guard, Plan
from engine.errors import NoAnswer


@pytest_asyncio.fixture
async def cycles() -> AsyncIterator[Cycles]:
    async with open_cycles() as cycles:
        yield cycles


async def test_a_reservation_is_granted_with_exactly_what_a_client_needs(cycles: Cycles) -> None:
    granted = await cycles.reserve(10_000)
    assert granted.status == 200
    at_ms = NOON // 1_000_000
    assert granted.body == {
        "decision": "ALLOW",
        "reservation_id": granted["reservation_id"],
        "reserved": usd(10_000),
        "expires_at_ms": at_ms + 60_000,
        "remaining_ttl_ms": 60_000,
        "scope_path": "tenant:acme",
        "affected_scopes": ["tenant:acme"],
    }
    assert await cycles.balance() == {
        "remaining": DOLLAR - 10_000, "allocated": DOLLAR, "spent": 0, "reserved": 10_000, "debt": 0
    }  # fmt: skip


# --- whose spending it is ---------------------------------------------------------------------------------------------


async def test_every_level_is_a_label_of_the_hold_and_a_scope_in_order(cycles: Cycles) -> None:
    subject = {"toolset": "web", "agent": "scout", "app": "crm"}
    granted = await cycles.reserve(subject=subject)
    assert granted["affected_scopes"] == [
        "tenant:acme", "tenant:acme/app:crm", "tenant:acme/app:crm/agent:scout",
        "tenant:acme/app:crm/agent:scout/toolset:web",
    ]  # fmt: skip
    assert granted["scope_path"] == granted["affected_scopes"][-1]
    hold = cycles.desk.purse.asked[-1]
    assert isinstance(hold, Hold)
    assert hold.labels.items() >= {"tenant": "acme", "app": "crm", "agent": "scout", "toolset": "web"}.items()
    assert set(hold.labels) == {"tenant", "app", "agent", "toolset", "key", "origin"}


async def test_a_budget_of_each_agent_binds_that_agent_alone(cycles: Cycles) -> None:
    scout, other = {"agent": "scout"}, {"agent": "other"}
    await cycles.reserved(DOLLAR // 2, subject=scout)
    refused = await cycles.reserve(1, subject=scout)
    assert (refused.status, refused["error"]) == (409, "BUDGET_EXCEEDED")
    assert refused["details"] == {"scope": "tenant:acme/agent:scout"}
    assert (await cycles.reserve(DOLLAR // 2, subject=other)).status == 200
    assert (await cycles.balance("tenant:acme/agent:scout"))["remaining"] == 0


async def test_another_tenant_than_the_keys_is_forbidden(cycles: Cycles) -> None:
    refused = await cycles.reserve(subject={"tenant": "globex"})
    assert (refused.status, refused["error"]) == (403, "FORBIDDEN")
    assert cycles.desk.purse.asked == []


async def test_a_level_that_the_key_says_otherwise_is_forbidden() -> None:
    async with open_cycles() as cycles:
        key, _ = await cycles.desk.new_key(labels={"tenant": "acme", "app": "crm"})
        own = Cycles(cycles.desk, key)
        assert (await own.reserve(subject={"app": "shop"})).status == 403
        granted = await own.reserve(subject={"agent": "scout"})
        assert granted["affected_scopes"] == ["tenant:acme", "tenant:acme/agent:scout"]
        hold = cycles.desk.purse.asked[-1]
        assert isinstance(hold, Hold)
        assert hold.labels["app"] == "crm"


async def test_a_key_without_a_tenant_speaks_for_its_user_and_else_for_itself(cycles: Cycles) -> None:
    desk = cycles.desk
    alice = Cycles(desk, (await desk.new_key(user="alice"))[0])
    answer = await alice.post("/v1/decide", {"subject": {"app": "x"}, "action": ACTION, "estimate": tokens(1)})
    assert answer.headers["X-Cycles-Tenant"] == "alice"
    key, id = await desk.new_key()
    nobody = Cycles(desk, key)
    answer = await nobody.post("/v1/decide", {"subject": {"app": "x"}, "action": ACTION, "estimate": tokens(1)})
    assert answer.headers["X-Cycles-Tenant"] == id


async def test_the_admin_key_names_the_tenant_it_speaks_for(cycles: Cycles) -> None:
    admin = Cycles(cycles.desk, KEY, "globex")
    assert (await admin.reserve()).status == 200
    refused = await admin.reserve(subject={"app": "crm"})
    assert (refused.status, refused["error"]) == (400, "INVALID_REQUEST")


async def test_a_subject_no_budget_counts_is_not_found_and_never_free() -> None:
    async with open_cycles(Plan(budgets={"globex": Budget("usd", 10, where={"tenant": "globex"})})) as cycles:
        refused = await cycles.reserve()
        assert (refused.status, refused["error"]) == (404, "NOT_FOUND")
        assert cycles.desk.purse.asked == []


async def test_a_unit_that_the_budgets_there_do_not_have_is_a_mismatch(cycles: Cycles) -> None:
    refused = await cycles.reserve(estimate={"unit": "CREDITS", "amount": 1})
    assert (refused.status, refused["error"]) == (400, "UNIT_MISMATCH")
    assert refused["details"] == {
        "scope": "tenant:acme", "requested_unit": "CREDITS", "expected_units": ["TOKENS", "USD_MICROCENTS"]
    }  # fmt: skip


async def test_tokens_are_held_in_tokens(cycles: Cycles) -> None:
    granted = await cycles.reserve(estimate=tokens(600))
    assert granted["reserved"] == tokens(600)
    assert (await cycles.reserve(estimate=tokens(401)))["error"] == "BUDGET_EXCEEDED"


async def test_credits_and_risk_points_are_units_of_the_plan() -> None:
    units = {**SCALES, "credits": 0, "risk_points": 2}
    budgets = {name: Budget(name, 500, each="tenant") for name in ("credits", "risk_points")}
    async with open_cycles(Plan(budgets=budgets, units=units)) as cycles:
        assert (await cycles.reserve(estimate={"unit": "CREDITS", "amount": 500})).status == 200
        assert (await cycles.reserve(estimate={"unit": "RISK_POINTS", "amount": 6})).status == 409
        assert (await cycles.reserve(estimate={"unit": "RISK_POINTS", "amount": 5})).status == 200


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", [DOLLAR + 1, 2**62], ids=["a bit", "far"])
async def test_what_can_never_fit_is_a_denial_like_any_other(cycles: Cycles, amount: int) -> None:
    refused = await cycles.reserve(amount)
    assert refused.status in (400, 409)
    assert refused["error"] == ("BUDGET_EXCEEDED" if amount == DOLLAR + 1 else "INVALID_REQUEST")


async def test_what_others_hold_is_no_throttling(cycles: Cycles) -> None:
    await cycles.reserved(DOLLAR - 1)
    refused = await cycles.reserve(2)
    assert (refused.status, refused["error"]) == (409, "BUDGET_EXCEEDED")
    assert "Retry-After" not in refused.headers
    assert set(refused.body) == {"error", "message", "request_id", "details"}
    assert refused["request_id"] == refused.headers["x-request-id"]


async def test_a_frozen_budget_says_so(cycles: Cycles) -> None:
    await cycles.desk.post("/v1/freeze", {"scope": "acme", "reason": "looking into it"})
    refused = await cycles.reserve()
    assert (refused.status, refused["error"]) == (409, "BUDGET_FROZEN")


async def test_cooling_is_throttling(cycles: Cycles) -> None:
    guards = {"agents": Guard("agent", 1, 60, "cool", for_s=300)}
    cycles.desk.purse.apply(msgspec.structs.replace(PLAN, guards=guards))
    subject = {"agent": "scout"}
    await cycles.reserved(subject=subject)
    refused = await cycles.reserve(subject=subject)
    assert (refused.status, refused["error"], refused.headers["Retry-After"]) == (429, "LIMIT_EXCEEDED", "300")


async def test_a_ttl_beyond_the_plan_is_refused_with_its_bounds(cycles: Cycles) -> None:
    cycles.desk.purse.apply(msgspec.structs.replace(PLAN, ttl_s_max=3600))
    async with open_desk(purse=cycles.desk.purse) as desk:
        refused = await Cycles(desk, cycles.key).reserve(ttl_ms=3_601_000)
    assert (refused.status, refused["error"]) == (400, "INVALID_REQUEST")
    assert "3600" in refused["message"]


async def test_nobody_answering_is_no_permission(cycles: Cycles) -> None:
    await cycles.reserved()
    cycles.desk.purse.error = NoAnswer("nobody answers")
    refused = await cycles.reserve()
    assert (refused.status, refused["error"]) == (503, "INTERNAL_ERROR")
    assert refused.headers["Retry-After"]


async def test_a_plan_that_has_just_lost_the_budget_holds_nothing(cycles: Cycles) -> None:
    await cycles.reserved()
    cycles.desk.purse.apply(Plan(budgets={"globex": PLAN.budgets["globex"]}))
    refused = await cycles.reserve()
    assert refused.status == 404
    assert len(cycles.desk.purse.wallet.open) == 1


# --- asked again ------------------------------------------------------------------------------------------------------


async def test_a_repeat_hears_the_first_answer_with_the_time_that_is_left(cycles: Cycles) -> None:
    first = await cycles.reserve(idempotency_key="once")
    cycles.desk.purse.clock += 20 * NS
    again = await cycles.reserve(idempotency_key="once")
    assert again.status == 200
    assert again.body == {**first.body, "remaining_ttl_ms": 40_000}
    assert (await cycles.balance())["reserved"] == 10_000


async def test_a_repeat_after_its_end_hears_the_first_answer_with_no_time_left(cycles: Cycles) -> None:
    first = await cycles.reserve(idempotency_key="once")
    await cycles.commit(first["reservation_id"], 5)
    again = await cycles.reserve(idempotency_key="once")
    assert again.body == {**first.body, "remaining_ttl_ms": 0}


async def test_a_repeat_with_another_key_of_the_tenant_is_the_same_reservation(cycles: Cycles) -> None:
    first = await cycles.reserve(idempotency_key="once")
    other = await of_tenant(cycles.desk, "acme")
    assert (await other.reserve(idempotency_key="once"))["reservation_id"] == first["reservation_id"]
    globex = await of_tenant(cycles.desk, "globex")
    assert (await globex.reserve(idempotency_key="once"))["reservation_id"] != first["reservation_id"]


@pytest.mark.parametrize(
    "changed",
    [{"estimate": usd(9)}, {"ttl_ms": 50_000}, {"metadata": {"run": 1}}, {"action": {"kind": "a", "name": "b"}}],
    ids=["estimate", "ttl", "metadata", "action"],
)
async def test_another_request_under_the_same_key_is_a_mismatch(cycles: Cycles, changed: dict[str, object]) -> None:
    id = await cycles.reserved(idempotency_key="once")
    refused = await cycles.reserve(**{"idempotency_key": "once", **changed})
    assert (refused.status, refused["error"]) == (409, "IDEMPOTENCY_MISMATCH")
    await cycles.commit(id, 1)
    assert (await cycles.reserve(**{"idempotency_key": "once", **changed}))["error"] == "IDEMPOTENCY_MISMATCH"


async def test_a_refused_key_may_be_used_again(cycles: Cycles) -> None:
    held = await cycles.reserved(DOLLAR)
    assert (await cycles.reserve(7, idempotency_key="once")).status == 409
    await cycles.release(held)
    cycles.desk.purse.clock += 10 * NS  # past the moment until which a refused attempt is remembered
    assert (await cycles.reserve(7, idempotency_key="once")).status == 200


async def test_a_hold_that_was_given_up_is_no_permission_to_whoever_repeats_the_request(cycles: Cycles) -> None:
    first = await cycles.reserved(idempotency_key="once")
    hold = cycles.desk.purse.asked[-1]
    assert isinstance(hold, Hold)
    await cycles.desk.purse.ask(Settle(hold=hold.id, release=True, by=hold.by))  # by a process that heard nothing
    refused = await cycles.reserve(idempotency_key="once")  # by another that asked at the same moment
    assert (refused.status, refused["error"]) == (503, "INTERNAL_ERROR")
    cycles.desk.purse.clock += 1
    again = await cycles.reserve(idempotency_key="once")
    assert (again.status, again["reservation_id"] != first) == (200, True)
    assert (await cycles.commit(first, 1)).status == 404
    assert (await cycles.commit(again["reservation_id"], 1)).status == 200


async def test_processes_that_share_nothing_answer_for_each_other(cycles: Cycles) -> None:
    first = await cycles.reserve(idempotency_key="once")
    async with open_desk(purse=cycles.desk.purse) as desk:
        other = Cycles(desk, cycles.key)
        assert (await other.reserve(idempotency_key="once")).body == first.body
        assert (await other.commit(first["reservation_id"], 4, idempotency_key="done")).status == 200
    again = await cycles.commit(first["reservation_id"], 4, idempotency_key="done")
    assert again.body == {"status": "COMMITTED", "charged": usd(4), "released": usd(9_996)}


async def test_a_key_in_the_header_has_to_be_the_bodys(cycles: Cycles) -> None:
    refused = await cycles.reserve(idempotency_key="a")
    assert refused.status == 200
    body = {"idempotency_key": "a", "subject": {"tenant": "acme"}, "action": ACTION, "estimate": usd(1)}
    answer = await cycles.send("POST", "/v1/reservations", json=body, headers={"X-Idempotency-Key": "b"})
    assert (answer.status, answer["error"]) == (400, "INVALID_REQUEST")


# --- looking ----------------------------------------------------------------------------------------------------------


async def test_a_look_says_what_a_reservation_would_be_told_and_changes_nothing(cycles: Cycles) -> None:
    body = {"subject": {"tenant": "acme"}, "action": ACTION, "estimate": usd(DOLLAR)}
    assert (await cycles.post("/v1/decide", body)).body == {"decision": "ALLOW", "affected_scopes": ["tenant:acme"]}
    await cycles.reserved(1)
    asked = len(cycles.desk.purse.asked)
    assert (await cycles.post("/v1/decide", body)).body == {
        "decision": "DENY", "reason_code": "BUDGET_EXCEEDED", "affected_scopes": ["tenant:acme"]
    }  # fmt: skip
    dry = await cycles.post("/v1/reservations", {**body, "dry_run": True})
    assert dry.body == {
        "decision": "DENY", "reason_code": "BUDGET_EXCEEDED", "affected_scopes": ["tenant:acme"],
        "scope_path": "tenant:acme",
    }  # fmt: skip
    assert len(cycles.desk.purse.asked) == asked


async def test_a_look_at_what_no_budget_counts_is_a_denial_and_at_a_wrong_unit_an_error(cycles: Cycles) -> None:
    body = {"subject": {"tenant": "acme"}, "action": ACTION, "estimate": {"unit": "CREDITS", "amount": 1}}
    assert (await cycles.post("/v1/decide", body))["error"] == "UNIT_MISMATCH"
    cycles.desk.purse.apply(Plan(budgets={"globex": PLAN.budgets["globex"]}))
    async with open_desk(purse=cycles.desk.purse) as desk:
        denied = await Cycles(desk, cycles.key).post("/v1/decide", {**body, "estimate": usd(1)})
    assert (denied.status, denied["decision"], denied["reason_code"]) == (200, "DENY", "BUDGET_NOT_FOUND")


async def test_a_look_hears_of_frost_and_debt(cycles: Cycles) -> None:
    body = {"subject": {"tenant": "acme"}, "action": ACTION, "estimate": usd(1)}
    await cycles.desk.post("/v1/freeze", {"scope": "acme", "reason": "looking into it"})
    assert (await cycles.post("/v1/decide", body))["reason_code"] == "BUDGET_FROZEN"
    await cycles.desk.post("/v1/thaw", {"scope": "acme", "reason": "done"})
    await cycles.event(DOLLAR + 1)
    assert (await cycles.post("/v1/decide", body))["reason_code"] == "OVERDRAFT_LIMIT_EXCEEDED"


# --- bodies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"unknown": 1},
        {"subject": {}},
        {"subject": {"dimensions": {"a": "b"}}},
        {"subject": {"tenant": "acme", "team": "x"}},
        {"subject": {"tenant": ""}},
        {"subject": {"tenant": "a\x00b"}},
        {"action": {"kind": "a"}},
        {"action": {"kind": "a" * 65, "name": "b"}},
        {"action": {"kind": "a", "name": "b", "tags": ["t"] * 11}},
        {"estimate": {"unit": "USD", "amount": 1}},
        {"estimate": {"unit": "TOKENS", "amount": -1}},
        {"estimate": {"unit": "TOKENS", "amount": 1.5}},
        {"estimate": {"unit": "TOKENS", "amount": "1"}},
        {"estimate": {"unit": "TOKENS", "amount": 2**63}},
        {"estimate": {"unit": "TOKENS", "amount": 2**70}},
        {"ttl_ms": 999},
        {"ttl_ms": 86_400_001},
        {"ttl_ms": None},
        {"grace_period_ms": 60_001},
        {"overage_policy": "MAYBE"},
        {"idempotency_key": ""},
        {"idempotency_key": "k" * 257},
        {"metadata": None},
        {"dry_run": "yes"},
    ],
    ids=repr,
)
async def test_what_the_schema_does_not_have_is_refused(cycles: Cycles, wrong: dict[str, object]) -> None:
    refused = await cycles.reserve(**wrong)
    assert (refused.status, refused["error"]) in ((400, "INVALID_REQUEST"), (403, "FORBIDDEN"))
    assert cycles.desk.purse.asked == []


async def test_more_labels_than_a_hold_may_have_are_refused_and_named(cycles: Cycles) -> None:
    labels = {"tenant": "acme", **{f"l{number}": "x" for number in range(7)}}
    key, _ = await cycles.desk.new_key(labels=labels, user="u", cohort="c")
    subject = dict.fromkeys(("workspace", "app", "workflow", "agent", "toolset"), "x")
    refused = await Cycles(cycles.desk, key).reserve(subject=subject)
    assert (refused.status, refused["error"]) == (400, "INVALID_REQUEST")
    assert "at most 16 labels" in refused["message"]


async def test_what_would_not_fit_on_the_record_is_refused(cycles: Cycles) -> None:
    dimensions = {f"{number:064}": "x" * 256 for number in range(16)}
    granted = await cycles.reserve(subject={"tenant": "acme", "dimensions": dimensions})
    assert granted.status == 200
    wide = {**ACTION, "tags": ["\x01" * 64] * 10, "name": "\x01" * 256}
    refused = await cycles.reserve(subject={"tenant": "acme", "dimensions": dimensions}, action=wide)
    assert (refused.status, refused["error"]) == (400, "INVALID_REQUEST")
