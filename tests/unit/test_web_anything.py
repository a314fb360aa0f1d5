"""Whatever is sent, every answer is a clear one: never a 5xx, never a body that is not what its content type says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from desk_client import Desk, open_desk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from web.app import _TABLES

POSTS = sorted(route.path for route in _TABLES if route.method == "POST")
WORDS = [
    "id", "amounts", "options", "least", "grade", "name", "labels", "ttl_s", "on_lapse", "wait_s", "final",
    "estimated", "held_at", "n", "budget", "figure", "period", "as_of", "source", "each", "amount", "reason",
    "hold", "scope", "until", "label", "value", "plan", "replaces", "asks", "ask", "usd", "tokens", "provider",
    "user", "budgets", "unit", "limit", "model", "messages", "input", "system", "tools", "max_tokens", "content",
    "type", "text", "source", "image", "gpt-4o",
]  # fmt: skip
VALUES = [
    "", "0", "1", "-1", "0.5", "1e9", "jev", "neurons", "user-daily", "all", "user=a", "hold", "settle", "adjust",
    "charge", "2026-11-30", "2026-11-30T14:05:00Z", "cloudflare", "\x00", "\ud800", "\u00e9", "x" * 300, "UTC",
    "gpt-4o", "image", "document", "tool_result",
]  # fmt: skip

leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(VALUES), st.text(max_size=8),
    st.just(10**400), st.just(-(2**63)),
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=12,
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


async def expect_clear(desk: Desk, path: str, raw: bytes) -> None:
    answer = await desk.send("POST", path, data=raw, headers={"Content-Type": "application/json"})
    assert answer.status < 500, (answer.body, raw)
    kind = "application/problem+json" if answer.status >= 400 else "application/json"
    assert answer.headers["Content-Type"] == kind
    assert answer.status < 400 or answer["detail"]
    desk.purse.wallet.check()


@given(path=st.sampled_from(POSTS), body=values)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
async def test_any_json_at_any_route_is_answered_clearly(desk: Desk, path: str, body: Any) -> None:
    await expect_clear(desk, path.replace("{id}", "call-1"), json.dumps(body).encode())


@given(path=st.sampled_from(POSTS), raw=st.binary(max_size=40))
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
async def test_any_bytes_at_any_route_are_answered_clearly(desk: Desk, path: str, raw: bytes) -> None:
    await expect_clear(desk, path.replace("{id}", "call-1"), raw)


HOLDS = st.fixed_dictionaries(
    {"amounts": st.dictionaries(st.sampled_from(["usd", "jpy", "tokens", "eur"]), leaves, max_size=3)},
    optional={
        "id": st.sampled_from(["a", "b", "c/d", ""]),
        "labels": st.dictionaries(st.sampled_from(WORDS), leaves, max_size=3),
        "ttl_s": leaves, "on_lapse": st.sampled_from(["charge", "release", "x"]), "wait_s": leaves,
    },
)  # fmt: skip


@given(body=HOLDS)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
async def test_anything_that_looks_like_a_hold_is_answered_clearly(desk: Desk, body: Any) -> None:
    await expect_clear(desk, "/v1/holds", json.dumps(body).encode())


ESTIMATES = st.fixed_dictionaries(
    {"model": st.sampled_from(["gpt-4o", "claude-3-haiku", "@cf/meta/llama-3-8b-instruct", "text-embedding-3-small"])},
    optional={
        "messages": st.lists(values, max_size=3), "input": values, "system": values, "tools": st.lists(values),
        "max_tokens": leaves, "n": leaves, "provider": st.sampled_from(["", "openai", "x"]),
    },
)  # fmt: skip


@given(body=ESTIMATES)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
async def test_anything_that_looks_like_an_estimate_is_answered_clearly(desk: Desk, body: Any) -> None:
    await expect_clear(desk, "/v1/estimate", json.dumps(body).encode())
