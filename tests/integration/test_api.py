"""The HTTP API over the real thing: `python -m web` as a process, a real stream, an engine and a projector."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from api_contract import check_contract
from api_document import check, check_item
from integration.rig import (
    DOLLAR,
    WITHIN_S,
    Process,
    audited,
    engine_on,
    eventually,
    process_of,
    projector_on,
    wallet_on,
)

from engine.core.messages import Settle
from engine.core.plan import Budget, Plan
from engine.embedded import EmbeddedServer
from engine.journal import Journal
from engine.prices.shelf import kept

KEY = "purse_integration"
PLAN = Plan({"jev": Budget("usd", DOLLAR, per="year", where={"provider": "jev"}, source="acme")})
"""A year, so that no midnight comes in between."""
LABELS = {"provider": "jev"}

Answer = tuple[int, dict[str, Any]]


@dataclass
class Api:
    """One web process on one wallet, and a caller of it."""

    url: str
    wallet: str
    nats: str
    journal: Journal
    web: Process
    session: aiohttp.ClientSession

    async def post(self, path: str, body: object, **headers: str) -> Answer:
        async with self.session.post(self.url + path, json=body, headers=headers) as answer:
            return await self._checked(answer)

    async def get(self, path: str) -> Answer:
        async with self.session.get(self.url + path) as answer:
            return await self._checked(answer)

    async def _checked(self, answer: aiohttp.ClientResponse) -> Answer:
        """As `/openapi.json` says it."""
        raw = await answer.read()
        check(answer.method, answer.url.raw_path, answer.status, answer.headers, answer.content_type, raw)
        return answer.status, json.loads(raw)

    async def lines(self, path: str) -> list[dict[str, Any]]:
        async with self.session.get(self.url + path) as answer:
            assert answer.status == 200
            found = [json.loads(line) async for line in answer.content]
        for line in found:
            check_item(answer.url.raw_path, line)
        return found

    async def hold(self, id: str, usd: str, **more: object) -> Answer:
        return await self.post("/v1/holds", {"id": id, "amounts": {"usd": usd}, "labels": LABELS, **more})

    async def settle(self, id: str, usd: str) -> Answer:
        return await self.post(f"/v1/holds/{id}/settle", {"amounts": {"usd": usd}})


@asynccontextmanager
async def api_on(
    server: EmbeddedServer, wallet: str, data: Path, *, engine: bool = True, **more: str
) -> AsyncIterator[Api]:
    """A wallet with its projector and one web process, and an engine beside the test if asked for."""
    (data / "admin.key").write_text(f"{KEY}\n")
    environment = {
        "PURSE_NATS_URL": server.url, "PURSE_WALLET": wallet, "PURSE_DATA": str(data), "PURSE_PORT": "0",
        "PURSE_OPEN": "",
    } | more  # fmt: skip
    async with AsyncExitStack() as stack:
        journal = await stack.enter_async_context(wallet_on(server.url, wallet, plan=PLAN))
        async with engine_on(server.url, wallet):
            await eventually(lambda: _told(journal))  # the plan
        if engine:
            await stack.enter_async_context(engine_on(server.url, wallet))
        await stack.enter_async_context(projector_on(server.url, wallet))
        web = await stack.enter_async_context(process_of(["-m", "web"], **environment))
        url = (await web.until("web_listening"))["url"]
        session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"})
        await stack.enter_async_context(session)
        yield Api(url, wallet, server.url, journal, web, session)


async def _told(journal: Journal) -> bool:
    return await journal.last_seq() >= 2


@pytest.fixture
async def api(nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path) -> AsyncIterator[Api]:
    async with api_on(nats_server, wallet_name, tmp_path) as api:
        yield api


async def test_the_command_line_can_rely_on_it(api: Api) -> None:
    await asyncio.to_thread(check_contract, api.url, KEY)


async def test_who_asks_and_then_reads_sees_it_at_once(api: Api) -> None:
    for number in range(20):
        id = f"call-{number}"
        status, held = await api.hold(id, "0.01")
        assert status == 201
        status, life = await api.get(f"/v1/holds/{id}")
        assert (status, life["state"], life["amounts"]) == (200, "open", {"usd": "0.01"})
        assert (await api.settle(id, "0.001"))[0] == 200
        status, now = await api.get("/v1/status")
        budget = now["budgets"][0]
        assert (status, budget["settled"], budget["held"]) == (200, f"0.0{number + 1:02}".rstrip("0"), "0")
        assert held["receipt"]["seq"] > 0
    _, days = await api.get("/v1/days")
    (day,) = days["days"]
    assert (day["budget"], day["settled"], day["holds"], day["settles"]) == ("jev", "0.02", 20, 20)
    (shown,) = (await api.get(f"/v1/days/{day['period']}"))[1]["budgets"]
    assert {name: shown[name] for name in day} == day
    assert [(one["settled"], one["holds"]) for one in shown["by"]["user"]["top"]] == [("0.02", 20)]
    assert sum(point["holds"] for point in shown["series"]["points"]) == 20


async def test_every_decision_of_today_can_be_read_line_by_line(api: Api) -> None:
    for number in range(3):
        assert (await api.hold(f"call-{number}", "0.01"))[0] == 201
    days = {(await api.get("/v1/status"))[1]["as_of"][:10] for _ in range(2)}
    found = [line for day in sorted(days) for line in await api.lines(f"/v1/days/{day}/events")]
    assert [(line["kind"], line["outcome"]) for line in found][-3:] == [("hold", "held")] * 3
    assert found[-1]["amounts"] == {"usd": "0.01"}
    rest = await api.lines(f"/v1/days/{max(days)}/events?after={found[-2]['seq']}")
    assert rest == found[-1:]


async def test_a1_of_200_callers_at_once_exactly_the_dollar_is_granted(api: Api) -> None:
    answers = await asyncio.gather(*(api.hold(f"call-{number}", "0.01") for number in range(200)))
    statuses = [status for status, _ in answers]
    assert (statuses.count(201), statuses.count(429)) == (100, 100)
    _, now = await api.get("/v1/status")
    assert (now["budgets"][0]["held"], now["budgets"][0]["remaining"]) == ("1", "0")


async def test_of_200_callers_at_once_each_tier_is_taken_to_its_last_cent(api: Api) -> None:
    _, shown = await api.get("/v1/plan")
    tiers = [{"up_to": up_to, "grade": grade} for grade, up_to in enumerate(("50", "75", "95"))]
    status, _ = await api.post("/v1/plan", {"plan": {**shown["plan"], "tiers": tiers}, "replaces": shown["digest"]})
    assert status == 200
    options = [{"amounts": {"usd": "0.01"}, "grade": grade} for grade in range(3)]
    ask = {"options": options, "labels": LABELS, "wait_s": 30}
    answers = await asyncio.gather(*(api.post("/v1/holds", {"id": f"call-{n}", **ask}) for n in range(200)))
    taken = Counter((status, body["option"], body["tier"]) for status, body in answers if status == 201)
    assert taken == {(201, 0, 0): 51, (201, 1, 1): 25, (201, 2, 2): 20}  # used before: 0 to 50, to 75, to 95 cents
    refused = [(status, body["why"], body["tier"]) for status, body in answers if status != 201]
    assert refused == [(402, "tier", None)] * 104
    assert (await audited(api.journal)).untold == 0
    _, now = await api.get("/v1/status")
    assert (now["budgets"][0]["held"], now["budgets"][0]["first_exhausted_at"] is None) == ("0.96", False)


async def test_concurrent_repeats_of_one_id_hold_once(api: Api) -> None:
    answers = await asyncio.gather(*(api.hold("call-1", "0.25") for _ in range(20)))
    assert sorted(status for status, _ in answers) == [200] * 19 + [201]
    assert len({msgspec.json.encode({**body, "receipt": 0}) for _, body in answers}) == 1


async def test_a_whole_day_of_an_operator(api: Api) -> None:
    _, shown = await api.get("/v1/plan")
    observed = await api.post("/v1/observations", {"budget": "jev", "figure": "0.3"})
    frozen = await api.post("/v1/freeze", {"scope": "jev", "reason": "looks odd"})
    refused = await api.hold("a", "0.1")
    thawed = await api.post("/v1/thaw", {"scope": "jev"})
    plan = shown["plan"]
    plan["budgets"]["jev"]["limit"] = "0.35"
    planned = await api.post("/v1/plan", {"plan": plan, "replaces": shown["digest"]})
    spent = await api.hold("b", "0.1")
    stale = await api.post("/v1/plan", {"plan": {**plan, "plan": {"ttl_s": 60}}, "replaces": shown["digest"]})
    adjusted = await api.post(
        "/v1/adjustments",
        {"budget": "jev", "period": observed[1]["period"], "amount": "0.01", "reason": "r"},
        **{"Idempotency-Key": "x"},
    )
    statuses = [status for status, _ in (observed, frozen, refused, thawed, planned, spent, stale, adjusted)]
    assert statuses == [200, 200, 403, 200, 200, 402, 409, 200]
    assert (observed[1]["raised_by"], spent[1]["limit"], spent[1]["fits"]) == ("0.3", "0.35", "0.05")


async def test_strangers_watch_live(api: Api) -> None:
    async with aiohttp.ClientSession() as stranger, stranger.get(f"{api.url}/v1/status/stream") as stream:
        await api.hold("a", "0.25")
        async with asyncio.timeout(WITHIN_S):
            async for line in stream.content:
                if line.startswith(b"data:") and msgspec.json.decode(line[5:])["budgets"][0]["used_pct"] == 25.0:
                    break
        assert b"0.25" not in line


async def test_ready_only_with_an_engine(nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path) -> None:
    async with api_on(nats_server, wallet_name, tmp_path, engine=False) as api:
        status, body = await api.get("/readyz?verbose")
        assert (status, body["checks"]) == (503, {"engine": False, "projector": True, "plan": True, "web": True})
        async with engine_on(api.nats, api.wallet):
            assert (await api.get("/readyz?verbose"))[0] == 200


async def test_without_an_engine_a_hold_is_refused_when_its_caller_stops_waiting(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with api_on(nats_server, wallet_name, tmp_path, engine=False) as api:
        status, refused = await api.hold("a", "0.25", wait_s=0.2)
        assert (status, refused["type"]) == (503, "/problems/no-answer")
        async with engine_on(api.nats, api.wallet):
            assert (await api.hold("a", "0.25"))[0] == 201


async def test_a_caller_that_leaves_before_it_hears_is_not_charged(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with api_on(nats_server, wallet_name, tmp_path, engine=False) as api:
        await leave_in_the_middle(api)
        await eventually(lambda: _given_back(api.journal))
        async with engine_on(api.nats, api.wallet):
            assert (await api.get("/v1/holds/gone"))[0] in (200, 404)
            status, held = await api.hold("another", "1")
        assert (status, held["remaining"]) == (201, {"jev": "0"})
        assert (await audited(api.journal)).wallet.open.keys() == {"another"}


async def leave_in_the_middle(api: Api) -> None:
    """Ask for a hold of the whole dollar and break the connection once it is on the stream."""
    before = await api.journal.last_seq()
    _, _, address = api.url.partition("//")
    host, _, port = address.partition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    body = b'{"id":"gone","amounts":{"usd":"1"},"labels":{"provider":"jev"}}'
    head = (
        f"POST /v1/holds HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await eventually(lambda: _longer(api.journal, before))
    writer.transport.abort()


async def _longer(journal: Journal, before: int) -> bool:
    return await journal.last_seq() > before


async def _given_back(journal: Journal) -> bool:
    stored = await journal.read(await journal.last_seq())
    return stored is not None and b'"release":true' in stored.data


async def test_on_sigterm_it_finishes_what_runs_ends_the_streams_and_exits_0(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with api_on(nats_server, wallet_name, tmp_path, engine=False) as api:
        before = await api.journal.last_seq()
        stream = await api.session.get(f"{api.url}/v1/status/stream")
        running = asyncio.create_task(api.hold("a", "0.25", wait_s=30))
        await eventually(lambda: _longer(api.journal, before))
        api.web.signal(signal.SIGTERM)
        async with asyncio.timeout(WITHIN_S):
            await stream.content.read()
        async with engine_on(api.nats, api.wallet):
            assert (await running)[0] == 201
        assert await api.web.wait() == 0
        with pytest.raises(aiohttp.ClientConnectorError):
            await api.get("/livez")


PRICES = """
[prices."my-model"]
provider = "jev"
input_usd_per_mtok = "0"
output_usd_per_mtok = "250"
"""


async def test_an_estimate_says_what_is_then_held_and_its_book_is_kept(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    config = tmp_path / "purse.toml"
    config.write_text(PRICES)
    async with api_on(nats_server, wallet_name, tmp_path, PURSE_CONFIG=str(config)) as api:
        body = {"model": "my-model", "provider": "jev", "messages": [{"role": "user", "content": "hello"}]}
        status, found = await api.post("/v1/estimate", {**body, "max_tokens": 1000})
        assert (status, found["amounts"], found["fits"]) == (200, {"usd": "0.25"}, True)
        assert (found["used_pct_after"], found["affordable_max_tokens"]) == ({"jev": 25.0}, 4000)
        assert (await api.hold("a", found["amounts"]["usd"]))[0] == 201
        _, after = await api.post("/v1/estimate", {**body, "max_tokens": 3001})
        assert (after["fits"], after["used_pct_after"], after["affordable_max_tokens"]) == (False, {"jev": 100.0}, 3000)
        kept_book = kept(tmp_path, found["price_book"])
    assert kept_book is not None
    assert kept_book.find("jev", "my-model") is not None


async def test_a_slip_in_the_prices_is_named_and_ends_with_2(api: Api, tmp_path: Path) -> None:
    config = tmp_path / "purse.toml"
    config.write_text(PRICES.replace("output_usd", "ouput_usd"))
    environment = {"PURSE_NATS_URL": api.nats, "PURSE_WALLET": api.wallet, "PURSE_CONFIG": str(config)}
    async with process_of(["-m", "web"], **environment) as web:
        assert await web.wait() == 2
        (said,) = web.events("misconfigured")
    assert 'prices."my-model".ouput_usd_per_mtok: unknown; did you mean "output_usd_per_mtok"?' in said["why"]


async def test_a_taken_port_is_named_with_the_way_out(api: Api, tmp_path: Path) -> None:
    port = api.url.rpartition(":")[2]
    environment = {
        "PURSE_NATS_URL": api.nats,
        "PURSE_WALLET": api.wallet,
        "PURSE_PORT": port,
        "PURSE_DATA": str(tmp_path),
    }
    async with process_of(["-m", "web"], **environment) as second:
        assert await second.wait() == 2
        (said,) = second.events("misconfigured")
    assert f"127.0.0.1:{port}" in said["why"]
    assert "PURSE_PORT" in said["why"]


@pytest.mark.parametrize(
    ("name", "value"), [("PURSE_PORT", "http"), ("PURSE_PORT", "70000"), ("PURSE_REFUSAL_STATUS", "418")]
)
async def test_a_wrong_setting_is_named_and_ends_with_2(name: str, value: str) -> None:
    async with process_of(["-m", "web"], **{name: value}) as web:
        assert await web.wait() == 2
        assert name in web.events("misconfigured")[0]["why"]


async def test_what_is_not_http_is_logged_without_its_bytes(api: Api) -> None:
    _, _, address = api.url.partition("//")
    host, _, port = address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /?key=SECRET HTTP/1.1\r\n\r\n")  # no Host
    async with asyncio.timeout(WITHIN_S):
        assert b"400" in await reader.read()
    writer.close()
    event = await api.web.until("http_broken")
    assert event["error"].startswith("Bad")
    assert "SECRET" not in str(api.web.said)


async def test_bad_input_leaves_the_stream_as_it_was(api: Api) -> None:
    await api.hold("before", "0.1")
    length = await api.journal.last_seq()
    for body in ({"amounts": {"USD": "1"}}, {"amounts": {"usd": "-1"}}, {"amounts": {"usd": "1"}, "lables": {}}):
        assert (await api.post("/v1/holds", body))[0] == 400
    assert await api.journal.last_seq() == length


async def test_settles_are_kept_although_their_caller_has_left(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with api_on(nats_server, wallet_name, tmp_path, engine=False) as api:
        before = await api.journal.last_seq()
        settling = asyncio.create_task(api.post("/v1/holds/lost/settle", {"amounts": {"usd": "0.2"}, "labels": LABELS}))
        await eventually(lambda: _longer(api.journal, before))
        settling.cancel()
        async with engine_on(api.nats, api.wallet):
            await eventually(lambda: _settled(api, "0.2"))
        stored = await api.journal.read(before + 1)
        assert stored is not None
        assert msgspec.json.decode(stored.data, type=dict[str, Any])["asks"][0]["ask"] == Settle.__struct_config__.tag


# --- when the stream is away ------------------------------------------------------------------------------------------


async def test_h1_h4_a_settle_that_was_spooled_outlives_the_server_and_the_web_process(
    own_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with api_on(own_server, wallet_name, tmp_path) as api:
        assert (await api.hold("call-1", "0.25"))[0] == 201
        own_server.kill()
        await own_server.wait()
        status, unheard = await api.settle("call-1", "0.2")
        assert (status, unheard["type"], unheard["spooled"]) == (503, "/problems/no-answer", True)
        assert unheard["detail"].endswith("What was settled is kept and will count.")
        status, refused = await api.hold("call-2", "0.25", wait_s=0.2)
        assert (status, "spooled" in refused) == (503, False)
        depth = (await api.get("/readyz?verbose"))[1]["spool_depth"]
        assert depth in (1, 2), (
            "the settle; and the give-up of call-2, if that may have left before the server was gone"
        )
        api.web.signal(signal.SIGKILL)
        await api.web.wait()
        await own_server.start()
        async with web_on(api, tmp_path) as again:
            await eventually(lambda: _settled(again, "0.2"))
            await eventually(lambda: _spool_empty(again))
            status, settled = await again.settle("call-1", "0.2")
            assert (status, settled["outcome"], settled["charged"]) == (200, "again", {"usd": "0.2"})


async def _spool_empty(api: Api) -> bool:
    return bool((await api.get("/readyz?verbose"))[1]["spool_depth"] == 0)


@asynccontextmanager
async def web_on(api: Api, data: Path) -> AsyncIterator[Api]:
    """Another web process on the same wallet and folder."""
    environment = {
        "PURSE_NATS_URL": api.nats, "PURSE_WALLET": api.wallet, "PURSE_DATA": str(data), "PURSE_PORT": "0",
    }  # fmt: skip
    async with process_of(["-m", "web"], **environment) as web:
        url = (await web.until("web_listening"))["url"]
        yield Api(url, api.wallet, api.nats, api.journal, web, api.session)


async def test_viewers_who_never_read_hold_up_no_caller(api: Api) -> None:
    host, port = api.url.removeprefix("http://").split(":")
    stalled = [await asyncio.open_connection(host, int(port), limit=1) for _ in range(50)]
    for _, writer in stalled:
        writer.write(b"GET /v1/status/stream HTTP/1.1\r\nHost: purse\r\n\r\n")
    for first in range(0, 100, 20):
        answers = await asyncio.gather(*(api.hold(f"call-{n}", "0.01") for n in range(first, first + 20)))
        assert [status for status, _ in answers] == [201] * 20
    assert (await api.get("/v1/status"))[1]["budgets"][0]["remaining"] == "0"
    for _, writer in stalled:
        writer.close()


async def _settled(api: Api, usd: str) -> bool:
    return bool((await api.get("/v1/status"))[1]["budgets"][0]["settled"] == usd)
