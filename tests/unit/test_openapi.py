"""`/openapi.json`: what it is, that it says of every answer what that is, and that it cannot drift from the code."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import schemathesis
from api_document import DOCUMENT, check, check_item, validator_of
from desk_client import KEY, PLAN, Desk, open_desk
from fake_purse import CHAIN, NOON, Answered

from engine.core import messages as core
from engine.core.messages import AnyAsk, AnyOutcome
from web import problem_shapes, watching
from web.answers import Writer
from web.app import _TABLES
from web.batch_shapes import IN_A_BATCH
from web.examples import EXAMPLES
from web.known import Terms
from web.openapi import ITEM, problems_of
from web.problem_shapes import OF_NO_ROUTE, ProblemShape
from web.routes import Route

EVERY_ROUTE = pytest.mark.parametrize("route", _TABLES, ids=lambda route: route.named)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


def operation(route: Route) -> Any:
    return DOCUMENT["paths"][route.path][route.method.lower()]


# --- the document itself ----------------------------------------------------------------------------------------------


def test_it_is_openapi_3_1() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    schemathesis.openapi.from_dict(DOCUMENT).validate()


def test_a_document_that_is_none_is_told_from_one() -> None:
    broken = json.loads(json.dumps(DOCUMENT))
    broken["paths"]["/v1/holds"]["post"]["responses"]["201"]["contents"] = {}
    with pytest.raises(ValueError, match="contents"):
        schemathesis.openapi.from_dict(broken).validate()


async def test_it_is_served_as_it_is_made_and_not_again_where_nothing_changed(desk: Desk) -> None:
    served = await desk.get("/openapi.json", key=None)
    assert served.body == DOCUMENT
    tag = served.headers["ETag"]
    again = await desk.get("/openapi.json", key=None, headers={"If-None-Match": tag})
    other = await desk.get("/openapi.json", key=None, headers={"If-None-Match": '"another"'})
    assert (again.status, again.body, again.headers["ETag"], other.status) == (304, "", tag, 200)


@EVERY_ROUTE
def test_it_has_every_route_with_its_body_and_every_answer(route: Route) -> None:
    said = operation(route)
    assert set(map(int, said["responses"])) >= set(route.answers)
    if route.takes is not None:
        schema = said["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        assert schema.rpartition("/")[2] in DOCUMENT["components"]["schemas"]


def test_it_refers_to_nothing_that_is_not_there() -> None:
    names = set(DOCUMENT["components"]["schemas"])
    refs = {part.split('"')[0] for part in json.dumps(DOCUMENT).split("#/components/schemas/")[1:]}
    assert refs <= names
    hold = DOCUMENT["components"]["schemas"]["HoldBody"]
    assert hold["additionalProperties"] is False
    assert set(hold["properties"]) == {"id", "amounts", "options", "labels", "ttl_s", "on_lapse", "wait_s"}


@EVERY_ROUTE
def test_it_says_of_every_answer_what_it_is(route: Route) -> None:
    """A success is a body by name, or for text a line or event by name; a problem is one of the kinds by name."""
    for status, answer in operation(route)["responses"].items():
        assert answer["description"], status
        for kind, content in answer["content"].items():
            schema = content["schema"]
            if kind not in ("application/json", "application/problem+json"):
                assert ITEM in content or route.path == "/metrics"
                schema = content.get(ITEM, {"$ref": ""})
            for one in schema.get("anyOf", [schema]):
                assert list(one) == ["$ref"], (status, kind)


@EVERY_ROUTE
def test_a_status_of_a_problem_that_a_route_explains_is_one_that_it_has(route: Route) -> None:
    kinds = {status for kind in problems_of(route) for status in statuses(kind)}
    assert {status for status in route.answers if status >= 400} <= kinds


def statuses(kind: type[ProblemShape]) -> list[int]:
    found: list[int] = DOCUMENT["components"]["schemas"][kind.__name__]["properties"]["status"]["enum"]
    return found


def test_every_kind_of_problem_is_of_some_route() -> None:
    kinds = {
        kind
        for kind in vars(problem_shapes).values()
        if isinstance(kind, type) and issubclass(kind, ProblemShape) and kind.__name__.endswith("Problem")
    }
    assert kinds == {*OF_NO_ROUTE, *(kind for route in _TABLES for kind in problems_of(route))}


@EVERY_ROUTE
def test_its_example_is_a_request_it_takes_and_an_answer_it_has(route: Route) -> None:
    """Whether the wallet answers so is held by `tests/reference`, with curl."""
    example = EXAMPLES[route.named]
    if route.takes is not None:
        said = operation(route)["requestBody"]["content"]["application/json"]
        msgspec.convert(said["example"], route.takes)
        assert validator_of(said["schema"]).is_valid(said["example"])
    if example.answer is not None:
        [content] = operation(route)["responses"][str(example.status)]["content"].values()
        assert validator_of(content["schema"]).is_valid(example.answer)
        assert example.status >= 400 or content["example"] == example.answer


# --- what is held against it ------------------------------------------------------------------------------------------

GOOD = {"outcome": "done", "id": "a", "receipt": {"seq": 7, "chain": CHAIN}}
HEADERS = {"x-request-id": "1"}
LIMITED = {
    "type": "/problems/slow-down", "title": "Slow down", "status": 429, "detail": "Slow down.", "seconds": 3,
}  # fmt: skip


def held_against(
    body: object, *, status: int = 200, kind: str = "application/json", at: str = "/v1/thaw", **headers: str
) -> None:
    said = {**HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    check("POST", at, status, said, kind, json.dumps(body).encode())


def test_an_answer_that_it_has_passes() -> None:
    held_against(GOOD)
    held_against(LIMITED, status=429, at="/v1/estimate", kind="application/problem+json", **{"x-should-retry": "false"})


@pytest.mark.parametrize(
    "wrong",
    [{**GOOD, "more": 1}, {"outcome": "done", "id": "a"}, {**GOOD, "id": 7}, {**GOOD, "outcome": "held"}, []],
    ids=["a-member-more", "a-member-less", "another-type", "another-word", "another-shape"],
)
def test_another_body_does_not(wrong: object) -> None:
    with pytest.raises(AssertionError, match="DoneAnswer"):
        held_against(wrong)


def test_another_status_content_type_or_header_does_not() -> None:
    with pytest.raises(AssertionError, match="no such status"):
        held_against(GOOD, status=202)
    with pytest.raises(AssertionError, match="no such content type"):
        held_against(GOOD, kind="text/plain")
    with pytest.raises(AssertionError, match="headers of a problem"):
        held_against(GOOD, Retry_After="5")
    both = {"x-should-retry": "false", "Retry-After": "5"}
    with pytest.raises(AssertionError, match="no x-should-retry"):
        held_against(LIMITED, status=429, at="/v1/estimate", kind="application/problem+json")
    with pytest.raises(AssertionError, match="it came with"):
        held_against(LIMITED, status=429, at="/v1/estimate", kind="application/problem+json", **both)


# --- every outcome ----------------------------------------------------------------------------------------------------

DAY = NOON - NOON % (24 * 3600 * 10**9)
LINE = core.Line("2026-11-30", DAY, DAY + 1, 10**9, 10**8)
DROPPED = [core.Dropped("jev", "2026-11-01", 5)]
HOLD, RENEW = core.Hold("a", [core.Option({"usd": 1})], 0), core.Renew("a", 1)
SETTLE, THAW = core.Settle("a", {"usd": 1}), core.Thaw("a", "all")
OBSERVE = core.Observe("a", "jev", "2026-11-30", 5, NOON, "cloudflare")
ADJUST = core.Adjust("a", "jev", "2026-11-30", 5, "because")
EXHAUSTED = {
    "id": "a", "budget": "jev", "unit": "usd", "period": "2026-11-30", "settled": 5, "held": 0, "extra": 0,
    "limit": 5, "remaining": 0, "fits": 0, "resets_at": NOON + 10**9,
}  # fmt: skip

TOLD: list[tuple[AnyAsk, AnyOutcome]] = [
    (HOLD, core.Held("a", 0, {"usd": 1}, {"jev": LINE}, NOON, NOON)),
    (RENEW, core.Held("a", 0, {"usd": 1}, {"jev": LINE}, NOON, NOON, n=3)),
    *((HOLD, core.Exhausted(why=why, **EXHAUSTED)) for why in ("spent", "busy", "never", "tier")),  # type: ignore[arg-type]
    *((HOLD, core.Exhausted(why=why, each="alice", **EXHAUSTED)) for why in ("spent", "busy", "never")),  # type: ignore[arg-type]
    (HOLD, core.Exhausted(why="tier", tier=2, each="alice", **EXHAUSTED)),  # type: ignore[arg-type]
    (HOLD, core.Frozen("a", "all", "because")),
    (HOLD, core.Frozen("a", "all", "because", NOON)),
    (HOLD, core.Cooling("a", "user", NOON + 1)),
    (HOLD, core.Revoked("a", "user", "alice", "because")),
    (HOLD, core.Late("a", NOON)),
    (HOLD, core.Closed("a", "settled", {"usd": 1})),
    (HOLD, core.Conflict("a", "amounts")),
    (HOLD, core.Invalid("a", "plan", "no_plan")),
    (HOLD, core.Invalid("a", "labels", "because")),
    (SETTLE, core.Settled("a", "settled", {"usd": 1}, {"usd": 0}, {"jev": core.Left(5, 1)}, {}, DROPPED, ["overrun"])),
    (SETTLE, core.Stray("a", "stray", {"usd": 1}, NOON, {"jev": LINE}, DROPPED)),
    (SETTLE, core.Again("a", 3, was=core.Settled("a", "corrected", {"usd": 1}))),
    (SETTLE, core.Forgotten("a")),
    (SETTLE, core.Conflict("a", "amounts", {"usd": 1})),
    (RENEW, core.Unknown("a")),
    (OBSERVE, core.Observed("a", 3, LINE)),
    (ADJUST, core.Adjusted("a", LINE)),
    (ADJUST, core.Adjusted("a", None, DROPPED[0])),
    (ADJUST, core.Again("a", 3)),
    (THAW, core.Done("a")),
    (THAW, core.Again("a", 3)),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "outcome"), TOLD, ids=lambda one: type(one).__name__)
def test_every_outcome_is_written_as_it_says(ask: AnyAsk, outcome: AnyOutcome) -> None:
    """Alone and in a batch, in every form that the core may give it."""
    answer = written(ask, outcome)
    body = json.loads(bytes(answer.response().body))  # type: ignore[arg-type]
    path = {"hold": "/v1/holds", "settle": "/v1/holds/a/settle", "renew": "/v1/holds/a/renew", "thaw": "/v1/thaw"}
    path |= {"observe": "/v1/observations", "adjust": "/v1/adjustments"}
    kind = "application/json" if answer.status < 400 else "application/problem+json"
    at = path[str(ask.__struct_config__.tag)]
    check("POST", at, answer.status, {**HEADERS, **answer.headers}, kind, json.dumps(body).encode())
    batch = {"told": [{"status": answer.status, **body}]}
    check("POST", "/v1/holds:batch", 200, HEADERS, "application/json", json.dumps(batch).encode())


def written(ask: AnyAsk, outcome: AnyOutcome) -> Any:
    terms = Terms()
    terms.learn(PLAN)
    return Writer(terms).answer(ask, Answered(outcome, NOON, 6, 7))


def test_every_shape_of_a_batch_is_one_that_some_outcome_has() -> None:
    told = []
    for ask, outcome in TOLD:
        answer = written(ask, outcome)
        told.append({"status": answer.status, **json.loads(bytes(answer.response().body))})
    seen = {
        shape.__name__
        for shape in IN_A_BATCH
        if any(validator_of({"$ref": f"#/components/schemas/{shape.__name__}"}).is_valid(one) for one in told)
    }
    assert {shape.__name__ for shape in IN_A_BATCH} - seen == set()


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, KEY], ids=["stranger", "operator"])
async def test_every_event_of_the_live_stream_is_as_it_says(desk: Desk, key: str | None) -> None:
    await desk.purse.show()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with desk.client.get("/v1/status/stream", headers=headers) as answer:
        async for line in answer.content:
            if line.startswith(b"data: "):
                check_item("/v1/status/stream", json.loads(line[6:]))
                break
    assert {route.path for route in watching.ROUTES} <= set(DOCUMENT["paths"])
