"""Reading reservations and balances: one, many by filters, page after page, and never more than is this tenant's."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from cycles_client import ACTION, DOLLAR, PLAN, Cycles, of_tenant, open_cycles, tokens, usd
from desk_client import KEY
from fake_purse import NOON, NS

from engine.core.messages import Hold
from engine.core.plan import Budget, Plan
from projector import memos
from web.cycles import listing

NOON_MS = NOON // 1_000_000


@pytest_asyncio.fixture
async def cycles() -> AsyncIterator[Cycles]:
    async with open_cycles() as cycles:
        yield cycles


async def ids(cycles: Cycles, **filters: str) -> list[str]:
    answer = await cycles.get("/v1/reservations", **filters)
    assert answer.status == 200, answer.body
    return [row["reservation_id"] for row in answer["reservations"]]


# --- one --------------------------------------------------------------------------------------------------------------


async def test_a_reservation_reads_as_it_was_made(cycles: Cycles) -> None:
    subject = {"tenant": "acme", "agent": "scout", "dimensions": {"team": "blue", "émoji": "\u200b"}}
    action = {**ACTION, "tags": ["prod"]}
    id = await cycles.reserved(10_000, subject=subject, action=action, idempotency_key="k", metadata={"a": "secret"})
    found = await cycles.get(f"/v1/reservations/{id}")
    assert found.body == {
        "reservation_id": id, "status": "ACTIVE", "idempotency_key": "k", "subject": subject, "action": action,
        "reserved": usd(10_000), "created_at_ms": NOON_MS, "expires_at_ms": NOON_MS + 60_000,
        "scope_path": "tenant:acme/agent:scout", "affected_scopes": ["tenant:acme", "tenant:acme/agent:scout"],
    }  # fmt: skip
    assert b"secret" not in b"".join(stored.data for stored in cycles.desk.purse.stream)


async def test_the_tenant_of_its_key_is_in_the_subject_of_a_reservation_that_named_none(cycles: Cycles) -> None:
    id = await cycles.reserved(subject={"agent": "scout"})
    assert (await cycles.get(f"/v1/reservations/{id}"))["subject"] == {"tenant": "acme", "agent": "scout"}


async def test_an_ended_reservation_says_when_and_at_what(cycles: Cycles) -> None:
    id, back = await cycles.reserved(10_000), await cycles.reserved(10_000)
    cycles.desk.purse.clock += 3 * NS
    await cycles.commit(id, 8_000)
    await cycles.release(back)
    committed = (await cycles.get(f"/v1/reservations/{id}")).body
    assert (committed["status"], committed["committed"]) == ("COMMITTED", usd(8_000))
    assert committed["finalized_at_ms"] == NOON_MS + 3_000
    released = (await cycles.get(f"/v1/reservations/{back}")).body
    assert released["status"] == "RELEASED"
    assert "committed" not in released


async def test_what_is_no_longer_remembered_is_not_found(cycles: Cycles) -> None:
    id = await cycles.reserved()
    await cycles.commit(id, 1)
    cycles.desk.purse.clock += 49 * 3600 * NS
    await cycles.reserved()
    assert (await cycles.get(f"/v1/reservations/{id}")).status == 404


# --- many -------------------------------------------------------------------------------------------------------------


async def test_a_row_has_what_clients_allow_in_one_and_no_more(cycles: Cycles) -> None:
    id = await cycles.reserved(idempotency_key="k")
    await cycles.commit(id, 1)
    answer = await cycles.get("/v1/reservations")
    assert answer.body == {
        "reservations": [{
            "reservation_id": id, "status": "COMMITTED", "idempotency_key": "k", "subject": {"tenant": "acme"},
            "action": ACTION, "reserved": usd(10_000), "created_at_ms": NOON_MS, "expires_at_ms": NOON_MS + 60_000,
            "scope_path": "tenant:acme", "affected_scopes": ["tenant:acme"],
        }],
        "has_more": False,
    }  # fmt: skip


async def test_a_lost_id_is_found_by_its_idempotency_key(cycles: Cycles) -> None:
    id = await cycles.reserved(idempotency_key="k")
    await cycles.reserved()
    assert await ids(cycles, idempotency_key="k") == [id]
    assert await ids(cycles, idempotency_key="k", status="RELEASED") == []
    assert await ids(cycles, idempotency_key="other") == []


async def test_filters_take_what_matches_all_of_them(cycles: Cycles) -> None:
    old = await cycles.reserved(subject={"agent": "scout"}, ttl_ms=1_000, grace_period_ms=0)
    cycles.desk.purse.clock += 60 * NS
    scout = await cycles.reserved(subject={"agent": "scout", "app": "crm"})
    other = await cycles.reserved(subject={"agent": "other"})
    done = await cycles.reserved()
    await cycles.commit(done, 1)
    await cycles.event(5)
    assert await ids(cycles) == [done, other, scout, old]
    assert await ids(cycles, sort_dir="asc", sort_by="created_at_ms") == [old, scout, other, done]
    assert await ids(cycles, agent="scout") == [scout, old]
    assert await ids(cycles, agent="scout", app="crm", status="", workflow="") == [scout]
    assert await ids(cycles, status="ACTIVE") == [other, scout]
    assert await ids(cycles, status="EXPIRED") == [old]
    assert await ids(cycles, status="COMMITTED") == [done]
    at = "2026-11-30T14:06:00Z"
    assert await ids(cycles, **{"from": at}) == [done, other, scout]
    assert await ids(cycles, to="2026-11-30T14:05:59Z") == [old]
    assert await ids(cycles, expires_to=at) == [old]
    assert await ids(cycles, finalized_from=at) == [done, old]
    assert await ids(cycles, finalized_to="2026-11-30T14:05:30Z") == []


async def test_pages_follow_each_other_and_miss_nothing(cycles: Cycles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memos, "PAGE_MAX", 3)
    made = [await cycles.reserved(1) for _ in range(8)]
    found, cursor = list[str](), ""
    while True:
        answer = await cycles.get("/v1/reservations", limit="2", cursor=cursor)
        found += [row["reservation_id"] for row in answer["reservations"]]
        assert len(answer["reservations"]) <= 2
        if not answer["has_more"]:
            assert "next_cursor" not in answer.body
            break
        cursor = answer["next_cursor"]
        if len(found) == 4:
            await cycles.reserved(1)  # newer ones are before the first page
    assert found == made[::-1]


async def test_a_filter_that_little_matches_ends_its_page_and_goes_on(
    cycles: Cycles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memos, "PAGE_MAX", 2)
    monkeypatch.setattr(listing, "LOOKED_AT_MAX", 4)
    wanted = await cycles.reserved(1, subject={"agent": "scout"})
    for _ in range(7):
        await cycles.reserved(1)
    first = await cycles.get("/v1/reservations", agent="scout")
    assert (first["reservations"], first["has_more"]) == ([], True)
    assert await ids(cycles, agent="scout", cursor=first["next_cursor"]) == [wanted]


async def test_a_tenant_sees_its_own_alone(cycles: Cycles) -> None:
    await cycles.reserved()
    globex = await of_tenant(cycles.desk, "globex")
    own = await globex.reserved()
    assert await ids(globex) == [own]
    assert (await globex.get("/v1/reservations", tenant="acme"))["error"] == "FORBIDDEN"
    assert await ids(Cycles(cycles.desk, KEY), tenant="globex") == [own]
    assert (await Cycles(cycles.desk, KEY).get("/v1/reservations"))["error"] == "INVALID_REQUEST"


@pytest.mark.parametrize(
    "filters",
    [
        {"include": "events"}, {"sort_by": "reserved"}, {"sort_dir": "up"}, {"status": "OPEN"}, {"limit": "0"},
        {"limit": "201"}, {"limit": "x"}, {"cursor": "-1"}, {"from": "yesterday"}, {"team": "blue"},
        {"cursor": "99999999999999999999"},
    ],
    ids=repr,
)  # fmt: skip
async def test_a_filter_that_cannot_be_served_is_refused(cycles: Cycles, filters: dict[str, str]) -> None:
    refused = await cycles.get("/v1/reservations", **filters)
    assert (refused.status, refused["error"]) == (400, "INVALID_REQUEST")


async def test_what_another_program_left_on_the_stream_is_no_reservation_and_hides_none(cycles: Cycles) -> None:
    id = await cycles.reserved()
    hold = cycles.desk.purse.asked[-1]
    assert isinstance(hold, Hold)
    namespace = hold.id.partition("/")[0]
    for number, memo in enumerate(("nonsense", "{}", hold.memo.replace("acme", "globex"))):
        labels = {"tenant": "globex"} if number == 2 else hold.labels
        foreign = msgspec.structs.replace(hold, id=f"{namespace}/{number:032}", memo=memo, labels=labels)
        await cycles.desk.purse.ask(foreign)
        seq = cycles.desk.purse.stream[-2].seq
        assert (await cycles.get(f"/v1/reservations/{id[:21]}{number:032}_{seq}")).status == 404
    assert await ids(cycles) == [id]


async def test_looks_of_an_auditor_are_on_record(cycles: Cycles) -> None:
    auditor = Cycles(cycles.desk, (await cycles.desk.new_key("audit"))[0])
    id = await cycles.reserved()
    assert (await auditor.get(f"/v1/reservations/{id}")).status == 200
    assert await ids(auditor, tenant="acme") == [id]
    assert [look.at.partition("?")[0] for look in cycles.desk.purse.looks] == [
        f"/v1/reservations/{id}", "/v1/reservations"
    ]  # fmt: skip
    assert (await auditor.reserve()).status == 403


# --- balances ---------------------------------------------------------------------------------------------------------


async def test_balances_are_of_the_scopes_that_are_asked_for_widest_first(cycles: Cycles) -> None:
    await cycles.reserved(10, subject={"agent": "scout"})
    found = await cycles.get("/v1/balances", agent="scout", tenant="acme", include_children="true")
    assert [(one["scope"], one["remaining"]) for one in found["balances"]] == [
        ("tenant:acme", tokens(1_000)), ("tenant:acme", usd(DOLLAR - 10)),
        ("tenant:acme/agent:scout", usd(DOLLAR // 2 - 10)),
    ]  # fmt: skip
    assert found["has_more"] is False
    assert [one["scope"] for one in (await cycles.get("/v1/balances", app="x"))["balances"]] == ["tenant:acme"] * 2


async def test_balances_come_in_pages(cycles: Cycles) -> None:
    first = await cycles.get("/v1/balances", tenant="acme", limit="1")
    assert (len(first["balances"]), first["has_more"]) == (1, True)
    second = await cycles.get("/v1/balances", tenant="acme", limit="1", cursor=first["next_cursor"])
    assert second["balances"] != first["balances"]
    assert second["has_more"] is False


async def test_the_tightest_budget_of_a_scope_is_its_balance() -> None:
    budgets = {
        "month": Budget("usd", 50 * 10**9, per="month", each="tenant"),
        "day": Budget("usd", 10**9, each="tenant"),
        "everyone": Budget("usd", 10**8),
        "alice": Budget("usd", 10**7, where={"tenant": "acme", "user": "alice"}),
    }
    async with open_cycles(Plan(budgets=budgets)) as cycles:
        found = await cycles.get("/v1/balances", tenant="acme")
        assert [(one["scope"], one["allocated"]) for one in found["balances"]] == [("tenant:acme", usd(DOLLAR))]
        assert (await cycles.reserve(DOLLAR))["details"] == {"scope": "tenant:acme"}  # bound by that of everyone


async def test_what_is_finer_than_a_microcent_is_rounded_against_the_caller(cycles: Cycles) -> None:
    body = {"amounts": {"usd": "0.000000001"}, "labels": {"tenant": "acme"}}
    assert (await cycles.desk.post("/v1/holds", body)).status == 201
    assert (await cycles.balance())["reserved"] == 1
    assert (await cycles.balance())["remaining"] == DOLLAR - 1


async def test_balances_without_a_filter_or_of_another_tenant_are_refused(cycles: Cycles) -> None:
    assert (await cycles.get("/v1/balances"))["error"] == "INVALID_REQUEST"
    assert (await cycles.get("/v1/balances", tenant=""))["error"] == "INVALID_REQUEST"
    assert (await cycles.get("/v1/balances", tenant="globex"))["error"] == "FORBIDDEN"
    assert (await cycles.get("/v1/balances", tenant="acme", include_children="maybe")).status == 400
    assert (await cycles.get("/v1/balances", tenant="acme", team="x")).status == 400


async def test_a_tenant_without_a_budget_has_no_balances() -> None:
    async with open_cycles(Plan(budgets={"globex": PLAN.budgets["globex"]})) as cycles:
        assert (await cycles.get("/v1/balances", tenant="acme")).body == {"balances": [], "has_more": False}
