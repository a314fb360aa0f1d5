"""Keys over HTTP: who gets in where, how keys are made and end, whose holds are whose."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from desk_client import DOLLAR, KEY, Desk, open_desk
from fake_purse import NS
from guarded import scripted
from structlog.testing import capture_logs

from engine.core.messages import Adjust, Revoke
from engine.errors import NoAnswer
from web.app import _TABLES
from web.keys import make_key
from web.proxy.routes import FREE, GUARDED, LOOKS

HOLD = {"amounts": {"usd": "0.1"}, "labels": {"provider": "jev"}}


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


class Door(NamedTuple):
    """One address with a method; `roles`: whose keys pass. The holder of an ended key passes where `ended` is true."""

    method: str
    path: str
    roles: frozenset[str]
    ended: bool = False
    public: bool = False


_ROLES = {
    "public": {"spend", "observe", "audit"}, "spend": {"spend"}, "settle": {"spend"}, "life": {"spend", "audit"},
    "batch": {"spend", "observe"}, "observe": {"observe"}, "audit": {"audit"}, "admin": set(),
}  # fmt: skip


def doors() -> list[Door]:
    """From the tables that serve the requests: a new route is in here by itself."""
    api = [
        Door(
            route.method, route.path.replace("{id}", "a").replace("{day}", "2026-11-30"),
            frozenset(_ROLES[route.access]) | {"admin"}, route.access in ("settle", "life", "batch"),
            route.access == "public",
        )
        for route in _TABLES
        if route.path != "/v1/status/stream"
    ]  # fmt: skip
    spends = frozenset({"spend", "admin"})
    proxies = [Door("POST", path.replace("{model:.+}", "m"), spends) for path, *_ in (*GUARDED, *FREE)]
    looks = [Door("GET", path.replace("{id:.+}", "m"), spends) for path, *_ in LOOKS]
    return [*api, *proxies, *looks]


DOORS = doors()
each_door = pytest.mark.parametrize("door", DOORS, ids=lambda door: f"{door.method} {door.path}")


async def knock(desk: Desk, door: Door, key: str | None) -> Any:
    return await desk.send(door.method, door.path, key=key, json={} if door.method == "POST" else None)


def body_of(answer: Any) -> str:
    """What an answer says, but for its request's id."""
    return json.dumps(answer.body).replace(answer.headers["x-request-id"], "")


# --- who gets in ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "door", [*DOORS, Door("GET", "/v1/status/stream", frozenset(), public=True)], ids=lambda door: door[0] + door[1]
)
async def test_every_wrong_key_hears_the_same_401_on_every_route(door: Door) -> None:
    async with scripted() as guard:
        right, _ = await guard.desk.new_key()
        secret_of_another = f"{right[:14]}{make_key()[1][14:]}"
        wrong = [make_key()[1], secret_of_another, right[:-1], f"{right}x", "guessed", "", f"{KEY}x", "\N{SNOWMAN}"]
        answers = [await knock(guard.desk, door, key or " ") for key in wrong]
        assert [answer.status for answer in answers] == [401] * len(wrong)
        assert len({body_of(answer) for answer in answers}) == 1
        assert not any(key in body_of(answer) for key, answer in zip(wrong, answers, strict=True) if key)
        assert guard.purse.asked == []


@each_door
async def test_a_role_passes_only_where_it_may(door: Door) -> None:
    async with scripted() as guard:
        for role in ("spend", "observe", "audit", "admin"):
            key, _ = await guard.desk.new_key(role)
            asked = len(guard.purse.asked)
            answer = await knock(guard.desk, door, key)
            assert (answer.status == 403) == (role not in door.roles), (role, answer.status, answer.body)
            assert answer.status != 401
            assert role in door.roles or len(guard.purse.asked) == asked


@each_door
@pytest.mark.parametrize("end", ["expired", "revoked"])
async def test_an_ended_key_gets_nowhere_but_to_its_own_holds(door: Door, end: str) -> None:
    async with scripted() as guard:
        desk = guard.desk
        for role in ("spend", "observe", "audit", "admin"):
            key, id = await desk.new_key(role, expires_s=60)
            if end == "expired":
                desk.purse.clock += 61 * NS
            else:
                await desk.post(f"/v1/keys/{id}/revoke", {"reason": "lost"})
            asked = len(desk.purse.asked)
            answer = await knock(desk, door, key)
            if door.ended and role in door.roles:
                assert answer.status in (400, 403, 404)  # an empty body, or a hold it never opened
            else:
                assert answer.status == 403, (role, answer.body)
            assert len(desk.purse.asked) == asked


async def test_without_a_key_only_what_is_public_answers(desk: Desk) -> None:
    for door in DOORS:
        answer = await knock(desk, door, None)
        assert (answer.status == 401) == (not door.public), door


async def test_while_keys_cannot_be_read_an_unknown_one_is_refused_and_may_try_again(desk: Desk) -> None:
    known, _ = await desk.new_key()
    desk.purse.bucket("keys").error = NoAnswer("away")
    unknown = await desk.post("/v1/holds", HOLD, key=make_key()[1])
    assert (unknown.status, unknown.headers["Retry-After"]) == (503, "2")
    assert (await desk.post("/v1/holds", HOLD, key=known)).status == 201
    assert (await desk.post("/v1/keys", {"role": "spend"})).status == 503


# --- making and ending them -------------------------------------------------------------------------------------------


async def test_a_key_is_shown_once_and_kept_only_as_its_hash(desk: Desk) -> None:
    with capture_logs() as logs:
        made = await desk.post("/v1/keys", {"role": "spend", "user": "alice", "note": "laptop"})
        [listed] = (await desk.get("/v1/keys"))["keys"]
    assert made["key"].startswith(f"cp_{made['id']}_")
    shown = {name: value for name, value in made.body.items() if name != "key"}
    assert listed == shown
    assert (listed["user"], listed["role"], listed["made_by"], listed["state"]) == ("alice", "spend", "admin", "active")
    kept = b"".join(document.document for document in desk.purse.bucket("keys").documents.values())
    assert made["key"].encode() not in kept
    assert made["key"] not in str(logs)
    assert "hash" not in json.dumps(listed)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "role"),
        ({"role": "emperor"}, "role"),
        ({"role": "spend", "names": ["key"]}, "names"),
        ({"role": "spend", "names": ["origin"]}, "names"),
        ({"role": "spend", "labels": {"user": "bob"}}, "labels.user"),
        ({"role": "spend", "labels": {"key": "k"}}, "labels.key"),
        ({"role": "spend", "labels": {"team": 7}}, "labels.team"),
        ({"role": "spend", "labels": {f"l{n}": "x" for n in range(9)}}, "labels"),
        ({"role": "spend", "user": "a\nb"}, "user"),
        ({"role": "spend", "expires_s": 0}, "expires_s"),
        ({"role": "spend", "replaces": "zzzzzzzzzz"}, "replaces"),
        ({"role": "audit", "names": ["user"]}, "role"),
        ({"role": "spend", "note": "a\nb"}, "note"),
        ({"role": "spend", "secret": "mine"}, "secret"),
    ],
)
async def test_a_key_that_makes_no_sense_is_a_400_that_names_the_field(
    desk: Desk, body: Mapping[str, object], field: str
) -> None:
    refused = await desk.post("/v1/keys", body)
    assert (refused.status, refused["field"]) == (400, field)
    assert (await desk.get("/v1/keys"))["keys"] == []


async def test_revoking_ends_the_key_and_says_so_on_the_stream_with_who_did_it(desk: Desk) -> None:
    boss, boss_id = await desk.new_key("admin", user="ann")
    key, id = await desk.new_key()
    done = await desk.post(f"/v1/keys/{id}/revoke", {"reason": "leaked"}, key=boss)
    assert (done.status, done["outcome"], done["state"], done["reason"]) == (200, "done", "revoked", "leaked")
    assert desk.purse.asked == [Revoke(f"key-revoked:{id}", "key", id, "leaked", f"{boss_id} (ann)")]
    assert desk.purse.wallet.revoked == {("key", id): "leaked"}
    again = await desk.post(f"/v1/keys/{id}/revoke", {"reason": "another"})
    assert (again.status, again["outcome"], again["revoked_by"], again["reason"]) == (
        200,
        "again",
        f"{boss_id} (ann)",
        "leaked",
    )
    assert (await desk.post("/v1/holds", HOLD, key=key)).status == 403
    assert (await desk.post("/v1/keys/zzzzzzzzzz/revoke", {"reason": "x"})).status == 404
    assert (await desk.post("/v1/keys/%2F/revoke", {"reason": "x"})).status == 404


async def test_who_adjusts_or_freezes_stands_on_the_record_by_the_short_id(desk: Desk) -> None:
    boss, id = await desk.new_key("admin")
    await desk.post("/v1/freeze", {"scope": "all", "reason": "r"}, key=boss)
    adjustment = {"id": "a1", "budget": "jev", "period": "2026-11-30", "amount": "0.1", "reason": "r"}
    await desk.post("/v1/adjustments", adjustment, key=boss)
    freeze, adjust = desk.purse.asked
    assert (freeze.by_whom, adjust.by_whom) == (id, id)  # type: ignore[union-attr]
    assert isinstance(adjust, Adjust)


async def test_looks_that_need_a_right_are_on_record_before_they_are_answered(desk: Desk) -> None:
    await desk.hold("h1")
    auditor, id = await desk.new_key("audit", user="eve")
    spender, _ = await desk.new_key()
    await desk.get("/v1/days", key=auditor)
    await desk.get("/v1/days/2026-11-30", key=auditor)
    await desk.get("/v1/holds/h1", key=auditor)
    await desk.get("/v1/holds/h1", key=spender)
    await desk.get("/v1/status", key=auditor)
    await desk.get("/v1/keys")
    seen = [(look.by_whom, look.at) for look in desk.purse.looks]
    who = f"{id} (eve)"
    assert seen == [
        (who, "/v1/days"), (who, "/v1/days/2026-11-30"), (who, "/v1/holds/h1"), ("admin", "/v1/keys"),
    ]  # fmt: skip
    assert len({look.request for look in desk.purse.looks}) == 4


# --- whose holds ------------------------------------------------------------------------------------------------------


async def test_a_holds_id_is_the_callers_own_and_another_key_cannot_touch_it(desk: Desk) -> None:
    alice, id = await desk.new_key(user="alice")
    bob, _ = await desk.new_key(user="bob")
    held = await desk.post("/v1/holds", {"id": "call-1", **HOLD}, key=alice)
    assert (held.status, held["id"]) == (201, "call-1")
    assert list(desk.purse.wallet.open) == [f"{id}/call-1"]
    assert (await desk.get("/v1/holds/call-1", key=alice))["id"] == "call-1"
    theirs = [
        await desk.get("/v1/holds/call-1", key=bob),
        await desk.post("/v1/holds/call-1/renew", {"n": 1}, key=bob),
        await desk.get(f"/v1/holds/{id}%2Fcall-1", key=bob),
        await desk.post(f"/v1/holds/{id}%2Fcall-1/release", key=bob),
    ]
    assert [answer.status for answer in theirs] == [404, 404, 400, 400]
    assert (await desk.post("/v1/holds/call-1/release", key=bob))["released"] == {}
    assert list(desk.purse.wallet.open) == [f"{id}/call-1"]
    assert (await desk.post("/v1/holds", {"id": "call-1", **HOLD}, key=bob)).status == 409  # its own, released before
    settled = await desk.post("/v1/holds/call-1/settle", {"amounts": {"usd": "0.05"}, "id": "s1"}, key=alice)
    assert (settled.status, settled["id"]) == (200, "call-1")


async def test_an_admin_and_an_auditor_name_holds_as_on_the_stream(desk: Desk) -> None:
    alice, id = await desk.new_key()
    await desk.post("/v1/holds", {"id": "call-1", **HOLD}, key=alice)
    auditor, _ = await desk.new_key("audit")
    seen = await desk.get(f"/v1/holds/{id}%2Fcall-1", key=auditor)
    assert (seen.status, seen["id"]) == (200, f"{id}/call-1")
    settled = await desk.post(f"/v1/holds/{id}%2Fcall-1/settle", {"amounts": {"usd": "0.05"}})
    assert (settled["outcome"], settled["id"]) == ("settled", f"{id}/call-1")
    assert (await desk.get("/v1/holds/call-1")).status == 404


async def test_ids_in_a_batch_are_the_callers_own(desk: Desk) -> None:
    alice, id = await desk.new_key()
    asks = [{"ask": "hold", "id": "a", **HOLD}, {"ask": "settle", "hold": "a", "amounts": {"usd": "0.05"}}]
    told = (await desk.post("/v1/holds:batch", {"asks": asks}, key=alice))["told"]
    assert [(one["outcome"], one["id"]) for one in told] == [("held", "a"), ("settled", "a")]
    assert [getattr(ask, "id", "") or ask.hold for ask in desk.purse.asked] == [f"{id}/a", f"{id}/a"]  # type: ignore[union-attr]


async def test_a_batch_asks_for_each_right_alone(desk: Desk) -> None:
    observer, _ = await desk.new_key("observe")
    spender, _ = await desk.new_key()
    observed = {"ask": "observe", "budget": "neurons", "figure": "43"}
    hold = {"ask": "hold", **HOLD}
    assert (await desk.post("/v1/holds:batch", {"asks": [observed]}, key=observer)).status == 200
    desk.purse.asked.clear()
    refused = await desk.post("/v1/holds:batch", {"asks": [observed, hold]}, key=observer)
    assert (refused.status, "asks[1]" in refused["detail"]) == (403, True)
    assert (await desk.post("/v1/holds:batch", {"asks": [hold, observed]}, key=spender)).status == 403
    assert desk.purse.asked == []


async def test_a_key_that_replaces_another_speaks_of_its_holds(desk: Desk) -> None:
    old, old_id = await desk.new_key(user="alice", cohort="premium", labels={"team": "x"})
    await desk.post("/v1/holds", {"id": "call-1", **HOLD}, key=old)
    made = await desk.post("/v1/keys", {"replaces": old_id})
    assert (made["user"], made["cohort"], made["labels"]) == ("alice", "premium", {"team": "x"})
    await desk.post(f"/v1/keys/{old_id}/revoke", {"reason": "rotated"})
    settled = await desk.post("/v1/holds/call-1/settle", {"amounts": {"usd": "0.05"}}, key=made["key"])
    assert (settled.status, settled["outcome"]) == (200, "settled")
    await desk.post("/v1/holds", {"id": "call-2", **HOLD}, key=made["key"])
    theirs = await desk.post("/v1/holds/call-2/release", key=old)
    assert theirs.status == 403  # opened by the new key: what leaked must not end it
    third = await desk.post("/v1/keys", {"replaces": made["id"]})
    assert third["namespace"] == old_id


@pytest.mark.parametrize("end", ["expired", "revoked"])
async def test_an_ended_key_settles_releases_and_reads_what_it_opened_and_nothing_else(desk: Desk, end: str) -> None:
    key, id = await desk.new_key(expires_s=3_600)
    for name in ("a", "b", "c"):
        await desk.post("/v1/holds", {"id": name, **HOLD, "ttl_s": 7_200}, key=key)
    if end == "expired":
        desk.purse.clock += 3_600 * NS
    else:
        await desk.post(f"/v1/keys/{id}/revoke", {"reason": "lost"})
    assert (await desk.get("/v1/holds/a", key=key)).status == 200
    assert (await desk.post("/v1/holds/a/settle", {"amounts": {"usd": "0.05"}}, key=key))["outcome"] == "settled"
    assert (await desk.post("/v1/holds/b/release", key=key))["outcome"] == "settled"
    batch = [{"ask": "settle", "hold": "c", "amounts": {"usd": "0.01"}}]
    assert (await desk.post("/v1/holds:batch", {"asks": batch}, key=key))["told"][0]["outcome"] == "settled"
    refused = [
        await desk.post("/v1/holds", HOLD, key=key),
        await desk.post("/v1/holds/c/renew", {"n": 1}, key=key),
        await desk.post("/v1/holds/never/settle", {"amounts": {"usd": "1"}}, key=key),
        await desk.post("/v1/holds:batch", {"asks": [{"ask": "hold", **HOLD}]}, key=key),
        await desk.get("/v1/status", key=key),
    ]
    assert [answer.status for answer in refused] == [403] * 5
    settled, held, *_ = desk.purse.wallet.meters()["jev", None, "2026-11-30"]
    assert (settled, held) == (DOLLAR * 6 // 100, 0)
