"""Stories of a client of Cycles, told at random: its books by its own rules agree with the wallet's after every step.

The naive books know the protocol alone: leases in milliseconds, grace, idempotency, and that all that was spent counts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from cycles_client import Cycles, of_tenant, open_cycles, usd
from desk_client import Heard, open_desk
from fake_purse import NS

from engine.core.plan import Budget, Plan

LIMIT = 1_000
PLAN = Plan(budgets={"tenants": Budget("usd", LIMIT * 10, per="total", each="tenant")}, remember_s=7 * 24 * 3600)
STEPS = 60


@dataclass
class Naive:
    """One reservation, as its client would keep it."""

    id: str
    amount: int
    expires_at_ms: int
    grace_ms: int
    state: str = "ACTIVE"
    charged: int = 0

    def at(self, now_ms: int) -> str:
        if self.state == "ACTIVE" and now_ms > self.expires_at_ms + self.grace_ms:
            self.state, self.charged = "EXPIRED", self.amount
        return self.state


@dataclass
class Books:
    """What one tenant has reserved and spent."""

    reservations: list[Naive] = field(default_factory=list)
    events: int = 0

    def spent(self, now_ms: int) -> int:
        return self.events + sum(one.charged for one in self.reservations if one.at(now_ms) != "ACTIVE")

    def reserved(self, now_ms: int) -> int:
        return sum(one.amount for one in self.reservations if one.at(now_ms) == "ACTIVE")

    def fits(self, amount: int, now_ms: int) -> bool:
        return amount == 0 or self.spent(now_ms) + self.reserved(now_ms) + amount <= LIMIT


class Teller:
    """Tells one story at two web processes that share nothing."""

    def __init__(self, seed: int, first: Cycles, second: Cycles) -> None:
        self.random = random.Random(seed)
        self.clients, self.purse = (first, second), first.desk.purse
        self.books = Books()
        self.said: list[tuple[str, dict[str, Any], int, object]] = []
        self.keys = 0

    @property
    def now_ms(self) -> int:
        return self.purse.clock // 1_000_000

    async def send(self, path: str, body: dict[str, Any]) -> Heard:
        return await self.random.choice(self.clients).post(path, body)

    async def ask(self, path: str, body: dict[str, Any]) -> Heard:
        """A request under a key of its own."""
        self.keys += 1
        body = {"idempotency_key": f"k{self.keys}", **body}
        heard = await self.send(path, body)
        if heard.status in (200, 201):
            self.said.append((path, body, heard.status, heard.body))
        return heard

    async def step(self) -> None:
        match self.random.choice(
            ("reserve", "reserve", "commit", "commit", "release", "extend", "event", "again", "wait")
        ):
            case "reserve":
                await self.reserve()
            case "event":
                await self.event()
            case "again":
                await self.again()
            case "wait":
                self.purse.clock += self.random.randrange(0, 8 * NS)
            case what if self.books.reservations:
                await getattr(self, what)(self.random.choice(self.books.reservations))
            case _:
                pass
        await self.check()

    async def reserve(self) -> None:
        amount, ttl_ms = self.random.choice((0, 1, 90, 300)), self.random.randrange(1_000, 9_000)
        grace_ms, fits = self.random.choice((0, 500, 5_000)), self.books.fits
        tenant = {"tenant": self.clients[0].tenant}
        granted = fits(amount, self.now_ms)
        heard = await self.ask("/v1/reservations", {
            "subject": tenant, "action": {"kind": "k", "name": "n"}, "estimate": usd(amount), "ttl_ms": ttl_ms,
            "grace_period_ms": grace_ms,
        })  # fmt: skip
        assert heard.status == (200 if granted else 409), heard.body
        if granted:
            assert heard["expires_at_ms"] == self.now_ms + ttl_ms
            self.books.reservations.append(Naive(heard["reservation_id"], amount, self.now_ms + ttl_ms, grace_ms))

    async def commit(self, one: Naive) -> None:
        actual = self.random.choice((0, 1, 80, one.amount, one.amount + 5))
        heard = await self.ask(f"/v1/reservations/{one.id}/commit", {"actual": usd(actual)})
        if self.ends(one, heard):
            one.state, one.charged = "COMMITTED", actual
            assert heard["charged"] == usd(actual)
            assert heard.body.get("released", usd(0)) == usd(max(0, one.amount - actual))

    async def release(self, one: Naive) -> None:
        heard = await self.ask(f"/v1/reservations/{one.id}/release", {})
        if self.ends(one, heard):
            one.state = "RELEASED"
            assert heard["released"] == usd(one.amount)

    async def extend(self, one: Naive) -> None:
        by_ms = self.random.randrange(1, 5_000)
        heard = await self.ask(f"/v1/reservations/{one.id}/extend", {"extend_by_ms": by_ms})
        if one.at(self.now_ms) == "ACTIVE" and self.now_ms > one.expires_at_ms:
            assert heard["error"] == "RESERVATION_EXPIRED"
        elif self.ends(one, heard):
            one.expires_at_ms += by_ms
            assert heard["expires_at_ms"] == one.expires_at_ms

    def ends(self, one: Naive, heard: Heard) -> bool:
        """Whether it was active; if not, that it was told so."""
        state = one.at(self.now_ms)
        if state == "ACTIVE":
            assert heard.status == 200, heard.body
            return True
        assert heard["error"] == ("RESERVATION_EXPIRED" if state == "EXPIRED" else "RESERVATION_FINALIZED")
        return False

    async def event(self) -> None:
        """Of nothing, or the cost of a reservation that has expired or was released."""
        amount = self.random.choice((1, 40))
        ended = [one for one in self.books.reservations if one.at(self.now_ms) in ("EXPIRED", "RELEASED")]
        ended = [one for one in ended if not one.charged or one.state == "EXPIRED"]
        one = self.random.choice(ended) if ended and self.random.random() < 0.7 else None
        metadata = {"recovered_reservation_id": one.id} if one is not None else {"run": self.keys}
        subject = {"tenant": self.clients[0].tenant}
        heard = await self.ask("/v1/events", {
            "subject": subject, "action": {"kind": "k", "name": "n"}, "actual": usd(amount), "metadata": metadata
        })  # fmt: skip
        assert heard.status == 201, heard.body
        if one is not None and one.state == "EXPIRED":
            one.state, one.charged = "COMMITTED", amount
        elif one is not None:
            one.charged = amount
        else:
            self.books.events += amount

    async def again(self) -> None:
        """Anything that was done is asked once more: the first answer, and nothing happens."""
        if not self.said:
            return
        path, body, status, first = self.random.choice(self.said)
        heard = await self.send(path, body)
        assert (heard.status, _lasting(heard.body)) == (status, _lasting(first))
        other = await self.send(path, {**body, **({"reason": "x"} if path.endswith("release") else {"metadata": {}})})
        assert other["error"] == "IDEMPOTENCY_MISMATCH"

    async def check(self) -> None:
        """The wallet's balance is that of the naive books, once time has passed in the wallet as well."""
        other = await self.clients[0].get("/v1/balances", tenant=self.clients[0].tenant)
        if self.random.random() < 0.5:
            await self.purse.ask_all([])  # a tick
            spent, reserved = self.books.spent(self.now_ms), self.books.reserved(self.now_ms)
            found = (await self.clients[1].get("/v1/balances", tenant=self.clients[0].tenant))["balances"][0]
            assert found["remaining"]["amount"] == LIMIT - spent - reserved
            assert found["spent"]["amount"] + found["debt"]["amount"] + found["reserved"]["amount"] == spent + reserved
        assert other.status == 200
        for one in self.books.reservations[-3:]:
            heard = await self.clients[1].get(f"/v1/reservations/{one.id}")
            state = one.at(self.now_ms)
            assert heard.body.get("status", heard.body.get("error")) == (
                state if state != "EXPIRED" else "RESERVATION_EXPIRED"
            )


def _lasting(body: Any) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "remaining_ttl_ms"}


@pytest.mark.parametrize("seed", range(5))
async def test_a_clients_own_books_agree_with_the_wallets(seed: int) -> None:
    async with open_cycles(PLAN) as first, open_desk(purse=first.desk.purse) as desk:
        await of_tenant(first.desk, "globex")
        teller = Teller(seed, first, Cycles(desk, first.key))
        for _ in range(STEPS):
            await teller.step()
