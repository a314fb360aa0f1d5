"""What the page says of a Status, and how its assets are served. How it looks and moves is in `tests/browser`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.documents import BudgetStatus, Figure, Reading, Status
from engine.core.messages import (
    Frost,
)
from web import statement
from web.assets import CONTENT_SECURITY_POLICY, asset_url
from web.page import NOW, STATUS, add_page, render

SECOND = 1_000_000_000
NOON = 1_796_040_000 * SECOND  # 2026-11-30 12:00:00 UTC
HOUR = 3600 * SECOND

BUDGET = BudgetStatus(
    name="neurons", unit="neurons", scale=6, per="day", zone="UTC", period="2026-11-30", start=NOON - 12 * HOUR,
    resets_at=NOON + 12 * HOUR, limit=10_000_000_000, settled=5_000_000_000, held=1_000_000_000, extra=1_000_000_000,
)  # fmt: skip


def page(*budgets: BudgetStatus, frozen: list[Frost] | None = None, now: int = NOON) -> str:
    status = Status("main", seq=1_234, as_of=NOON, plan="p", budgets=list(budgets), frozen=frozen or [])
    return unescape(render(status, now=now, origin="http://purse.test"))


# --- shares -----------------------------------------------------------------------------------------------------------


def test_shares_are_tenths_of_a_percent() -> None:
    assert statement.shares(BUDGET) == statement.Shares(spent=500, others=100, held=100, used=700)


AMOUNT = st.integers(0, 2**63 - 1)


@given(limit=st.integers(1, 2**63 - 1), settled=AMOUNT, extra=AMOUNT, held=AMOUNT)
def test_the_lines_add_up_and_are_100_only_with_nothing_left(limit: int, settled: int, extra: int, held: int) -> None:
    budget = replace(BUDGET, limit=limit, settled=settled, extra=extra, held=held)
    share = statement.shares(budget)
    assert share.spent + share.others + share.held == share.used
    assert min(share.spent, share.others, share.held) >= 0
    assert (share.used >= 1000) == (budget.remaining <= 0)


def test_an_adjustment_below_zero_shows_nothing_spent() -> None:
    share = statement.shares(replace(BUDGET, settled=-5_000_000_000, extra=0))
    assert share == statement.Shares(spent=0, others=0, held=0, used=0)


def test_a_limit_of_zero_is_used_up() -> None:
    assert statement.shares(replace(BUDGET, limit=0, settled=0, held=0, extra=0)).left == 0


# --- amounts ----------------------------------------------------------------------------------------------------------


def test_amounts_are_shown_only_where_the_plan_says_so() -> None:
    assert statement.amounts(BUDGET) is None
    assert statement.amounts(replace(BUDGET, public="amounts")) == statement.Amounts(
        limit="10,000", spent="5,000", others="1,000", held="1,000", left="3,000"
    )


def test_amounts_line_up_without_a_float() -> None:
    assert statement.aligned(["1", "1234567.5", "0.000000001"]) == ["1.000000000", "1,234,567.500000000", "0.000000001"]
    assert statement.grouped("-1234.5") == "-1,234.5"
    assert statement.grouped("-0.5") == "-0.5"


# --- moments ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead_s", "said"),
    [
        (59, "less than a minute"),
        (60, "1 min"),
        (3599, "59 min"),
        (6 * 3600 + 12 * 60 + 59, "6 h 12 min"),
        (47 * 3600, "47 h 0 min"),
        (3 * 86400 + 4 * 3600, "3 days 4 h"),
    ],
)
def test_a_countdown_says_its_two_largest_parts(ahead_s: int, said: str) -> None:
    assert statement.countdown(NOON + ahead_s * SECOND, NOON) == said


def test_a_moment_has_its_date_when_it_is_another_day_away() -> None:
    assert statement.when(NOON + 24 * HOUR, NOON) == "12:00"
    assert statement.when(NOON + 25 * HOUR, NOON) == "1 Dec 2026, 13:00"
    assert statement.when(NOON - 48 * HOUR, NOON, seconds=True) == "28 Nov 2026, 12:00:00"


def test_a_period_is_over_at_its_end_and_not_before() -> None:
    assert not statement.ended(BUDGET, BUDGET.resets_at - 1)
    assert statement.ended(BUDGET, BUDGET.resets_at)
    assert "5,000" not in page(replace(BUDGET, public="amounts"), now=BUDGET.resets_at).partition("data-status")[2]


# --- sentences --------------------------------------------------------------------------------------------------------


def test_an_observation_is_old_after_90_seconds() -> None:
    fresh = replace(BUDGET, source="cloudflare", observed=Figure("cloudflare", 1, NOON - 90 * SECOND))
    assert statement.own_calls_words(fresh, NOON) == ""
    assert statement.own_calls_words(fresh, NOON + 1) == (
        "Counting its own calls since 11:58 UTC: cloudflare has given no newer figure."
    )


def test_an_observation_that_is_the_same_as_before_is_as_good_as_a_new_one() -> None:
    reading = Reading("cloudflare", 60, read_at=NOON - 180 * SECOND)
    fresh = replace(BUDGET, source="cloudflare", observed=Figure("cloudflare", 1, NOON - HOUR), reading=reading)
    assert statement.own_calls_words(fresh, NOON) == "", "three intervals of this observer are 180 s"
    assert statement.own_calls_words(fresh, NOON + 1) == (
        "Counting its own calls since 11:57 UTC: cloudflare has given no newer figure."
    )


def test_a_source_that_cannot_be_read_is_said_to_be_so_once_its_figure_is_old() -> None:
    unreadable = Reading("cloudflare", 30, unreadable="it answers with status 500")
    budget = replace(BUDGET, source="cloudflare", reading=unreadable)
    assert statement.own_calls_words(budget, NOON) == (
        "Counting its own calls since the period began: cloudflare cannot be read."
    )
    budget = replace(budget, observed=Figure("cloudflare", 1, NOON - 90 * SECOND))
    assert statement.own_calls_words(budget, NOON) == ""
    assert statement.own_calls_words(budget, NOON + 1) == (
        "Counting its own calls since 11:58 UTC: cloudflare cannot be read."
    )
    assert "500" not in page(budget), "why is the operator's affair"


def test_a_budget_without_a_source_never_speaks_of_one() -> None:
    assert statement.own_calls_words(BUDGET, NOON) == ""


def test_a_freeze_of_one_user_is_told_to_nobody() -> None:
    html = page(BUDGET, frozen=[Frost("user=alice", "she knows why", NOON)])
    assert "alice" not in html
    assert "she knows why" not in html


def test_a_freeze_of_all_comes_before_one_of_a_budget() -> None:
    html = page(BUDGET, frozen=[Frost("neurons", "one", NOON), Frost("all", "both", NOON, NOON + HOUR)])
    assert "Frozen: new calls are refused until 13:00 UTC. Reason: both." in html


def test_a_freeze_is_over_at_its_end() -> None:
    frost = Frost("all", "a pause", NOON - HOUR, NOON)
    assert statement.frozen_words(frost, NOON - 1).startswith("Frozen: new calls are refused until 12:00 UTC.")
    assert statement.frozen_words(frost, NOON) == ""


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([0, 0], ""),
        ([1, 0], "1 call from before the reset is still being settled; it counts to yesterday."),
        ([3, 2], "3 calls from before the reset are still being settled; they count to yesterday."),
    ],
)
def test_calls_from_before_the_reset_are_told(counts: list[int], said: str) -> None:
    status = Status("main", 1, NOON, "p", [replace(BUDGET, earlier_open=count) for count in counts])
    assert statement.earlier_words(status) == said


# --- HTML -------------------------------------------------------------------------------------------------------------


def test_without_a_status_the_page_says_so_in_words() -> None:
    assert "No figures yet." in render(None, now=NOON, origin="http://purse.test")


def test_a_wallet_without_shared_budgets_says_so() -> None:
    assert "This wallet has no shared budget." in page()


def test_what_others_wrote_is_never_html() -> None:
    evil = '<script>alert("&")</script>'
    budget = replace(BUDGET, settled=10_000_000_000, note=evil, link='https://x.test/"onclick="', source=evil)
    status = Status("main", 1, NOON, "p", [budget], [Frost("all", evil, NOON)])
    html = render(status, now=NOON, origin='http://"><script>')
    assert html.count("<script") == 1
    assert "onclick=&quot;" in html


@pytest.mark.parametrize("link", ["javascript:alert(1)", "data:text/html,x", "//x.test", ""])
def test_only_a_web_address_becomes_a_link(link: str) -> None:
    html = page(replace(BUDGET, settled=10_000_000_000, note="Ask Ada", link=link))
    assert "Ask Ada" in html
    assert not re.search(r'<a href="(?!/openapi\.json")', html)


def test_nothing_is_inline() -> None:
    html = page(BUDGET)
    assert " style=" not in html
    assert "<style" not in html
    assert not re.search(r"\son\w+=", html)
    script = f'<script type="module" blocking="render" src="{asset_url("page.js")}">'
    assert re.findall(r"<script[^>]*>", html) == [script]


# --- served -----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def served(status: Status | None = None) -> AsyncIterator[TestClient[web.Request, web.Application]]:
    app = web.Application()
    app[STATUS] = lambda: status
    app[NOW] = lambda: NOON
    add_page(app)
    async with TestClient(TestServer(app)) as client:
        yield client


async def test_the_page_is_never_kept_and_always_guarded() -> None:
    async with served() as client:
        answer = await client.get("/")
        assert (answer.status, answer.content_type, answer.charset) == (200, "text/html", "utf-8")
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("name", "kind"), [("page.css", "text/css"), ("page.js", "text/javascript"), ("mark.svg", "image/svg+xml")]
)
async def test_an_asset_is_kept_for_ever_under_the_address_of_its_content(name: str, kind: str) -> None:
    async with served() as client:
        pinned, plain = await client.get(asset_url(name)), await client.get(f"/static/{name}")
        assert pinned.status == plain.status == 200
        assert pinned.content_type == kind
        assert pinned.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert plain.headers["Cache-Control"] == "no-cache"
        again = await client.get(f"/static/{name}", headers={"If-None-Match": plain.headers["ETag"]})
        assert (again.status, await again.read()) == (304, b"")


@pytest.mark.parametrize("name", ["nothing.js", "..%2fpage.py", "%2e%2e%2f", "page.css/"])
async def test_nothing_but_the_assets_is_served(name: str) -> None:
    async with served() as client:
        answer = await client.get(f"/static/{name}")
        assert answer.status == 404
