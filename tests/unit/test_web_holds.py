"""What a caller of the HTTP API hears around one call: the statuses, headers and shapes that programs rely on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from api_contract import check_contract
from desk_client import DOLLAR, KEY, PLAN, Desk, open_desk
from fake_purse import CHAIN, NS

from engine.core.messages import Cooling, Late, Settle
from engine.errors import NoAnswer, NotKept, StreamRefused, Untrusted


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


async def test_the_fake_purse_keeps_the_contract_that_the_real_wallet_keeps(desk: Desk) -> None:
    url = str(desk.client.make_url("")).rstrip("/")
    await asyncio.to_thread(check_contract, url, KEY)


# --- hold -------------------------------------------------------------------------------------------------------------


async def test_a_hold_answers_201_with_the_whole_permission(desk: Desk) -> None:
    held = await desk.hold("call-1", "0.6")
    assert held.status == 201
    assert held.headers["Content-Type"] == "application/json"
    assert held.body == {
        "outcome": "held",
        "id": "call-1",
        "option": 0,
        "amounts": {"usd": "0.6"},
        "at": "2026-11-30T14:05:00.000Z",
        "expires_at": "2026-11-30T14:15:00.000Z",
        "periods": {"jev": "2026-11-30"},
        "tier": 0,
        "remaining": {"jev": "0.4"},
        "receipt": {"seq": 5, "chain": CHAIN},
    }


async def test_asked_again_while_open_it_answers_200_with_the_same_body(desk: Desk) -> None:
    first = await desk.hold("call-1", "0.6")
    await desk.hold("other", "0.1")
    again = await desk.hold("call-1", "0.6")
    assert again.status == 200
    assert {**again.body, "receipt": 0} == {**first.body, "receipt": 0}


async def test_asked_again_after_it_closed_it_answers_409_and_is_not_to_be_retried(desk: Desk) -> None:
    await desk.hold("call-1", "0.6")
    await desk.settle("call-1", "0.2")
    closed = await desk.hold("call-1", "0.6")
    assert closed.status == 409
    assert closed.headers["x-should-retry"] == "false"
    assert (closed["outcome"], closed["state"], closed["charged"]) == ("closed", "settled", {"usd": "0.2"})


async def test_other_fields_under_a_known_id_answer_422(desk: Desk) -> None:
    await desk.hold("call-1", "0.6")
    conflict = await desk.hold("call-1", "0.7")
    assert conflict.status == 422
    assert (conflict["outcome"], conflict["field"]) == ("conflict", "options")
    assert "Retry-After" not in conflict.headers


async def test_options_are_taken_best_first_and_least_grants_what_is_left(desk: Desk) -> None:
    await desk.hold("before", "0.7")
    options = [
        {"name": "full", "amounts": {"usd": "0.5"}},
        {"name": "half", "amounts": {"usd": "0.4"}, "least": {"usd": "0.2"}},
    ]
    held = await desk.post("/v1/holds", {"options": options, "labels": {"provider": "jev"}})
    assert held.status == 201
    assert (held["option"], held["amounts"], held["remaining"]) == (1, {"usd": "0.3"}, {"jev": "0"})


async def test_ttl_and_lapse_policy_reach_the_wallet(desk: Desk) -> None:
    held = await desk.hold("call-1", "0.1", ttl_s=60, on_lapse="release")
    assert held["expires_at"] == "2026-11-30T14:06:00.000Z"
    assert desk.purse.wallet.open["call-1"].charge_on_lapse is False


async def test_a_json_number_is_read_digit_by_digit(desk: Desk) -> None:
    raw = b'{"id":"exact","amounts":{"usd":0.100000001},"labels":{"provider":"jev"}}'
    held = await desk.send("POST", "/v1/holds", data=raw, headers={"Content-Type": "application/json"})
    assert held["amounts"] == {"usd": "0.100000001"}


# --- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", ["key-1", '"key-1"'])
async def test_the_idempotency_key_is_the_id_if_none_is_given(desk: Desk, written: str) -> None:
    body = {"amounts": {"usd": "0.1"}}
    first = await desk.post("/v1/holds", body, headers={"Idempotency-Key": written})
    again = await desk.post("/v1/holds", body, headers={"Idempotency-Key": "key-1"})
    assert (first.status, first["id"]) == (201, "key-1")
    assert again.status == 200


async def test_an_id_in_the_body_comes_before_the_header(desk: Desk) -> None:
    held = await desk.post("/v1/holds", {"id": "mine", "amounts": {"usd": "0"}}, headers={"Idempotency-Key": "other"})
    assert held["id"] == "mine"


async def test_without_any_id_every_hold_gets_its_own(desk: Desk) -> None:
    one, two = await desk.hold(None, "0.1"), await desk.hold(None, "0.1")
    assert one["id"] != two["id"]
    assert len(one["id"]) == 32


async def test_l4_one_settle_key_cannot_settle_two_holds(desk: Desk) -> None:
    await desk.hold("a", "0.1")
    await desk.hold("b", "0.1")
    headers = {"Idempotency-Key": "settle-1"}
    settled = await desk.post("/v1/holds/a/settle", {"amounts": {"usd": "0.1"}}, headers=headers)
    other = await desk.post("/v1/holds/b/settle", {"amounts": {"usd": "0.1"}}, headers=headers)
    assert (settled.status, other.status, other["field"]) == (200, 422, "id")


async def test_concurrent_repeats_wait_for_the_same_outcome(desk: Desk) -> None:
    answers = await asyncio.gather(*(desk.hold("call-1", "0.6") for _ in range(5)))
    assert sorted(answer.status for answer in answers) == [200, 200, 200, 200, 201]
    assert {answer["expires_at"] for answer in answers} == {"2026-11-30T14:15:00.000Z"}


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_used_up_answers_402_until_the_reset_and_is_not_to_be_retried(desk: Desk) -> None:
    await desk.hold("a", "1")
    await desk.settle("a", "1")
    refused = await desk.hold("b", "0.5")
    assert refused.status == 402
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.headers["x-should-retry"] == "false"
    assert "Retry-After" not in refused.headers
    assert refused.body == {
        "type": "/problems/exhausted",
        "title": "The budget is used up",
        "status": 402,
        "detail": "Today's shared budget is used up. It resets at 00:00 UTC (in 9 h 55 min).",
        "outcome": "exhausted",
        "id": "b",
        "why": "spent",
        "budget": "jev",
        "unit": "usd",
        "period": "2026-11-30",
        "limit": "1",
        "settled": "1",
        "held": "0",
        "extra": "0",
        "remaining": "0",
        "fits": "0",
        "used_pct": 100.0,
        "resets_at": "2026-12-01T00:00:00.000Z",
        "note": "Ask Kim for more",
        "link": "https://example.org/more",
        "receipt": {"seq": 9, "chain": CHAIN},
    }


async def test_b13_a_refusal_names_the_largest_amount_that_would_have_fitted(desk: Desk) -> None:
    await desk.hold("a", "0.7")
    await desk.settle("a", "0.7")
    refused = await desk.hold("b", "0.5")
    assert (refused["why"], refused["fits"]) == ("spent", "0.3")
    assert "0.3 usd left, not enough for this call" in refused["detail"]


@pytest.mark.parametrize("status", [402, 403, 429])
async def test_the_status_of_used_up_is_the_operators_choice(status: int) -> None:
    async with open_desk(refusal_status=status) as desk:
        await desk.settle("stray", "1", labels={"provider": "jev"})
        refused = await desk.hold("b", "0.5")
    assert refused.status == refused["status"] == status
    assert refused.headers["x-should-retry"] == "false"
    assert "Retry-After" not in refused.headers


async def test_busy_answers_429_and_says_when_to_come_again(desk: Desk) -> None:
    await desk.hold("a", "0.7")
    refused = await desk.hold("b", "0.5")
    assert (refused.status, refused["why"], refused["held"]) == (429, "busy", "0.7")
    assert 1 <= int(refused.headers["Retry-After"]) <= 30
    assert "x-should-retry" not in refused.headers
    assert refused["detail"] == "Other calls are using what is left. Try again in about 5 seconds."


async def test_busy_just_before_the_reset_says_to_come_after_it(desk: Desk) -> None:
    desk.purse.clock += (9 * 3600 + 54 * 60 + 58) * NS
    await desk.hold("a", "0.7")
    refused = await desk.hold("b", "0.5")
    assert refused.headers["Retry-After"] == "2"


async def test_what_can_never_fit_answers_400_and_is_not_to_be_retried(desk: Desk) -> None:
    refused = await desk.hold("a", "1.5")
    assert (refused.status, refused["outcome"], refused["why"], refused["fits"]) == (400, "exhausted", "never", "1")
    assert refused.headers["x-should-retry"] == "false"
    assert "more than the daily budget of 1 usd" in refused["detail"]


async def test_frozen_answers_403_with_scope_reason_and_end(desk: Desk) -> None:
    await desk.post("/v1/freeze", {"scope": "jev", "reason": "bill looks odd", "until": "2026-11-30T15:00:00Z"})
    refused = await desk.hold("a", "0.1")
    assert refused.status == 403
    assert refused.headers["x-should-retry"] == "false"
    assert (refused["outcome"], refused["scope"], refused["until"]) == ("frozen", "jev", "2026-11-30T15:00:00.000Z")
    assert "bill looks odd" in refused["detail"]


async def test_revoked_answers_403_and_does_not_repeat_the_label_value(desk: Desk) -> None:
    await desk.post("/v1/revoke", {"label": "key", "value": "k-leaked-1", "reason": "leaked"})
    refused = await desk.hold("a", "0.1", labels={"key": "k-leaked-1"})
    assert (refused.status, refused["outcome"], refused["label"]) == (403, "revoked", "key")
    assert "k-leaked-1" not in str(refused.body)


async def test_cooling_answers_429_with_the_seconds_in_the_body_and_is_not_to_be_retried(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answer_with(desk, monkeypatch, Cooling("a", "user", desk.purse.clock + 290 * NS))
    refused = await desk.hold("a", "0.1")
    assert (refused.status, refused["seconds"]) == (429, 290)
    assert refused.headers["x-should-retry"] == "false"
    assert "Retry-After" not in refused.headers


async def test_late_answers_503_and_may_be_asked_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    _answer_with(desk, monkeypatch, Late("a", desk.purse.clock))
    refused = await desk.hold("a", "0.1")
    assert (refused.status, refused["outcome"], refused.headers["Retry-After"]) == (503, "late", "1")


def _answer_with(desk: Desk, monkeypatch: pytest.MonkeyPatch, outcome: Cooling | Late) -> None:
    """An outcome that these rules never give: guards are not in this plan, and the fake is never late."""
    tell = desk.purse._tell
    monkeypatch.setattr(
        desk.purse, "_tell", lambda asks: [msgspec.structs.replace(told, outcome=outcome) for told in tell(asks)]
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NoAnswer("silence"), "no-answer"),
        (NoAnswer("silence", kept=True), "no-answer"),
        (NotKept("the disk is full"), "not-kept"),
        (StreamRefused("full", code=10077), "stream-refused"),
        (Untrusted("gap"), "untrusted"),
    ],
)
async def test_e14_whatever_fails_in_the_world_refuses_the_call(desk: Desk, error: Exception, kind: str) -> None:
    await desk.hold("before", "0.1")
    desk.purse.error = error  # type: ignore[assignment]
    refused = await desk.hold("a", "0.1")
    assert (refused.status, refused["type"]) == (503, f"/problems/{kind}")
    assert refused.headers["Retry-After"] == "2"


async def test_before_the_first_plan_every_ask_is_503() -> None:
    async with open_desk(plan=None) as desk:
        answers = [await desk.hold("a", "0.1"), await desk.settle("a", "0.1"), await desk.get("/v1/plan")]
        assert [(answer.status, answer["type"]) for answer in answers] == [(503, "/problems/no-plan")] * 3
        assert desk.purse.asked == []


# --- settle, release, renew -------------------------------------------------------------------------------------------


async def test_a_settle_says_charged_released_remaining_and_flags(desk: Desk) -> None:
    await desk.hold("call-1", "0.6")
    settled = await desk.settle("call-1", "0.2")
    assert settled.status == 200
    assert settled.body == {
        "outcome": "settled",
        "id": "call-1",
        "state": "settled",
        "charged": {"usd": "0.2"},
        "released": {"usd": "0.4"},
        "remaining": {"jev": "0.8"},
        "used_pct": {"jev": 20.0},
        "flags": [],
        "receipt": {"seq": 7, "chain": CHAIN},
    }


async def test_l1_a_settle_above_the_hold_is_charged_in_full_and_flagged(desk: Desk) -> None:
    await desk.hold("call-1", "0.6")
    settled = await desk.settle("call-1", "1.7")
    assert (settled["charged"], settled["remaining"], settled["flags"]) == (
        {"usd": "1.7"},
        {"jev": "-0.7"},
        ["overrun"],
    )
    assert settled["used_pct"] == {"jev": 170.0}


async def test_settled_twice_with_the_same_amounts_says_again_with_what_stands(desk: Desk) -> None:
    await desk.hold("call-1", "0.6")
    await desk.settle("call-1", "0.2")
    again = await desk.settle("call-1", "0.2")
    assert (again.status, again["outcome"], again["charged"]) == (200, "again", {"usd": "0.2"})


async def test_settled_twice_with_other_amounts_is_422_and_says_what_stands(desk: Desk) -> None:
    await desk.hold("call-1", "0.6")
    await desk.settle("call-1", "0.2")
    conflict = await desk.settle("call-1", "0.3")
    assert (conflict.status, conflict["outcome"], conflict["charged"]) == (422, "conflict", {"usd": "0.2"})


async def test_progress_keeps_the_hold_open(desk: Desk) -> None:
    await desk.hold("call-1", "0.6")
    progress = await desk.settle("call-1", "0.2", final=False)
    assert (progress["state"], progress["charged"], progress["remaining"]) == ("open", {"usd": "0.2"}, {"jev": "0.4"})


async def test_b16_a_settle_of_an_unknown_hold_is_charged_at_its_time(desk: Desk) -> None:
    stray = await desk.settle(
        "unknown", "0.2", held_at="2026-11-30T01:02:03.123456789+09:00", labels={"provider": "jev"}
    )
    assert (stray.status, stray["outcome"], stray["charged"]) == (200, "stray", {"usd": "0.2"})
    assert stray["at"] == "2026-11-29T16:02:03.123Z"
    ask = desk.purse.asked[-1]
    assert isinstance(ask, Settle)
    assert ask.held_at is not None
    assert ask.held_at % NS == 123_456_789


async def test_a_settle_older_than_the_memory_is_recorded_as_forgotten(desk: Desk) -> None:
    forgotten = await desk.settle("old", "0.2", held_at="2026-11-01T00:00:00Z")
    assert (forgotten.status, forgotten["outcome"], forgotten["charged"]) == (200, "forgotten", {})


@pytest.mark.parametrize("raw", [b"", b"{}"])
async def test_a_release_needs_no_body_and_gives_everything_back(desk: Desk, raw: bytes) -> None:
    await desk.hold("call-1", "0.6")
    headers = {"Content-Type": "application/json"} if raw else {}
    released = await desk.send("POST", "/v1/holds/call-1/release", data=raw, headers=headers)
    assert (released.status, released["released"], released["remaining"]) == (200, {"usd": "0.6"}, {"jev": "1"})


async def test_a_renewal_answers_200_with_the_new_expiry_and_total(desk: Desk) -> None:
    await desk.hold("call-1", "0.2")
    renewed = await desk.post("/v1/holds/call-1/renew", {"n": 1, "ttl_s": 1200, "amounts": {"usd": "0.5"}})
    assert renewed.status == 200
    assert (renewed["outcome"], renewed["n"], renewed["amounts"]) == ("held", 1, {"usd": "0.5"})
    assert renewed["expires_at"] == "2026-11-30T14:25:00.000Z"


async def test_a_renewal_of_an_unknown_hold_is_404(desk: Desk) -> None:
    unknown = await desk.post("/v1/holds/nobody/renew", {"n": 1})
    assert (unknown.status, unknown["outcome"]) == (404, "unknown")


# --- reading ----------------------------------------------------------------------------------------------------------


async def test_one_call_shows_its_life(desk: Desk) -> None:
    await desk.hold("call-1", "0.6")
    await desk.settle("call-1", "0.2", final=False)
    life = await desk.get("/v1/holds/call-1")
    assert life.status == 200
    assert life.body == {
        "id": "call-1",
        "state": "open",
        "at": "2026-11-30T14:05:00.000Z",
        "expires_at": "2026-11-30T14:15:00.000Z",
        "amounts": {"usd": "0.6"},
        "progress": {"usd": "0.2"},
        "charged": {},
        "periods": {"jev": "2026-11-30"},
        "seq": 4,
    }


async def test_a_call_nobody_knows_is_404(desk: Desk) -> None:
    unknown = await desk.get("/v1/holds/nobody")
    assert (unknown.status, unknown["outcome"]) == (404, "unknown")


# --- a plan that changes elsewhere ------------------------------------------------------------------------------------


async def test_a_unit_that_a_newer_plan_brought_is_known_at_once(desk: Desk) -> None:
    await desk.hold("before", "0.1")
    desk.purse.apply(msgspec.structs.replace(PLAN, units={**PLAN.units, "pages": 0}))
    desk.board._known._asked_at -= 2  # the plan was last read two seconds ago
    held = await desk.post("/v1/holds", {"amounts": {"pages": 3}})
    assert (held.status, held["amounts"]) == (201, {"pages": "3"})


async def test_names_nobody_knows_do_not_make_us_read_the_plan_more_than_once_a_second(desk: Desk) -> None:
    for number in range(20):
        assert (await desk.post("/v1/holds", {"amounts": {f"u{number}": 1}})).status == 400
    assert desk.purse.plan_reads == 1


async def test_a_budget_that_left_the_plan_is_still_written_in_its_unit(desk: Desk) -> None:
    await desk.hold("call-1", "0.6")
    without = {name: budget for name, budget in PLAN.budgets.items() if name != "jev"}
    desk.purse.apply(msgspec.structs.replace(PLAN, budgets=without))
    settled = await desk.settle("call-1", "0.2")
    assert settled["remaining"] == {"jev": "0.8"}
    assert DOLLAR == 10**9
