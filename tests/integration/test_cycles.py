"""Cycles' routes on the real thing: two web processes that share the wallet alone, and a projector that restarts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from integration.rig import (
    DOLLAR,
    audited,
    projector_on,
)
from integration.two_webs import KEY, Answer, Webs, webs_on

from engine.core.plan import Budget, Plan
from engine.embedded import EmbeddedServer
from engine.journal import Journal

PLAN = Plan({
    "tenants": Budget("usd", DOLLAR, per="year", each="tenant"),
    "agents": Budget("usd", DOLLAR // 2, per="year", where={"tenant": "acme"}, each="agent"),
})  # fmt: skip
CENT = 1_000_000
PARTS = 10  # nano-dollars of one of Cycles' parts
ACTION = {"kind": "llm.completion", "name": "test-model"}


@dataclass
class CyclesWebs(Webs):
    """Two web processes on one wallet, and a client of Cycles that speaks to either."""

    key: str = ""

    async def send(self, web: int, method: str, path: str, body: object = None, key: str | None = None) -> Answer:
        headers = {"X-Cycles-API-Key": key or self.key}
        async with self.session.request(method, self.urls[web] + path, json=body, headers=headers) as answer:
            return answer.status, await answer.json()

    async def new_key(self, tenant: str) -> str:
        headers = {"Authorization": f"Bearer {KEY}"}
        body = {"role": "spend", "labels": {"tenant": tenant}}
        async with self.session.post(f"{self.urls[0]}/v1/keys", json=body, headers=headers) as answer:
            made: str = (await answer.json())["key"]
            return made

    async def reserve(self, web: int, key: str, amount: int = CENT, **more: object) -> Answer:
        body = {
            "idempotency_key": key, "subject": {"tenant": "acme"}, "action": ACTION,
            "estimate": {"unit": "USD_MICROCENTS", "amount": amount}, **more,
        }  # fmt: skip
        return await self.send(web, "POST", "/v1/reservations", body)

    async def commit(self, web: int, id: str, key: str, amount: int) -> Answer:
        body = {"idempotency_key": key, "actual": {"unit": "USD_MICROCENTS", "amount": amount}}
        return await self.send(web, "POST", f"/v1/reservations/{id}/commit", body)

    async def spent(self, web: int) -> int:
        _, found = await self.send(web, "GET", "/v1/balances?tenant=acme")
        spent: int = found["balances"][0]["spent"]["amount"]
        return spent


@asynccontextmanager
async def two_webs(server: EmbeddedServer, wallet: str, data: Path) -> AsyncIterator[CyclesWebs]:
    """A wallet with an engine and two web processes. The projector is the test's own."""
    async with webs_on(server, wallet, data, PLAN) as webs:
        made = CyclesWebs(webs.urls, webs.journal, webs.session)
        made.key = await made.new_key("acme")
        yield made


async def booked(journal: Journal) -> dict[tuple[str, str | None], tuple[int, int]]:
    """By the record alone, budget and `each`: settled and held."""
    meters = (await audited(journal)).wallet.meters().items()
    return {(budget, each): (settled, held) for (budget, each, _), (settled, held, _, _) in meters}


async def test_what_one_process_has_promised_the_other_keeps_also_after_a_restart_of_the_projector(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    data = tmp_path / "projector"
    data.mkdir()
    async with two_webs(nats_server, wallet_name, tmp_path) as webs:
        async with projector_on(nats_server.url, wallet_name, data=data):
            status, first = await webs.reserve(0, "once", 2 * CENT, ttl_ms=600_000)
            assert status == 200
            id = first["reservation_id"]
            status, extended = await webs.send(
                1, "POST", f"/v1/reservations/{id}/extend", {"idempotency_key": "more", "extend_by_ms": 1_000}
            )
            assert (status, extended["expires_at_ms"]) == (200, first["expires_at_ms"] + 1_000)
            status, done = await webs.commit(1, id, "done", CENT)
            assert (status, done["charged"]["amount"], done["released"]["amount"]) == (200, CENT, CENT)
            assert await webs.commit(0, id, "done", CENT) == (200, done)
        async with projector_on(nats_server.url, wallet_name, data=data):
            for web in (0, 1):
                status, again = await webs.reserve(web, "once", 2 * CENT, ttl_ms=600_000)
                assert (status, again) == (200, {**first, "remaining_ttl_ms": 0})
                assert await webs.commit(web, id, "done", CENT) == (200, done)
                assert (await webs.reserve(web, "once", CENT))[1]["error"] == "IDEMPOTENCY_MISMATCH"
                assert (await webs.commit(web, id, "other", CENT))[1]["error"] == "RESERVATION_FINALIZED"
                assert await webs.spent(web) == CENT
                status, listed = await webs.send(web, "GET", "/v1/reservations?idempotency_key=once")
                assert [row["reservation_id"] for row in listed["reservations"]] == [id]
        assert await booked(webs.journal) == {("tenants", "acme"): (CENT * PARTS, 0)}


async def test_however_many_ask_at_both_processes_each_key_holds_once_and_the_last_cent_is_granted_once(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with two_webs(nats_server, wallet_name, tmp_path) as webs, projector_on(nats_server.url, wallet_name):
        asks = [webs.reserve(web, f"k{number}", 2 * CENT) for number in range(60) for web in (0, 1)]
        answers = await asyncio.gather(*asks)
        assert Counter(status for status, _ in answers) == {200: 100, 409: 20}
        granted = {body["reservation_id"] for status, body in answers if status == 200}
        assert len(granted) == 50
        assert {body["error"] for status, body in answers if status == 409} == {"BUDGET_EXCEEDED"}
        done = await asyncio.gather(*(webs.commit(web, id, id, CENT) for id in granted for web in (0, 1)))
        assert Counter(status for status, _ in done) == {200: 100}
        assert await webs.spent(0) == await webs.spent(1) == 50 * CENT
        assert await booked(webs.journal) == {("tenants", "acme"): (50 * CENT * PARTS, 0)}


async def test_a_look_at_the_real_projector_knows_the_budgets_of_each_agent(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with two_webs(nats_server, wallet_name, tmp_path) as webs, projector_on(nats_server.url, wallet_name):
        body = {
            "idempotency_key": "look", "subject": {"agent": "scout"}, "action": ACTION,
            "estimate": {"unit": "USD_MICROCENTS", "amount": 51 * CENT},
        }  # fmt: skip
        status, denied = await webs.send(0, "POST", "/v1/decide", body)
        assert (status, denied["decision"], denied["reason_code"]) == (200, "DENY", "BUDGET_EXCEEDED")
        status, allowed = await webs.send(1, "POST", "/v1/decide", {**body, "subject": {"app": "crm"}})
        assert (status, allowed["decision"]) == (200, "ALLOW")
        other = await webs.new_key("globex")
        _, granted = await webs.reserve(0, "k")
        status, refused = await webs.send(1, "GET", f"/v1/reservations/{granted['reservation_id']}", key=other)
        assert (status, refused["error"]) == (403, "FORBIDDEN")
