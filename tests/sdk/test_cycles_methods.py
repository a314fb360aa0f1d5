"""Every method of Cycles' official client against a whole wallet: what it is answered, what the wallet says then."""

from __future__ import annotations

from typing import Any

import pytest
from integration.rig import eventually
from sdk.cycles_world import LIMIT, SPENDTHRIFT, TENANT, Caller, Spending, amount, estimating

pytestmark = pytest.mark.timeout(600)  # beyond the clients' own deadlines

STRANGER = {"tenant": "another"}


def code(said: dict[str, Any]) -> tuple[int, str]:
    """Of a refusal, which says who it was asked by as well."""
    assert said["body"]["message"]
    assert said["body"]["request_id"] == said["headers"]["x-request-id"]
    return said["status"], said["body"]["error"]


def granted(said: dict[str, Any]) -> str:
    assert (said["status"], said["body"]["decision"]) == (200, "ALLOW"), said
    return str(said["body"]["reservation_id"])


def committing(key: str, microcents: int) -> dict[str, Any]:
    return {"idempotency_key": key, "actual": amount(microcents)}


async def balances(caller: Caller) -> list[dict[str, Any]]:
    """Of the scope that its budget is of."""
    shown = await caller.call("get_balances", query=caller.subject)
    assert shown["reads"], shown
    return [each for each in shown["body"]["balances"] if each["scope_path"] == caller.scope]


def lease_aside(said: dict[str, Any]) -> dict[str, Any]:
    """A body without what may differ when it is asked for again."""
    return {name: value for name, value in said["body"].items() if name != "remaining_ttl_ms"}


# --- one reservation's life -------------------------------------------------------------------------------------------


async def test_a_reservation_is_held_and_its_commit_is_settled(caller: Caller) -> None:
    held = await caller.reserve("r", 60_000, ttl_ms=60_000)
    id = granted(held)
    assert held["reads"], held
    assert held["body"]["reserved"] == amount(60_000)
    assert caller.scope in held["body"]["affected_scopes"]
    assert 0 < held["body"]["remaining_ttl_ms"] <= 60_000
    assert await caller.spending() == Spending(settled=0, held=60_000, remaining=40_000)

    settled = await caller.call("commit_reservation", id, body=committing("c", 25_000))
    assert settled["reads"], settled
    assert settled["body"]["status"] == "COMMITTED"
    assert (settled["body"]["charged"], settled["body"]["released"]) == (amount(25_000), amount(35_000))
    assert await caller.spending() == Spending(settled=25_000, held=0, remaining=75_000)


async def test_a_released_reservation_costs_nothing(caller: Caller) -> None:
    id = granted(await caller.reserve("r", 60_000))
    released = await caller.call("release_reservation", id, body={"idempotency_key": "x", "reason": "not needed"})
    assert released["reads"], released
    assert (released["body"]["status"], released["body"]["released"]) == ("RELEASED", amount(60_000))
    assert await caller.spending() == Spending(settled=0, held=0, remaining=LIMIT)


async def test_an_extended_reservation_holds_as_much_for_longer(caller: Caller) -> None:
    held = await caller.reserve("r", 60_000, ttl_ms=60_000)
    extended = await caller.call(
        "extend_reservation", granted(held), body={"idempotency_key": "e", "extend_by_ms": 30_000}
    )
    assert extended["reads"], extended
    assert extended["body"]["status"] == "ACTIVE"
    assert extended["body"]["expires_at_ms"] == held["body"]["expires_at_ms"] + 30_000
    assert (await caller.spending()).held == 60_000


@pytest.mark.parametrize("policy", ["REJECT", "ALLOW_IF_AVAILABLE", "ALLOW_WITH_OVERDRAFT"])
async def test_a_commit_above_its_reservation_is_charged_in_full_whatever_was_asked_for(
    caller: Caller, policy: str
) -> None:
    """The money is gone. What is past the limit is debt, and nothing new is held until it is gone."""
    id = granted(await caller.reserve("r", 90_000, overage_policy=policy))
    settled = await caller.call("commit_reservation", id, body=committing("c", 130_000))
    assert (settled["status"], settled["body"]["charged"]) == (200, amount(130_000)), settled
    assert settled["reads"]
    assert await caller.spending() == Spending(settled=130_000, held=0, remaining=-30_000)
    (balance,) = await balances(caller)
    parts = {name: balance[name] for name in ("spent", "debt", "remaining", "is_over_limit")}
    assert parts == {
        "spent": amount(LIMIT), "debt": amount(30_000), "remaining": amount(-30_000), "is_over_limit": True,
    }  # fmt: skip
    assert code(await caller.reserve("s", 1)) == (409, "OVERDRAFT_LIMIT_EXCEEDED")
    decided = await caller.call("decide", body=estimating(caller, "d", 1))
    assert (decided["body"]["decision"], decided["body"]["reason_code"]) == ("DENY", "OVERDRAFT_LIMIT_EXCEEDED")


async def test_an_event_is_charged_without_a_reservation(caller: Caller) -> None:
    asked = estimating(caller, "e", 0)
    del asked["estimate"]
    applied = await caller.call("create_event", body={**asked, "actual": amount(12_345)})
    assert (applied["status"], applied["body"]["status"]) == (201, "APPLIED"), applied
    assert applied["reads"]
    assert (await caller.spending()).settled == 12_345


async def test_an_event_that_names_a_reservation_is_its_cost_in_whatever_state_it_is(caller: Caller) -> None:
    def event(key: str, reservation: str, microcents: int) -> dict[str, Any]:
        asked = {**estimating(caller, key, 0), "actual": amount(microcents)}
        del asked["estimate"]
        return {**asked, "metadata": {"recovered_reservation_id": reservation}}

    still_open = granted(await caller.reserve("open", 20_000))
    assert (await caller.call("create_event", body=event("a", still_open, 5_000)))["status"] == 201
    assert await caller.spending() == Spending(settled=5_000, held=0, remaining=95_000)
    assert (await caller.call("create_event", body=event("b", still_open, 5_000)))["status"] == 201
    assert (await caller.spending()).settled == 5_000, "it counts already"
    assert code(await caller.call("create_event", body=event("c", still_open, 6_000))) == (409, "RESERVATION_FINALIZED")

    released = granted(await caller.reserve("released", 20_000))
    await caller.call("release_reservation", released, body={"idempotency_key": "x"})
    assert (await caller.call("create_event", body=event("d", released, 7_000)))["status"] == 201
    assert await caller.spending() == Spending(settled=12_000, held=0, remaining=88_000)


async def test_what_has_expired_may_be_committed_in_its_grace_period_and_not_extended(caller: Caller) -> None:
    asked = {"ttl_ms": 1_000, "grace_period_ms": 60_000}
    id = granted(await caller.reserve("r", 10_000, **asked))

    async def over() -> bool:
        return not (await caller.reserve("r", 10_000, **asked))["body"]["remaining_ttl_ms"]

    await eventually(over, within_s=60)
    longer = {"idempotency_key": "e", "extend_by_ms": 1_000}
    assert code(await caller.call("extend_reservation", id, body=longer)) == (410, "RESERVATION_EXPIRED")
    settled = await caller.call("commit_reservation", id, body=committing("c", 4_000))
    assert settled["status"] == 200, settled
    assert await caller.spending() == Spending(settled=4_000, held=0, remaining=96_000)


# --- a no -------------------------------------------------------------------------------------------------------------


async def test_what_does_not_fit_is_409_and_holds_nothing(caller: Caller) -> None:
    granted(await caller.reserve("first", 60_000))
    assert code(await caller.reserve("second", 40_001)) == (409, "BUDGET_EXCEEDED")
    assert await caller.spending() == Spending(settled=0, held=60_000, remaining=40_000)
    granted(await caller.reserve("third", 40_000))
    assert (await caller.spending()).remaining == 0


async def test_a_finished_reservation_is_not_finished_again(caller: Caller) -> None:
    committed = granted(await caller.reserve("r", 10_000))
    await caller.call("commit_reservation", committed, body=committing("c", 10_000))
    released = granted(await caller.reserve("s", 10_000))
    await caller.call("release_reservation", released, body={"idempotency_key": "x"})
    for id in (committed, released):
        for method, body in (
            ("commit_reservation", committing("another", 10_000)),
            ("release_reservation", {"idempotency_key": "another"}),
            ("extend_reservation", {"idempotency_key": "another", "extend_by_ms": 1_000}),
        ):
            assert code(await caller.call(method, id, body=body)) == (409, "RESERVATION_FINALIZED"), (method, id)
    assert await caller.spending() == Spending(settled=10_000, held=0, remaining=90_000)


async def test_an_expired_reservation_is_410_and_listed_as_expired(caller: Caller) -> None:
    id = granted(await caller.reserve("r", 60_000, ttl_ms=1_000, grace_period_ms=0))

    async def gone() -> bool:
        return bool((await caller.call("get_reservation", id))["status"] == 410)

    await eventually(gone, within_s=60)
    for method, body in (
        ("get_reservation", None),
        ("extend_reservation", {"idempotency_key": "e", "extend_by_ms": 1_000}),
        ("release_reservation", {"idempotency_key": "x"}),
        ("commit_reservation", committing("c", 1)),
    ):
        assert code(await caller.call(method, id, body=body)) == (410, "RESERVATION_EXPIRED"), method
    listed = await caller.call("list_reservations", query={"status": "EXPIRED", "agent": caller.agent})
    assert [row["reservation_id"] for row in listed["body"]["reservations"]] == [id]
    assert (await caller.spending()).remaining == 40_000, "it may have been spent"


async def test_what_is_not_there_is_404(caller: Caller) -> None:
    for method, body in (
        ("get_reservation", None),
        ("commit_reservation", committing("c", 1)),
        ("release_reservation", {"idempotency_key": "x"}),
        ("extend_reservation", {"idempotency_key": "e", "extend_by_ms": 1_000}),
    ):
        assert code(await caller.call(method, "never-reserved", body=body)) == (404, "NOT_FOUND"), method


async def test_another_tenants_money_is_403_and_another_key_is_401(caller: Caller) -> None:
    assert code(await caller.reserve("r", 1, subject=STRANGER)) == (403, "FORBIDDEN")
    assert code(await caller.call("decide", body={**estimating(caller, "d", 1), "subject": STRANGER})) == (
        403,
        "FORBIDDEN",
    )
    assert code(await caller.call("get_balances", query=STRANGER)) == (403, "FORBIDDEN")
    assert code(await caller.call("list_reservations", query=STRANGER)) == (403, "FORBIDDEN")
    told = await caller.call("get_balances", query={"tenant": TENANT}, key="purse_nobody")
    assert code(told) == (401, "UNAUTHORIZED")


async def test_another_tenants_reservation_is_403_and_left_alone(caller: Caller) -> None:
    id = granted(await caller.reserve("r", 10_000))
    theirs = caller.wallet.keys[SPENDTHRIFT]
    for method, body in (
        ("get_reservation", None),
        ("commit_reservation", committing("c", 1)),
        ("release_reservation", {"idempotency_key": "x"}),
        ("extend_reservation", {"idempotency_key": "e", "extend_by_ms": 1_000}),
    ):
        assert code(await caller.call(method, id, body=body, key=theirs)) == (403, "FORBIDDEN"), method
    listed = await caller.call("list_reservations", query={"agent": caller.agent}, key=theirs)
    assert listed["body"]["reservations"] == []
    assert (await caller.call("get_reservation", id))["body"]["status"] == "ACTIVE"


async def test_another_unit_is_400(caller: Caller) -> None:
    id = granted(await caller.reserve("r", 10_000))
    tokens = {"idempotency_key": "c", "actual": {"unit": "TOKENS", "amount": 10}}
    assert code(await caller.call("commit_reservation", id, body=tokens)) == (400, "UNIT_MISMATCH")
    assert (await caller.spending()).held == 10_000


@pytest.mark.parametrize(
    "wrong",
    [
        {"estimate": {"unit": "USD_MICROCENTS", "amount": -1}},
        {"estimate": {"unit": "USD_MICROCENTS", "amount": "1"}},
        {"estimate": {"unit": "USD", "amount": 1}},
        {"subject": {"dimensions": {"cost_center": "x"}}},
        {"ttl_ms": 999},
        {"idempotency_key": ""},
        {"unheard_of": 1},
    ],
    ids=["negative", "string", "unit", "no-level", "short", "no-key", "unknown-field"],
)
async def test_a_wrong_ask_is_400_and_holds_nothing(caller: Caller, wrong: dict[str, Any]) -> None:
    body = {**estimating(caller, "r", 10_000), **wrong}
    assert code(await caller.call("create_reservation", body=body, as_is=True)) == (400, "INVALID_REQUEST")
    assert await caller.spending() == Spending(settled=0, held=0, remaining=LIMIT)


# --- again ------------------------------------------------------------------------------------------------------------


async def test_what_is_asked_again_is_answered_alike_and_counts_once(caller: Caller) -> None:
    first, again = [await caller.reserve("r", 50_000) for _ in range(2)]
    assert lease_aside(first) == lease_aside(again)
    id = granted(first)
    for method, body in (
        ("extend_reservation", {"idempotency_key": "e", "extend_by_ms": 10_000}),
        ("commit_reservation", committing("c", 20_000)),
    ):
        said = [await caller.call(method, id, body=body) for _ in range(2)]
        assert [one["status"] for one in said] == [200, 200], said
        assert lease_aside(said[0]) == lease_aside(said[1])
    other = granted(await caller.reserve("s", 10_000))
    released = [await caller.call("release_reservation", other, body={"idempotency_key": "x"}) for _ in range(2)]
    assert released[0]["body"] == released[1]["body"]
    event = {**estimating(caller, "ev", 0), "actual": amount(7_000)}
    del event["estimate"]
    events = [await caller.call("create_event", body=event) for _ in range(2)]
    assert [one["status"] for one in events] == [201, 201]
    assert events[0]["body"] == events[1]["body"]
    late = await caller.reserve("r", 50_000)
    assert lease_aside(late) == lease_aside(first)
    assert late["body"]["remaining_ttl_ms"] == 0
    assert await caller.spending() == Spending(settled=27_000, held=0, remaining=73_000)


async def test_a_key_means_one_thing_for_each_endpoint(caller: Caller) -> None:
    id = granted(await caller.reserve("same", 10_000))
    settled = await caller.call("commit_reservation", id, body=committing("same", 10_000))
    event = {**estimating(caller, "same", 0), "actual": amount(5_000)}
    del event["estimate"]
    applied = await caller.call("create_event", body=event)
    assert (settled["status"], applied["status"]) == (200, 201)
    assert (await caller.spending()).settled == 15_000


async def test_another_ask_under_a_known_key_is_409(caller: Caller) -> None:
    id = granted(await caller.reserve("r", 50_000))
    assert code(await caller.reserve("r", 50_001)) == (409, "IDEMPOTENCY_MISMATCH")
    await caller.call("extend_reservation", id, body={"idempotency_key": "e", "extend_by_ms": 10_000})
    longer = {"idempotency_key": "e", "extend_by_ms": 10_001}
    assert code(await caller.call("extend_reservation", id, body=longer)) == (409, "IDEMPOTENCY_MISMATCH")
    await caller.call("commit_reservation", id, body=committing("c", 20_000))
    assert code(await caller.call("commit_reservation", id, body=committing("c", 20_001))) == (
        409,
        "IDEMPOTENCY_MISMATCH",
    )
    assert await caller.spending() == Spending(settled=20_000, held=0, remaining=80_000)


async def test_who_was_refused_may_ask_again_under_the_same_key_when_there_is_room(caller: Caller) -> None:
    first = granted(await caller.reserve("first", 60_000))
    assert code(await caller.reserve("second", 50_000)) == (409, "BUDGET_EXCEEDED")
    await caller.call("release_reservation", first, body={"idempotency_key": "x"})
    granted(await caller.reserve("second", 50_000))
    assert (await caller.spending()).held == 50_000


async def test_a_decision_is_not_remembered_but_made_anew(caller: Caller) -> None:
    assert (await caller.call("decide", body=estimating(caller, "d", 60_000)))["body"]["decision"] == "ALLOW"
    granted(await caller.reserve("r", 60_000))
    assert (await caller.call("decide", body=estimating(caller, "d", 60_000)))["body"]["decision"] == "DENY"


# --- looking ----------------------------------------------------------------------------------------------------------


async def test_a_decision_and_a_dry_run_hold_nothing_and_deny_with_200(caller: Caller) -> None:
    for microcents, decision in ((LIMIT, "ALLOW"), (LIMIT + 1, "DENY")):
        decided = await caller.call("decide", body=estimating(caller, f"d-{microcents}", microcents))
        dry = await caller.reserve(f"dry-{microcents}", microcents, dry_run=True)
        for said in (decided, dry):
            assert (said["status"], said["body"]["decision"]) == (200, decision), said
            assert said["reads"]
            assert ("reason_code" in said["body"]) == (decision == "DENY")
        assert {"reservation_id", "expires_at_ms"} & dry["body"].keys() == set()
        assert caller.scope in dry["body"]["affected_scopes"]
    assert await caller.spending() == Spending(settled=0, held=0, remaining=LIMIT)
    listed = await caller.call("list_reservations", query={"agent": caller.agent})
    assert listed["body"]["reservations"] == []


async def test_balances_are_what_the_wallet_says(caller: Caller) -> None:
    id = granted(await caller.reserve("r", 30_000))
    await caller.call("commit_reservation", id, body=committing("c", 20_000))
    granted(await caller.reserve("s", 15_000))
    (balance,) = await balances(caller)
    spending = await caller.spending()
    assert (spending.settled, spending.held) == (20_000, 15_000)
    parts = {name: balance[name] for name in ("allocated", "spent", "reserved", "remaining")}
    assert parts == {
        "allocated": amount(LIMIT), "spent": amount(spending.settled), "reserved": amount(spending.held),
        "remaining": amount(spending.remaining),
    }  # fmt: skip


async def test_each_workflow_has_the_balance_of_its_own_meter(caller: Caller) -> None:
    for name, microcents in (("night", 30_000), ("day", 40_000)):
        subject = {"tenant": TENANT, "workflow": name}
        granted(await caller.reserve(name, microcents, subject=subject))
        shown = await caller.call("get_balances", query=subject)
        assert shown["reads"]
        (balance,) = [each for each in shown["body"]["balances"] if each["scope"] == f"tenant:{TENANT}/workflow:{name}"]
        assert (balance["reserved"], balance["remaining"]) == (amount(microcents), amount(LIMIT - microcents))
        more = await caller.reserve(f"{name}-more", LIMIT - microcents + 1, subject=subject)
        assert code(more) == (409, "BUDGET_EXCEEDED")


async def test_what_others_hold_in_the_wallets_own_words_counts_as_well(caller: Caller) -> None:
    labels = [f"--label={level}={value}" for level, value in caller.subject.items()]
    await caller.wallet.said("hold", "--id", caller.key("own"), "--amount", "usd=0.0006", *labels)
    (balance,) = await balances(caller)
    assert balance["reserved"] == amount(60_000)
    assert code(await caller.reserve("r", 40_001)) == (409, "BUDGET_EXCEEDED")
    granted(await caller.reserve("s", 40_000))


async def test_a_reservation_is_found_by_its_id_its_key_its_subject_and_its_state(caller: Caller) -> None:
    asked = estimating(caller, "found", 10_000)
    asked["subject"] = {**caller.subject, "dimensions": {"cost_center": "a"}}
    asked["action"] = {"kind": "llm.completion", "name": "gpt-4o", "tags": ["prod"]}
    held = await caller.call("create_reservation", body={**asked, "metadata": {"prompt": "a secret"}})
    id = granted(held)
    got = await caller.call("get_reservation", id)
    assert got["reads"], got
    shown = {name: got["body"].get(name) for name in ("subject", "action", "idempotency_key", "status")}
    assert shown == {
        "subject": asked["subject"], "action": asked["action"], "idempotency_key": caller.key("found"),
        "status": "ACTIVE",
    }  # fmt: skip
    assert "metadata" not in got["body"], "it is on no record"
    assert got["body"]["expires_at_ms"] == held["body"]["expires_at_ms"]

    async def listed(**query: str) -> list[str]:
        said = await caller.call("list_reservations", query=query)
        assert said["reads"], said
        return [row["reservation_id"] for row in said["body"]["reservations"]]

    assert await listed(idempotency_key=caller.key("found"), agent=caller.agent) == [id]
    assert await listed(agent=caller.agent, status="ACTIVE") == [id]
    assert await listed(agent=caller.agent, status="COMMITTED") == []
    await caller.call("commit_reservation", id, body=committing("c", 9_000))
    assert await listed(agent=caller.agent, status="ACTIVE") == []
    assert await listed(agent=caller.agent, status="COMMITTED") == [id]
    assert await listed(agent="nobody") == []


async def test_a_long_list_is_read_page_by_page(caller: Caller) -> None:
    ids = [granted(await caller.reserve(f"r-{number}", 1_000)) for number in range(5)]
    seen: list[str] = []
    query = {"agent": caller.agent, "limit": "2"}
    while True:
        said = await caller.call("list_reservations", query=query)
        assert said["reads"], said
        rows = [row["reservation_id"] for row in said["body"]["reservations"]]
        assert len(rows) <= 2
        seen += rows
        if not said["body"].get("has_more"):
            break
        query["cursor"] = said["body"]["next_cursor"]
    assert sorted(seen) == sorted(ids)
    assert len(set(seen)) == len(ids)
