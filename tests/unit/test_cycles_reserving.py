"""A reservation of Cycles is a hold: what is granted, what is refused, and what a repeat hears."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from cycles_client import DOLLAR, Cycles, open_cycles, usd
from fake_purse import NOON


@pytest_asyncio.fixture
async def cycles() -> AsyncIterator[Cycles]:
    async with open_cycles() as cycles:
        yield cycles


async def test_a_reservation_is_granted_with_exactly_what_a_client_needs(cycles: Cycles) -> None:
    granted = await cycles.reserve(10_000)
    assert granted.status == 200
    at_ms = NOON // 1_000_000
    assert granted.body == {
        "decision": "ALLOW",
        "reservation_id": granted["reservation_id"],
        "reserved": usd(10_000),
        "expires_at_ms": at_ms + 60_000,
        "remaining_ttl_ms": 60_000,
        "scope_path": "tenant:acme",
        "affected_scopes": ["tenant:acme"],
    }
    assert await cycles.balance() == {
        "remaining": DOLLAR - 10_000, "allocated": DOLLAR, "spent": 0, "reserved": 10_000, "debt": 0
    }  # fmt: skip
