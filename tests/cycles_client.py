"""The routes of Cycles over the application's test stage, as a client of Cycles speaks to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from desk_client import Desk, Heard, open_desk

from engine.core.plan import Budget, Plan

MICROCENT = 10  # nano-dollars
DOLLAR = 100_000_000  # in Cycles' parts

PLAN = Plan(
    budgets={
        "acme": Budget("usd", DOLLAR * MICROCENT, where={"tenant": "acme"}),
        "agents": Budget("usd", DOLLAR // 2 * MICROCENT, where={"tenant": "acme"}, each="agent"),
        "tokens": Budget("tokens", 1_000, each="tenant"),
        "globex": Budget("usd", DOLLAR * MICROCENT, where={"tenant": "globex"}),
    }
)
"""Acme has a dollar a day, half a dollar for each agent of it, globex a dollar; each tenant has 1,000 tokens."""

ACTION = {"kind": "llm.completion", "name": "test-model"}


def usd(amount: int) -> dict[str, object]:
    return {"unit": "USD_MICROCENTS", "amount": amount}


def tokens(amount: int) -> dict[str, object]:
    return {"unit": "TOKENS", "amount": amount}


class Cycles:
    """Speaks with the key of one tenant; every request has an idempotency key of its own unless told otherwise."""

    def __init__(self, desk: Desk, key: str, tenant: str = "acme") -> None:
        self.desk, self.key, self.tenant = desk, key, tenant
        self._keys = (f"{key[3:13]}-{number}" for number in count())

    async def send(self, method: str, path: str, **more: Any) -> Heard:
        headers = {"X-Cycles-API-Key": self.key, **more.pop("headers", {})}
        return await self.desk.send(method, path, key=None, headers=headers, **more)

    async def get(self, path: str, **params: str) -> Heard:
        return await self.send("GET", path, params=params)

    async def post(self, path: str, body: dict[str, object], **more: Any) -> Heard:
        return await self.send("POST", path, json={"idempotency_key": next(self._keys), **body}, **more)

    async def reserve(self, amount: int = 10_000, **more: object) -> Heard:
        subject = {"tenant": self.tenant}
        return await self.post(
            "/v1/reservations", {"subject": subject, "action": ACTION, "estimate": usd(amount), **more}
        )

    async def reserved(self, amount: int = 10_000, **more: object) -> str:
        """The id of a reservation that was granted."""
        answer = await self.reserve(amount, **more)
        assert answer.status == 200, answer.body
        id: str = answer["reservation_id"]
        return id

    async def commit(self, id: str, amount: int, **more: object) -> Heard:
        return await self.post(f"/v1/reservations/{id}/commit", {"actual": usd(amount), **more})

    async def release(self, id: str, **more: object) -> Heard:
        return await self.post(f"/v1/reservations/{id}/release", more)

    async def extend(self, id: str, by_ms: int, **more: object) -> Heard:
        return await self.post(f"/v1/reservations/{id}/extend", {"extend_by_ms": by_ms, **more})

    async def event(self, amount: int, **more: object) -> Heard:
        body = {"subject": {"tenant": self.tenant}, "action": ACTION, "actual": usd(amount), **more}
        return await self.post("/v1/events", body)

    async def balance(self, scope: str = "") -> dict[str, int]:
        """What a scope of this tenant has, in dollars' parts: its own unless told otherwise."""
        scope = scope or f"tenant:{self.tenant}"
        found = await self.get("/v1/balances", **dict(segment.split(":") for segment in scope.split("/")))
        assert found.status == 200, found.body
        for balance in found["balances"]:
            if balance["scope"] == scope and balance["remaining"]["unit"] == "USD_MICROCENTS":
                return {name: value["amount"] for name, value in balance.items() if isinstance(value, dict)}
        raise AssertionError(f"no balance of {scope} in {found.body}")


@asynccontextmanager
async def open_cycles(plan: Plan = PLAN, **settings: Any) -> AsyncIterator[Cycles]:
    """The application, with a key of the tenant acme."""
    async with open_desk(plan, **settings) as desk:
        yield Cycles(desk, (await desk.new_key(labels={"tenant": "acme"}))[0])


async def of_tenant(desk: Desk, tenant: str) -> Cycles:
    return Cycles(desk, (await desk.new_key(labels={"tenant": tenant}))[0], tenant)
