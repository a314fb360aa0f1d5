"""Bad input: whatever is sent, the answer is a clear 4xx that names the field, and nothing reaches the stream."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from desk_client import KEY, PLAN, Desk, Heard, open_desk

from engine.core.plan import digest
from engine.plan_file import plan_to_json

HOLD = {"amounts": {"usd": "0.25"}, "labels": {"provider": "jev"}}
JSON = {"Content-Type": "application/json"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


async def post_raw(desk: Desk, path: str, raw: bytes | str, **headers: str) -> Heard:
    data = io.BytesIO(raw.encode() if isinstance(raw, str) else raw)
    return await desk.send("POST", path, data=data, headers={**JSON, **headers})


async def expect_refused(desk: Desk, answer: Heard, *, status: int, field: str | None) -> None:
    """A problem of that status that names the field, says why, and repeats nothing long; nothing was asked."""
    assert answer.status == status, answer.body
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer["status"] == status
    assert answer["detail"]
    assert answer.body.get("field") == field
    assert len(json.dumps(answer.body)) < 600
    assert answer.headers["x-request-id"]
    assert desk.purse.asked == []


AT = "/v1/holds"
SETTLE = "/v1/holds/call-1/settle"
RENEW = "/v1/holds/call-1/renew"
USD = '{"amounts":{"usd":%s}}'
ADJUSTMENT = {"budget": "jev", "period": "2026-11-30", "amount": "1", "reason": "r"}

NOT_FINITE = [
    (AT, USD % "NaN", "body"),
    (AT, USD % "Infinity", "body"),
    (AT, USD % "-Infinity", "body"),
    (AT, USD % '"NaN"', "amounts.usd"),
    (AT, USD % '"nan"', "amounts.usd"),
    (AT, USD % '"Infinity"', "amounts.usd"),
    (AT, USD % '"-inf"', "amounts.usd"),
    (AT, USD % '"sNaN"', "amounts.usd"),
    (SETTLE, USD % '"NaN"', "amounts.usd"),
    (AT, '{"amounts":{"usd":"1"},"wait_s":NaN}', "body"),
    (RENEW, '{"n":1,"amounts":{"usd":"NaN"}}', "amounts.usd"),
    ("/v1/observations", '{"budget":"neurons","figure":"NaN"}', "figure"),
]
NEGATIVE = [
    (AT, USD % '"-0.01"', "amounts.usd"),
    (AT, USD % "-1", "amounts.usd"),
    (AT, USD % "-0.5", "amounts.usd"),
    (AT, USD % "-1e-9", "amounts.usd"),
    (SETTLE, USD % '"-1"', "amounts.usd"),
    (RENEW, '{"n":1,"amounts":{"usd":"-1"}}', "amounts.usd"),
    (AT, '{"options":[{"amounts":{"usd":"1"},"least":{"usd":"-1"}}]}', "options[0].least.usd"),
    (AT, '{"amounts":{"usd":"1"},"ttl_s":-1}', "ttl_s"),
    (AT, '{"amounts":{"usd":"1"},"wait_s":-1}', "wait_s"),
    (AT, '{"options":[{"amounts":{"usd":"1"},"grade":-1}]}', "options[0].grade"),
    ("/v1/observations", '{"budget":"neurons","figure":"-1"}', "figure"),
    (RENEW, '{"n":-1}', "n"),
]
TOO_MANY_DIGITS = [
    (AT, USD % '"0.0000000001"', "amounts.usd"),
    (AT, USD % "0.0000000001", "amounts.usd"),
    (AT, USD % "1e-10", "amounts.usd"),
    (AT, USD % '"9223372036.854775808"', "amounts.usd"),
    (AT, USD % "9223372037", "amounts.usd"),
    (AT, USD % '"99999999999999999999"', "amounts.usd"),
    (AT, USD % "1e999999999", "amounts.usd"),
    (AT, USD % ("9" * 5000), "body"),
    (AT, USD % ('"' + "9" * 5000 + '"'), "amounts.usd"),
    (AT, '{"amounts":{"tokens":"0.5"}}', "amounts.tokens"),
    (AT, '{"amounts":{"jpy":"0.1234567"}}', "amounts.jpy"),
    (SETTLE, '{"amounts":{"neurons":"1.0000001"}}', "amounts.neurons"),
]
NOT_AMOUNTS = [
    (AT, USD % "null", "amounts.usd"),
    (AT, USD % "true", "amounts.usd"),
    (AT, USD % "[1]", "amounts.usd"),
    (AT, USD % "{}", "amounts.usd"),
    (AT, USD % '""', "amounts.usd"),
    (AT, USD % '" 1"', "amounts.usd"),
    (AT, USD % '"1,000"', "amounts.usd"),
    (AT, USD % '"0x10"', "amounts.usd"),
    (AT, USD % '"\\u0661"', "amounts.usd"),
    (AT, USD % '"1e3"', "amounts.usd"),
    (AT, '{"amounts":{}}', "amounts"),
    (AT, '{"amounts":["usd"]}', "amounts"),
    (SETTLE, '{"amounts":{}}', "amounts"),
]
UNKNOWN_UNIT = [
    (AT, '{"amounts":{"USD":"1"}}', "amounts.USD"),
    (AT, '{"amounts":{"Usd":"1"}}', "amounts.Usd"),
    (AT, '{"amounts":{"eur":"1"}}', "amounts.eur"),
    (AT, '{"amounts":{"":"1"}}', "amounts."),
    (AT, '{"amounts":{"usd ":"1"}}', "amounts.usd "),
    (AT, '{"amounts":{"us\\u0000d":"1"}}', "amounts.(a name of 4 characters)"),
    (AT, '{"amounts":{"%s":"1"}}' % ("u" * 300), "amounts.(a name of 300 characters)"),
    (AT, '{"options":[{"amounts":{"eur":"1"}}]}', "options[0].amounts.eur"),
    (AT, '{"options":[{"amounts":{"usd":"1"},"least":{"eur":"1"}}]}', "options[0].least.eur"),
    (SETTLE, '{"amounts":{"dollars":"1"}}', "amounts.dollars"),
    (RENEW, '{"n":1,"amounts":{"eur":"1"}}', "amounts.eur"),
    ("/v1/holds:batch", '{"asks":[{"ask":"hold","amounts":{"eur":"1"}}]}', "asks[0].amounts.eur"),
]
UNKNOWN_FIELD = [
    (AT, '{"amounts":{"usd":"1"},"lables":{}}', "lables"),
    (AT, '{"amounts":{"usd":"1"},"user":"alice"}', "user"),
    (AT, '{"amounts":{"usd":"1"},"by":1}', "by"),
    (AT, '{"amounts":{"usd":"1"},"Id":"a"}', "Id"),
    (AT, '{"options":[{"amounts":{"usd":"1"},"amount":{}}]}', "options[0].amount"),
    (SETTLE, '{"amounts":{"usd":"1"},"release":true}', "release"),
    ("/v1/holds/call-1/release", '{"amounts":{"usd":"1"}}', "amounts"),
    (RENEW, '{"n":1,"ttl":5}', "ttl"),
    ("/v1/freeze", '{"scope":"all","reason":"r","by_whom":"me"}', "by_whom"),
    ("/v1/adjustments", '{"id":"a","budget":"jev","period":"2026-11-30","amount":"1","reason":"r","x":1}', "x"),
    (AT, '{"amounts":{"usd":"1"},"%s":1}' % ("secret" * 20), "(a name of 120 characters)"),
    ("/v1/holds:batch", '{"asks":[{"ask":"hold","amounts":{"usd":"1"}}],"atomic":true}', "atomic"),
    ("/v1/holds:batch", '{"asks":[{"ask":"settle","hold":"a","amounts":{"usd":"1"},"n":1}]}', "asks[0].n"),
]
BAD_ID = [
    (AT, '{"id":"%s","amounts":{"usd":"1"}}' % ("x" * 65), "id"),
    (AT, '{"id":"%s","amounts":{"usd":"1"}}' % ("x" * 100_000), "id"),
    (AT, '{"id":"","amounts":{"usd":"1"}}', "id"),
    (AT, '{"id":"a/b","amounts":{"usd":"1"}}', "id"),
    (AT, '{"id":"a b","amounts":{"usd":"1"}}', "id"),
    (AT, '{"id":"\\u00e9","amounts":{"usd":"1"}}', "id"),
    (AT, '{"id":"a\\n","amounts":{"usd":"1"}}', "id"),
    (AT, '{"id":7,"amounts":{"usd":"1"}}', "id"),
    (f"/v1/holds/{'x' * 97}/settle", USD % '"1"', "id"),
    ("/v1/holds/a%20b/release", "{}", "id"),
    ("/v1/holds:batch", '{"asks":[{"ask":"release","hold":"%s"}]}' % ("x" * 97), "asks[0].hold"),
    ("/v1/holds:batch", '{"asks":[{"ask":"hold","id":"a/b","amounts":{"usd":"1"}}]}', "asks[0].id"),
]
BROKEN_JSON = [
    (AT, "", "body"),
    (AT, "   ", "body"),
    (AT, "{", "body"),
    (AT, '{"amounts":{"usd":"1"}', "body"),
    (AT, '{"amounts":{"usd":"1",}}', "body"),
    (AT, "{'amounts':{'usd':'1'}}", "body"),
    (AT, '{"amounts":{"usd":01}}', "body"),
    (AT, '{"amounts":{"usd":"1"}} x', "body"),
    (AT, '{"id":"a\n","amounts":{"usd":"1"}}', "body"),
    (AT, '\ufeff{"amounts":{"usd":"1"}}', "body"),
    (AT, b"\xff\xfe{}", "body"),
    (AT, "[" * 100_000, "body"),
    (AT, '{"a":' * 100_000, "body"),
    (AT, '{"amounts":{"usd":"1"},"labels":{"x":"\\ud800"}}', "body"),
    (AT, '{"amounts":{"usd":"1","usd":"2"}}', "usd"),
    (AT, '{"id":"a","amounts":{"usd":"1"},"id":"b"}', "id"),
]
WRONG_SHAPE = [
    (AT, "[]", "body"),
    (AT, "null", "body"),
    (AT, '"hold"', "body"),
    (AT, "7", "body"),
    (AT, "{}", "amounts"),
    (AT, '{"amounts":{"usd":"1"},"options":[{"amounts":{"usd":"1"}}]}', "amounts"),
    (AT, '{"options":[]}', "options"),
    (AT, json.dumps({"options": [{"amounts": {"usd": "1"}}] * 9}), "options"),
    (AT, '{"options":[{"amounts":{"usd":"1"},"least":{"usd":"2"}}]}', "options[0].least.usd"),
    (AT, '{"amounts":{"usd":"1"},"ttl_s":0}', "ttl_s"),
    (AT, '{"amounts":{"usd":"1"},"ttl_s":86401}', "ttl_s"),
    (AT, '{"amounts":{"usd":"1"},"ttl_s":1.5}', "ttl_s"),
    (AT, '{"amounts":{"usd":"1"},"wait_s":30.1}', "wait_s"),
    (AT, '{"amounts":{"usd":"1"},"on_lapse":"forgive"}', "on_lapse"),
    (AT, '{"amounts":{"usd":"1"},"labels":{"provider":7}}', "labels.provider"),
    (AT, '{"amounts":{"usd":"1"},"labels":{"Provider":"jev"}}', "labels"),
    (AT, '{"amounts":{"usd":"1"},"labels":{"provider":""}}', "labels.provider"),
    (AT, '{"amounts":{"usd":"1"},"labels":{"provider":"%s"}}' % ("j" * 129), "labels.provider"),
    (AT, '{"amounts":{"usd":"1"},"labels":{"provider":"\\u0000"}}', "labels.provider"),
    (AT, json.dumps({"amounts": {"usd": "1"}, "labels": {f"l{n}": "x" for n in range(17)}}), "labels"),
    (SETTLE, "{}", "amounts"),
    (SETTLE, '{"amounts":{"usd":"1"},"final":"yes"}', "final"),
    (SETTLE, '{"amounts":{"usd":"1"},"held_at":"yesterday"}', "held_at"),
    (SETTLE, '{"amounts":{"usd":"1"},"held_at":"2026-11-30T12:00:00"}', "held_at"),
    (SETTLE, '{"amounts":{"usd":"1"},"held_at":"2026-02-30T12:00:00Z"}', "held_at"),
    (SETTLE, '{"amounts":{"usd":"1"},"held_at":1796047500}', "held_at"),
    (RENEW, "{}", "n"),
    (RENEW, '{"n":0}', "n"),
    ("/v1/holds:batch", '{"asks":[]}', "asks"),
    ("/v1/holds:batch", '{"asks":[{"ask":"steal"}]}', "asks[0].ask"),
    ("/v1/holds:batch", '{"asks":[{"amounts":{"usd":"1"}}]}', "asks[0].ask"),
    ("/v1/holds:batch", json.dumps({"asks": [{"ask": "adjust", **ADJUSTMENT}]}), "asks[0].id"),
    ("/v1/observations", '{"budget":"nobody","figure":"1"}', "budget"),
    ("/v1/observations", '{"budget":"jev","figure":"1"}', "source"),
    ("/v1/observations", '{"budget":"neurons","figure":"1","period":"2026-11-31"}', "period"),
    ("/v1/observations", '{"budget":"neurons","figure":"1","as_of":"now"}', "as_of"),
    ("/v1/adjustments", json.dumps(ADJUSTMENT), "id"),
    ("/v1/adjustments", '{"id":"a","budget":"jev","period":"today","amount":"1","reason":"r"}', "period"),
    ("/v1/freeze", '{"scope":"jevv","reason":"r"}', "scope"),
    ("/v1/freeze", '{"scope":"all","reason":"%s"}' % ("r" * 257), "reason"),
    ("/v1/freeze", '{"scope":"all","reason":"r","until":"2020-01-01T00:00:00Z"}', "until"),
    ("/v1/revoke", '{"label":"No Label","value":"v","reason":"r"}', "label"),
]  # fmt: skip

ALL = [
    *NOT_FINITE, *NEGATIVE, *TOO_MANY_DIGITS, *NOT_AMOUNTS, *UNKNOWN_UNIT, *UNKNOWN_FIELD, *BAD_ID, *BROKEN_JSON,
    *WRONG_SHAPE,
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "raw", "field"), ALL, ids=lambda value: str(value)[:60].encode("ascii", "replace").decode()
)
async def test_bad_input_is_a_400_that_names_the_field(desk: Desk, path: str, raw: str | bytes, field: str) -> None:
    await expect_refused(desk, await post_raw(desk, path, raw), status=400, field=field)


@pytest.mark.parametrize("key", ["", '""', "a/b", "x" * 65, '"', "a b", "\N{LATIN SMALL LETTER E WITH ACUTE}"])
async def test_a_bad_idempotency_key_is_named(desk: Desk, key: str) -> None:
    answer = await post_raw(desk, AT, json.dumps(HOLD), **{"Idempotency-Key": key})
    await expect_refused(desk, answer, status=400, field="Idempotency-Key")


async def test_broken_json_is_named_by_line_and_column(desk: Desk) -> None:
    answer = await post_raw(desk, AT, '{\n  "amounts": {"usd": "1"},\n  "labels": {,}\n}')
    assert (answer.status, answer["line"], answer["column"]) == (400, 3, 14)
    assert "line 3, column 14" in answer["detail"]


@pytest.mark.parametrize("content_type", [
    "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml",
    "text/json", "application/jsonp", "application/octet-stream", "application/json; charset=latin-1",
    "application/json; charset=utf-16", "json",
])  # fmt: skip
async def test_another_content_type_is_415(desk: Desk, content_type: str) -> None:
    answer = await desk.send("POST", AT, data=json.dumps(HOLD), headers={"Content-Type": content_type})
    await expect_refused(desk, answer, status=415, field=None)


@pytest.mark.parametrize("path", [
    AT, SETTLE, RENEW, "/v1/holds/a/release", "/v1/holds:batch", "/v1/observations", "/v1/adjustments", "/v1/freeze",
    "/v1/revoke", "/v1/plan",
])  # fmt: skip
async def test_a_body_of_2_mb_is_413_before_it_is_read(desk: Desk, path: str) -> None:
    answer = await post_raw(desk, path, b'{"id":"' + b"x" * 2_000_000 + b'"}')
    await expect_refused(desk, answer, status=413, field=None)


async def test_a_body_of_2_mb_without_a_length_is_413_too(desk: Desk) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(32):
            yield b" " * 65_536

    answer = await desk.send("POST", AT, data=pieces(), headers=JSON)
    await expect_refused(desk, answer, status=413, field=None)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "x"])
async def test_a_compressed_body_is_415_and_never_unpacked(desk: Desk, encoding: str) -> None:
    answer = await desk.send("POST", AT, data=b"abc", headers={**JSON, "Content-Encoding": encoding})
    await expect_refused(desk, answer, status=415, field=None)


async def test_an_expectation_nobody_knows_is_417(desk: Desk) -> None:
    answer = await desk.send("POST", AT, data=b"{}", headers={**JSON, "Expect": "miracles"})
    assert (answer.status, len(answer.headers["x-request-id"])) == (417, 32)


# --- labels that only authentication may give -------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["user", "key", "cohort", "origin"])
async def test_e9_a_caller_without_a_key_cannot_say_who_it_is(label: str) -> None:
    async with open_desk(open=True) as desk:
        body = {**HOLD, "labels": {"provider": "jev", label: "alice"}}
        for path, said in [(AT, body), (SETTLE, {"amounts": {"usd": "1"}, "labels": {label: "alice"}})]:
            answer = await desk.post(path, said, key=None)
            await expect_refused(desk, answer, status=400, field=f"labels.{label}")


# --- plans ------------------------------------------------------------------------------------------------------------


def _plan(**changes: Any) -> dict[str, Any]:
    written: Any = plan_to_json(PLAN)
    budget = {**written["budgets"]["jev"], **changes}
    return {**written, "budgets": {"jev": budget}}


BAD_PLANS = [
    (_plan(zone="Mars/Olympus"), "plan.budgets.jev.zone"),
    (_plan(zone="utc"), "plan.budgets.jev.zone"),
    (_plan(zone=""), "plan.budgets.jev.zone"),
    (_plan(zone="../etc/passwd"), "plan.budgets.jev.zone"),
    (_plan(zone="localtime"), "plan.budgets.jev.zone"),
    (_plan(zone="UTC+9"), "plan.budgets.jev.zone"),
    (_plan(zone="Asia/tokyo"), "plan.budgets.jev.zone"),
    (_plan(zone=9), "plan.budgets.jev.zone"),
    (_plan(zone="Z" * 1000), "plan.budgets.jev.zone"),
    (_plan(zone="\u0000"), "plan.budgets.jev.zone"),
    (_plan(limit="-1"), "plan.budgets.jev.limit"),
    (_plan(limit="0.0000000001"), "plan.budgets.jev.limit"),
    (_plan(unit="USD"), "plan.budgets.jev.unit"),
    (_plan(per="fortnight"), "plan.budgets.jev.per"),
    (_plan(limti="1"), "plan.budgets.jev.limti"),
]


@pytest.mark.parametrize(("plan", "field"), BAD_PLANS)
async def test_e12_a_wrong_plan_is_a_400_that_names_the_field(desk: Desk, plan: dict[str, Any], field: str) -> None:
    answer = await desk.post("/v1/plan", {"plan": plan, "replaces": digest(PLAN)})
    await expect_refused(desk, answer, status=400, field=field)


async def test_a_request_line_from_nowhere_is_answered_as_a_problem(desk: Desk) -> None:
    for method, path, status in [("GET", "/v2/holds", 404), ("GET", "/v1/holds", 405), ("TRACE", "/v1/status", 405)]:
        answer = await desk.send(method, path)
        assert (answer.status, answer.headers["Content-Type"]) == (status, "application/problem+json")
    assert KEY not in str(desk.purse.asked)
