"""Events: what was spent without a reservation, and what a reservation cost that nobody could commit in time."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from cycles_client import DOLLAR, PLAN, Cycles, of_tenant, open_cycles, tokens, usd
from desk_client import open_desk
from fake_purse import NS

from engine.core.plan import Plan


@pytest_asyncio.fixture
async def cycles() -> AsyncIterator[Cycles]:
    async with open_cycles() as cycles:
        yield cycles


async def lapsed(cycles: Cycles) -> str:
    """A reservation of 10,000 that has expired: all of it is charged."""
    id = await cycles.reserved(10_000, ttl_ms=1_000, grace_period_ms=0)
    cycles.desk.purse.clock += 10 * NS
    await cycles.release(await cycles.reserved(1))
    assert (await cycles.balance())["spent"] == 10_000
    return id


async def test_an_event_is_charged_and_answered_201(cycles: Cycles) -> None:
    done = await cycles.event(700)
    assert done.status == 201
    assert done.body == {"status": "APPLIED", "event_id": done["event_id"]}
    assert (await cycles.balance())["spent"] == 700


@pytest.mark.parametrize("policy", ["REJECT", "ALLOW_IF_AVAILABLE", "ALLOW_WITH_OVERDRAFT"])
async def test_an_event_beyond_the_limit_is_charged_in_full_whatever_the_policy(cycles: Cycles, policy: str) -> None:
    assert (await cycles.event(DOLLAR + 3, overage_policy=policy)).status == 201
    assert (await cycles.balance())["debt"] == 3


async def test_a_repeated_event_hears_the_first_answer_and_counts_once(cycles: Cycles) -> None:
    first = await cycles.event(700, idempotency_key="e")
    async with open_desk(purse=cycles.desk.purse) as desk:
        assert (await Cycles(desk, cycles.key).event(700, idempotency_key="e")).body == first.body
    assert (await cycles.balance())["spent"] == 700


@pytest.mark.parametrize("changed", [{"actual": usd(1)}, {"action": {"kind": "x", "name": "y"}}], ids=["sum", "action"])
async def test_another_event_under_the_same_key_is_a_mismatch(cycles: Cycles, changed: dict[str, object]) -> None:
    await cycles.event(700, idempotency_key="e")
    refused = await cycles.event(700, idempotency_key="e", **changed)
    assert (refused.status, refused["error"]) == (409, "IDEMPOTENCY_MISMATCH")
    assert (await cycles.balance())["spent"] == 700


async def test_keys_of_events_and_of_reservations_are_apart(cycles: Cycles) -> None:
    id = await cycles.reserved(10_000, idempotency_key="same")
    assert (await cycles.commit(id, 5, idempotency_key="same")).status == 200
    assert (await cycles.event(700, idempotency_key="same")).status == 201
    assert (await cycles.balance())["spent"] == 705


@pytest.mark.parametrize("actual", [0, 4_000, 25_000])
async def test_the_event_of_an_expired_reservation_is_its_cost_and_not_added(cycles: Cycles, actual: int) -> None:
    id = await lapsed(cycles)
    done = await cycles.event(actual, metadata={"recovered_reservation_id": id}, idempotency_key="e")
    assert done.status == 201
    assert (await cycles.balance())["spent"] == actual
    again = await cycles.event(actual, metadata={"recovered_reservation_id": id}, idempotency_key="e")
    assert again.body == done.body
    other = await cycles.event(actual, metadata={"recovered_reservation_id": id})
    assert other.status == 201  # the same cost once more, under another key: it is counted already
    assert (await cycles.balance())["spent"] == actual


async def test_an_event_key_that_recovered_a_reservation_stands_for_that_alone(cycles: Cycles) -> None:
    id = await lapsed(cycles)
    await cycles.event(4_000, metadata={"recovered_reservation_id": id}, idempotency_key="e")
    assert (await cycles.event(4_000, idempotency_key="e"))["error"] == "IDEMPOTENCY_MISMATCH"
    assert (await cycles.balance())["spent"] == 4_000


async def test_the_event_of_an_open_reservation_commits_it(cycles: Cycles) -> None:
    id = await cycles.reserved(10_000)
    await cycles.event(4_000, metadata={"recovered_reservation_id": id})
    assert (await cycles.balance()).items() >= {"spent": 4_000, "reserved": 0}.items()
    assert (await cycles.commit(id, 4_000))["error"] == "RESERVATION_FINALIZED"


async def test_the_event_of_a_committed_reservation_adds_nothing(cycles: Cycles) -> None:
    id = await cycles.reserved(10_000)
    await cycles.commit(id, 4_000)
    assert (await cycles.event(4_000, metadata={"recovered_reservation_id": id})).status == 201
    refused = await cycles.event(5_000, metadata={"recovered_reservation_id": id})
    assert (refused.status, refused["error"]) == (409, "RESERVATION_FINALIZED")
    assert (await cycles.balance())["spent"] == 4_000


async def test_the_event_of_a_released_reservation_is_charged(cycles: Cycles) -> None:
    """Its client released because something failed, and the provider billed all the same."""
    id = await cycles.reserved(10_000)
    await cycles.release(id)
    cost = {"metadata": {"recovered_reservation_id": id}}
    first = await cycles.event(4_000, **cost, idempotency_key="e")
    assert first.status == 201
    assert (await cycles.event(4_000, **cost, idempotency_key="e")).body == first.body
    assert (await cycles.event(4_000, **cost)).status == 201  # reported twice, it counts once
    refused = await cycles.event(5_000, **cost)
    assert (refused.status, refused["error"]) == (409, "RESERVATION_FINALIZED")
    assert (await cycles.event(4_000, idempotency_key="e"))["error"] == "IDEMPOTENCY_MISMATCH"
    assert (await cycles.balance())["spent"] == 4_000
    assert (await cycles.get(f"/v1/reservations/{id}"))["status"] == "RELEASED"


@pytest.mark.parametrize("named", ["rsv_unknown", 7, None], ids=["unknown", "no text", "null"])
async def test_an_event_that_names_nothing_we_know_is_charged(cycles: Cycles, named: object) -> None:
    assert (await cycles.event(4_000, metadata={"recovered_reservation_id": named})).status == 201
    assert (await cycles.balance())["spent"] == 4_000


async def test_an_event_may_not_name_another_tenants_reservation(cycles: Cycles) -> None:
    id = await lapsed(cycles)
    globex = await of_tenant(cycles.desk, "globex")
    assert (await globex.event(1, metadata={"recovered_reservation_id": id}))["error"] == "FORBIDDEN"
    assert (await cycles.balance())["spent"] == 10_000


async def test_an_event_in_another_unit_is_a_mismatch(cycles: Cycles) -> None:
    id = await lapsed(cycles)
    refused = await cycles.event(1, actual=tokens(5), metadata={"recovered_reservation_id": id})
    assert (refused.status, refused["error"]) == (400, "UNIT_MISMATCH")
    refused = await cycles.event(1, actual={"unit": "CREDITS", "amount": 5})
    assert (refused.status, refused["error"]) == (400, "UNIT_MISMATCH")


async def test_an_event_of_what_no_budget_counts_is_not_found() -> None:
    async with open_cycles(Plan(budgets={"globex": PLAN.budgets["globex"]})) as cycles:
        refused = await cycles.event(1)
        assert (refused.status, refused["error"]) == (404, "NOT_FOUND")
