"""What a caller of the HTTP API hears when the plan has tiers: which is taken, which is too dear, when none is left."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from desk_client import PLAN, Desk, Heard, open_desk
from fake_purse import CHAIN, NOON, NS

from engine.core.plan import Budget, Tier, Tiers
from engine.plan_file import plan_to_json
from web import wording

TIERS = Tiers([Tier(500_000, 0), Tier(750_000, 1), Tier(950_000, 2)])
TIERED = msgspec.structs.replace(PLAN, tiers=TIERS)


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk(TIERED) as desk:
        yield desk


async def spend(desk: Desk, usd: str) -> None:
    await desk.hold("before", "1")
    await desk.settle("before", usd)


async def graded(desk: Desk, id: str, *grades: int) -> Heard:
    options = [{"amounts": {"usd": "0.01"}, "grade": grade} for grade in grades]
    return await desk.post("/v1/holds", {"id": id, "options": options, "labels": {"provider": "jev"}})


async def test_what_is_held_says_its_option_and_tier(desk: Desk) -> None:
    await spend(desk, "0.6")
    held = await graded(desk, "a", 0, 1)
    assert (held.status, held["option"], held["tier"]) == (201, 1, 1)


async def test_too_dear_answers_402_with_the_grade_that_is_affordable_and_is_not_to_be_retried(desk: Desk) -> None:
    await spend(desk, "0.8")
    refused = await graded(desk, "a", 0, 1)
    assert refused.status == 402
    assert refused.headers["x-should-retry"] == "false"
    assert "Retry-After" not in refused.headers
    assert refused.body == {
        "type": "/problems/exhausted",
        "title": "Only cheaper answers are left",
        "status": 402,
        "detail": "Today's shared budget is running low: only options of grade 2 and above are allowed. "
        "It resets at 00:00 UTC (in 9 h 55 min).",
        "outcome": "exhausted",
        "id": "a",
        "why": "tier",
        "tier": 2,
        "budget": "jev",
        "unit": "usd",
        "period": "2026-11-30",
        "limit": "1",
        "settled": "0.8",
        "held": "0",
        "extra": "0",
        "remaining": "0.2",
        "fits": "0",
        "used_pct": 80.0,
        "resets_at": "2026-12-01T00:00:00.000Z",
        "note": "Ask Kim for more",
        "link": "https://example.org/more",
        "receipt": {"seq": 9, "chain": CHAIN},
    }


async def test_above_the_last_tier_it_says_cache_only(desk: Desk) -> None:
    await spend(desk, "0.96")
    refused = await graded(desk, "a", 0, 1, 2)
    assert (refused.status, refused["why"], refused["tier"]) == (402, "tier", None)
    assert refused["title"] == "Only cached answers are left"
    assert "cache only" in refused["detail"]


async def test_asked_again_the_refusal_reads_the_same(desk: Desk) -> None:
    await spend(desk, "0.96")
    first, again = await graded(desk, "a", 0), await graded(desk, "a", 0)
    assert (first.status, {**again.body, "receipt": 0}) == (402, {**first.body, "receipt": 0})


@pytest.mark.parametrize("status", [403, 429])
async def test_the_status_of_a_refusal_by_tier_is_the_operators_choice(status: int) -> None:
    async with open_desk(TIERED, refusal_status=status) as desk:
        await spend(desk, "0.96")
        refused = await graded(desk, "a", 0)
    assert refused.status == refused["status"] == status
    assert refused.headers["x-should-retry"] == "false"


async def test_other_refusals_say_nothing_of_tiers(desk: Desk) -> None:
    await spend(desk, "1")
    assert "tier" not in (await desk.hold("a", "0.5")).body


async def test_the_plan_is_shown_with_its_tiers_and_may_be_sent_back_with_others(desk: Desk) -> None:
    shown = await desk.get("/v1/plan")
    assert shown["plan"] == plan_to_json(TIERED)
    assert shown["plan"]["tiers"][1] == {"up_to": "75", "grade": 1}
    changed = {**shown["plan"], "tiers": [{"up_to": "10", "grade": 3}], "tier_times": {"premium": "1.5"}}
    applied = await desk.post("/v1/plan", {"plan": changed, "replaces": shown["digest"]})
    assert (applied.status, applied["outcome"]) == (200, "planned")
    assert (await desk.get("/v1/plan"))["plan"]["tier_times"] == {"premium": "1.5"}


async def test_tiers_that_make_no_sense_are_refused_by_their_place(desk: Desk) -> None:
    shown = await desk.get("/v1/plan")
    changed = {**shown["plan"], "tiers": [{"up_to": "100.5", "grade": 0}]}
    refused = await desk.post("/v1/plan", {"plan": changed, "replaces": shown["digest"]})
    assert refused.status == 400
    assert "tiers[0].up_to" in refused["detail"]


@pytest.mark.parametrize(
    ("budget", "grade", "said"),
    [
        (Budget("usd", 1), None, "Today's shared budget is nearly used up: cache only. It resets at 00:00 UTC"),
        (Budget("usd", 1, each="user"), 3, "Today's budget is running low: only options of grade 3 and above are"),
        (None, None, "The budget is nearly used up: cache only."),
    ],
)
def test_a_person_reads_what_is_left_and_until_when(budget: Budget | None, grade: int | None, said: str) -> None:
    resets_at = NOON + (9 * 3600 + 55 * 60) * NS
    assert wording.only_cheaper(budget, grade=grade, at=NOON, resets_at=resets_at).startswith(said)
