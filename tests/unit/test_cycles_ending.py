"""Commit, release and extend: a settle, a release and a renewal, each with the answer a client of Cycles expects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from cycles_client import DOLLAR, PLAN, Cycles, of_tenant, open_cycles, tokens, usd
from desk_client import open_desk
from fake_purse import NOON, NS

from engine.errors import NoAnswer

NOON_MS = NOON // 1_000_000
HOUR_MS = 3_600_000


@pytest_asyncio.fixture
async def cycles() -> AsyncIterator[Cycles]:
    async with open_cycles() as cycles:
        yield cycles


# --- commit -----------------------------------------------------------------------------------------------------------


async def test_a_commit_charges_what_it_cost_and_gives_the_rest_back(cycles: Cycles) -> None:
    done = await cycles.commit(await cycles.reserved(10_000), 8_000)
    assert done.status == 200
    assert done.body == {"status": "COMMITTED", "charged": usd(8_000), "released": usd(2_000)}
    assert await cycles.balance() == {
        "remaining": DOLLAR - 8_000, "allocated": DOLLAR, "spent": 8_000, "reserved": 0, "debt": 0
    }  # fmt: skip


async def test_a_commit_of_nothing_is_no_release(cycles: Cycles) -> None:
    id = await cycles.reserved(10_000)
    assert (await cycles.commit(id, 0)).body == {"status": "COMMITTED", "charged": usd(0), "released": usd(10_000)}
    assert (await cycles.get(f"/v1/reservations/{id}"))["status"] == "COMMITTED"


@pytest.mark.parametrize("policy", ["REJECT", "ALLOW_IF_AVAILABLE", "ALLOW_WITH_OVERDRAFT"])
async def test_a_commit_above_the_limit_is_charged_in_full_whatever_the_policy(cycles: Cycles, policy: str) -> None:
    done = await cycles.commit(await cycles.reserved(10_000, overage_policy=policy), DOLLAR + 500)
    assert done.body == {"status": "COMMITTED", "charged": usd(DOLLAR + 500)}
    found = await cycles.get("/v1/balances", tenant="acme")
    assert found["balances"][0] == {
        "scope": "tenant:acme", "scope_path": "tenant:acme", "remaining": tokens(1_000), "allocated": tokens(1_000),
        "spent": tokens(0), "reserved": tokens(0), "debt": tokens(0), "is_over_limit": False,
    }  # fmt: skip
    assert found["balances"][1] == {
        "scope": "tenant:acme", "scope_path": "tenant:acme", "remaining": usd(-500), "allocated": usd(DOLLAR),
        "spent": usd(DOLLAR), "reserved": usd(0), "debt": usd(500), "is_over_limit": True,
    }  # fmt: skip
    refused = await cycles.reserve(1)
    assert (refused.status, refused["error"]) == (409, "OVERDRAFT_LIMIT_EXCEEDED")


async def test_a_repeated_commit_hears_the_first_answer_and_counts_once(cycles: Cycles) -> None:
    id = await cycles.reserved()
    first = await cycles.commit(id, 8_000, idempotency_key="done")
    cycles.desk.purse.clock += 3600 * NS
    assert (await cycles.commit(id, 8_000, idempotency_key="done")).body == first.body
    assert (await cycles.balance())["spent"] == 8_000


async def test_a_commit_under_a_used_key_with_another_body_is_a_mismatch(cycles: Cycles) -> None:
    id = await cycles.reserved()
    await cycles.commit(id, 8_000, idempotency_key="done")
    for changed in ({"actual": usd(7)}, {"metrics": {"tokens_input": 4}}):
        refused = await cycles.commit(id, 8_000, idempotency_key="done", **changed)
        assert (refused.status, refused["error"]) == (409, "IDEMPOTENCY_MISMATCH")


async def test_an_ended_reservation_takes_nothing_more(cycles: Cycles) -> None:
    id = await cycles.reserved()
    await cycles.commit(id, 8_000)
    asked = len(cycles.desk.purse.asked)
    for refused in (await cycles.commit(id, 8_000), await cycles.release(id), await cycles.extend(id, 1_000)):
        assert (refused.status, refused["error"]) == (409, "RESERVATION_FINALIZED")
    assert len(cycles.desk.purse.asked) == asked


async def test_a_commit_in_another_unit_is_a_mismatch_and_charges_nothing(cycles: Cycles) -> None:
    id = await cycles.reserved()
    refused = await cycles.commit(id, 1, actual=tokens(3))
    assert (refused.status, refused["error"]) == (400, "UNIT_MISMATCH")
    assert refused["details"]["expected_units"] == ["USD_MICROCENTS"]
    assert (await cycles.commit(id, 1)).status == 200


async def test_concurrent_commits_under_one_key_hear_the_same_and_count_once(cycles: Cycles) -> None:
    id = await cycles.reserved()
    async with open_desk(purse=cycles.desk.purse) as desk:
        other = Cycles(desk, cycles.key)
        said = [each.commit(id, 8_000, idempotency_key="done") for each in (cycles, other) * 4]
        answers = await asyncio.gather(*said)
    assert {msgspec.json.encode(answer.body) for answer in answers} == {
        msgspec.json.encode({"status": "COMMITTED", "charged": usd(8_000), "released": usd(2_000)})
    }
    assert (await cycles.balance())["spent"] == 8_000


async def test_a_commit_nobody_answers_says_that_it_is_kept(cycles: Cycles) -> None:
    id = await cycles.reserved()
    cycles.desk.purse.error = NoAnswer("nobody answers", kept=True)
    refused = await cycles.commit(id, 8_000)
    assert (refused.status, refused["error"]) == (503, "INTERNAL_ERROR")


# --- grace and expiry -------------------------------------------------------------------------------------------------


async def test_a_commit_is_taken_until_the_grace_period_is_over(cycles: Cycles) -> None:
    id = await cycles.reserved(10_000, ttl_ms=1_500, grace_period_ms=2_250)
    cycles.desk.purse.clock += 3_750_000_000
    assert (await cycles.commit(id, 8_000)).status == 200


async def test_past_its_grace_a_reservation_is_gone_and_counts_at_its_worst_case(cycles: Cycles) -> None:
    id = await cycles.reserved(10_000, ttl_ms=1_500, grace_period_ms=2_250)
    cycles.desk.purse.clock += 3_751_000_000
    asked = len(cycles.desk.purse.asked)
    for refused in (
        await cycles.commit(id, 8_000), await cycles.release(id), await cycles.extend(id, 1_000),
        await cycles.get(f"/v1/reservations/{id}"),
    ):  # fmt: skip
        assert (refused.status, refused["error"]) == (410, "RESERVATION_EXPIRED")
    assert len(cycles.desk.purse.asked) == asked
    cycles.desk.purse.clock += NS
    await cycles.reserved(1)  # time passes with the next ask
    assert (await cycles.balance())["spent"] == 10_000
    assert (await cycles.commit(id, 8_000))["error"] == "RESERVATION_EXPIRED"


async def test_the_hold_behind_a_reservation_never_ends_before_it(cycles: Cycles) -> None:
    for ttl_ms, grace_ms in ((1_000, 0), (1_001, 0), (1_500, 499), (59_999, 60_000)):
        granted = await cycles.reserve(1, ttl_ms=ttl_ms, grace_period_ms=grace_ms)
        hold = cycles.desk.purse.wallet.open[cycles.desk.purse.asked[-1].id]  # type: ignore[union-attr]
        assert granted["expires_at_ms"] == NOON_MS + ttl_ms
        assert 0 <= hold.expires_at // 1_000_000 - (NOON_MS + ttl_ms + grace_ms) < 1_000


# --- release ----------------------------------------------------------------------------------------------------------


async def test_a_release_gives_everything_back(cycles: Cycles) -> None:
    id = await cycles.reserved(10_000)
    assert (await cycles.release(id, reason="not needed")).body == {"status": "RELEASED", "released": usd(10_000)}
    assert (await cycles.balance())["remaining"] == DOLLAR
    assert (await cycles.commit(id, 1))["error"] == "RESERVATION_FINALIZED"


async def test_a_repeated_release_hears_the_first_answer(cycles: Cycles) -> None:
    id = await cycles.reserved(10_000)
    first = await cycles.release(id, idempotency_key="back")
    assert (await cycles.release(id, idempotency_key="back")).body == first.body
    assert (await cycles.release(id, idempotency_key="back", reason="x"))["error"] == "IDEMPOTENCY_MISMATCH"
    assert (await cycles.commit(id, 1, idempotency_key="back"))["error"] == "RESERVATION_FINALIZED"


# --- extend -----------------------------------------------------------------------------------------------------------


async def test_an_extension_counts_from_the_expiry_before(cycles: Cycles) -> None:
    granted = await cycles.reserve(10_000, ttl_ms=30_000)
    id = granted["reservation_id"]
    cycles.desk.purse.clock += 20 * NS
    done = await cycles.extend(id, 30_000)
    assert done.status == 200
    assert done.body == {"status": "ACTIVE", "expires_at_ms": NOON_MS + 60_000, "remaining_ttl_ms": 40_000}
    cycles.desk.purse.clock += 39 * NS
    assert (await cycles.extend(id, 1)).body == {
        "status": "ACTIVE", "expires_at_ms": NOON_MS + 60_001, "remaining_ttl_ms": 1_001
    }  # fmt: skip
    cycles.desk.purse.clock += 6 * NS  # in its grace
    assert (await cycles.extend(id, 30_000))["error"] == "RESERVATION_EXPIRED"
    assert (await cycles.commit(id, 8_000)).status == 200


async def test_an_extension_leaves_everything_else_as_it_is(cycles: Cycles) -> None:
    id = await cycles.reserved(10_000)
    before = await cycles.get(f"/v1/reservations/{id}")
    await cycles.extend(id, 5_000)
    after = await cycles.get(f"/v1/reservations/{id}")
    assert after.body == {**before.body, "expires_at_ms": before["expires_at_ms"] + 5_000}


async def test_a_repeated_extension_hears_the_first_answer_and_extends_once(cycles: Cycles) -> None:
    id = await cycles.reserved()
    first = await cycles.extend(id, 5_000, idempotency_key="more")
    await cycles.extend(id, 7_000)
    cycles.desk.purse.clock += NS
    again = await cycles.extend(id, 5_000, idempotency_key="more")
    assert again.body == {**first.body, "remaining_ttl_ms": 71_000}
    assert (await cycles.extend(id, 6_000, idempotency_key="more"))["error"] == "IDEMPOTENCY_MISMATCH"
    assert (await cycles.get(f"/v1/reservations/{id}"))["expires_at_ms"] == NOON_MS + 72_000


async def test_extensions_at_the_same_moment_all_count_once(cycles: Cycles) -> None:
    id = await cycles.reserved()
    async with open_desk(purse=cycles.desk.purse) as desk:
        other = Cycles(desk, cycles.key)
        said = [each.extend(id, 1_000, idempotency_key=f"k{n}") for n in range(4) for each in (cycles, other)]
        answers = await asyncio.gather(*said)
    assert {answer.status for answer in answers} == {200}
    assert sorted({answer["expires_at_ms"] for answer in answers}) == [
        NOON_MS + 60_000 + 1_000 * n for n in range(1, 5)
    ]
    assert (await cycles.get(f"/v1/reservations/{id}"))["expires_at_ms"] == NOON_MS + 64_000


async def test_an_extension_beyond_what_a_hold_may_live_ends_there(cycles: Cycles) -> None:
    id = await cycles.reserved(ttl_ms=24 * HOUR_MS)
    assert (await cycles.extend(id, 24 * HOUR_MS))["error"] == "MAX_EXTENSIONS_EXCEEDED"  # 24 h ahead is the most
    cycles.desk.purse.clock += 23 * 3600 * NS
    second = await cycles.extend(id, 24 * HOUR_MS)
    assert second["expires_at_ms"] == NOON_MS + 47 * HOUR_MS - 6_000
    cycles.desk.purse.clock += 23 * 3600 * NS
    assert (await cycles.extend(id, 24 * HOUR_MS))["expires_at_ms"] == NOON_MS + 48 * HOUR_MS - 5_000
    refused = await cycles.extend(id, 1)
    assert (refused.status, refused["error"]) == (409, "MAX_EXTENSIONS_EXCEEDED")


async def test_an_extension_keeps_to_the_plans_least_ttl(cycles: Cycles) -> None:
    cycles.desk.purse.apply(msgspec.structs.replace(PLAN, ttl_s_min=30, ttl_s=60))
    async with open_desk(purse=cycles.desk.purse) as desk:
        other = Cycles(desk, cycles.key)
        id = await other.reserved(ttl_ms=30_000)
        cycles.desk.purse.clock += 29 * NS
        assert (await other.extend(id, 1))["expires_at_ms"] == NOON_MS + 30_001


# --- whose it is ------------------------------------------------------------------------------------------------------


async def test_another_tenants_reservation_is_forbidden_and_one_that_never_was_not_found(cycles: Cycles) -> None:
    id = await cycles.reserved()
    globex = await of_tenant(cycles.desk, "globex")
    for refused in (
        await globex.commit(id, 1), await globex.release(id), await globex.extend(id, 1_000),
        await globex.get(f"/v1/reservations/{id}"),
    ):  # fmt: skip
        assert (refused.status, refused["error"]) == (403, "FORBIDDEN")
    other = f"{id[:-4]}9999"
    for wrong in ("nonsense", "rsv_1", other, id.replace("rsv_", "evt_"), id + "1", "x" * 128):
        refused = await cycles.commit(wrong, 1)
        assert (refused.status, refused["error"]) == (404, "NOT_FOUND")


async def test_no_route_of_the_wallets_own_reaches_a_reservation(cycles: Cycles) -> None:
    await cycles.reserved()
    on_stream = cycles.desk.purse.asked[-1].id  # type: ignore[union-attr]
    answer = await cycles.desk.post(f"/v1/holds/{on_stream.replace('/', '%2F')}/release", {}, key=cycles.key)
    assert answer.status == 400
    assert len(cycles.desk.purse.wallet.open) == 1


async def test_a_key_that_has_ended_ends_what_it_opened_and_nothing_else(cycles: Cycles) -> None:
    key, id = await cycles.desk.new_key(labels={"tenant": "acme"})
    ending = Cycles(cycles.desk, key)
    own, others = await ending.reserved(), await cycles.reserved()
    await cycles.desk.post(f"/v1/keys/{id}/revoke", {"reason": "lost"})
    assert (await ending.reserve()).status == 403
    assert (await ending.extend(own, 1_000)).status == 403
    assert (await ending.commit(others, 1)).status == 403
    assert (await ending.commit(own, 1)).status == 200


async def test_a_reservation_another_process_has_just_held_is_waited_for(cycles: Cycles) -> None:
    """The projector lags: it does not know the reservation when it is first asked."""
    id = await cycles.reserved()
    memos = cycles.desk.purse.memos
    noted = memos.by_id.copy()
    memos.by_id.clear()
    reads = cycles.desk.purse.read

    async def lagging(word: str, payload: bytes = b"") -> bytes:
        answer = await reads(word, payload)
        memos.by_id.update(noted)
        return answer

    cycles.desk.purse.read = lagging  # type: ignore[method-assign]
    assert (await cycles.commit(id, 1)).status == 200
