"""Operators look, filter, freeze, thaw, make a key and leave: in a real browser, with a script and without."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Literal

import pytest
from browser.office import KEY, YESTERDAY, Office, office
from browser.window import AXE, Windows, violations
from playwright.async_api import Browser, Page, expect

from engine.core.messages import Freeze, Revoke
from web.assets import is_there

Scheme = Literal["light", "dark"]


@pytest.fixture
async def place() -> AsyncIterator[Office]:
    async with office() as desk:
        yield Office(str(desk.client.make_url("/")), desk)


@pytest.fixture
async def windows(browser: Browser, place: Office) -> AsyncIterator[Windows]:
    """Opens pages of the office, and fails the test if any of them complained."""
    windows = Windows(browser, place)
    yield windows
    await windows.close()
    assert windows.complaints == []


async def signed_in(windows: Windows, place: Office, path: str = "budget", **window: object) -> Page:
    page = await windows.open(**window)  # type: ignore[arg-type]
    await page.goto(f"{place.url}{path}")
    await page.get_by_label("Key", exact=True).fill(KEY)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    return page


async def act(page: Page, name: str, yes: str) -> None:
    """Press the button of a form, see the question, say yes."""
    await page.get_by_role("button", name=name).click()
    await page.get_by_role("button", name=yes).click()
    await expect(page.get_by_role("status")).to_be_visible()


@pytest.mark.parametrize("script", [True, False])
async def test_an_operator_looks_filters_freezes_thaws_and_leaves(
    windows: Windows, place: Office, script: bool
) -> None:
    page = await signed_in(windows, place, script=script)
    await expect(page.get_by_role("meter").first).to_have_attribute("aria-valuenow", "45.2")

    await page.get_by_label("Period").select_option(YESTERDAY)
    if not script:
        await page.get_by_role("button", name="Show").click()
    await expect(page.get_by_role("heading", name="How it went")).to_be_visible()
    assert f"period={YESTERDAY}" in page.url
    await page.get_by_role("link", name="User").click()
    await expect(page.get_by_role("rowheader", name="alice")).to_be_visible()

    await page.goto(f"{place.url}budget")
    await page.locator("summary", has_text="Freeze").click()
    await page.get_by_label("What", exact=True).fill("all")
    await page.get_by_label("Reason").first.fill("Looking into a spike")
    await act(page, "Freeze …", "Freeze it")
    await expect(page.get_by_role("rowheader", name="Frozen")).to_be_visible()

    await place.desk.purse.show()
    stranger = await windows.open(script=script)
    await expect(stranger.locator("[data-at=frozen]")).to_contain_text("Reason: Looking into a spike.")

    await act(page, "Lift", "Lift the freeze")
    await expect(page.get_by_text("Nothing is frozen, cooling or revoked.")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Key", exact=True)).to_be_visible()
    await page.goto(f"{place.url}budget")
    assert page.url.endswith("/sign-in?then=/budget")


async def test_a_new_key_is_seen_once(windows: Windows, place: Office) -> None:
    page = await signed_in(windows, place, "keys")
    await page.get_by_label("User", exact=True).fill("alice")
    await page.get_by_role("button", name="Make the key").click()
    made = page.locator(".secret")
    await expect(made).to_have_text(re.compile(r"^cp_\w+$"))
    key = await made.inner_text()
    assert (await place.desk.get("/v1/holds/none", key=key)).status == 404
    await page.goto(f"{place.url}keys")
    await expect(page.get_by_role("rowheader", name=key.split("_")[1])).to_be_visible()
    await expect(page.get_by_text(key)).to_have_count(0)
    await page.get_by_role("button", name="Revoke").click()
    await page.get_by_label("Reason").fill("lost")
    await page.get_by_role("button", name="Revoke the key").click()
    await expect(page.get_by_role("cell", name="revoked", exact=True)).to_be_visible()
    assert (await place.desk.post("/v1/holds", {"amounts": {"usd": "0.1"}}, key=key)).status == 403


async def test_figures_move_by_themselves_and_a_silent_server_is_not_live(windows: Windows, place: Office) -> None:
    page = await signed_in(windows, place)
    badge = page.locator(".fresh .badge")
    await place.desk.purse.show()
    await expect(badge).to_have_text("live")
    place.desk.purse.figures["jev"].settled += 2 * 10**9
    await place.desk.purse.show()
    await expect(page.get_by_role("meter").first).to_have_attribute("aria-valuenow", "55.2")
    place.desk.board.close()
    await expect(badge).to_have_attribute("data-state", "stale")


@pytest.mark.skipif(not is_there("uplot.js"), reason="the charts' library was not fetched: make assets")
async def test_charts_are_drawn_to_be_read_closely(windows: Windows, place: Office) -> None:
    page = await signed_in(windows, place)
    chart = page.locator("[data-chart=left]")
    await expect(chart.locator("canvas")).to_be_visible()
    await chart.locator(".u-over").hover()
    await expect(chart.locator(".u-legend")).to_contain_text(re.compile(r"Left\s*[\d.,]+ usd"))


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.skipif(not AXE.exists(), reason="axe-core was not fetched: make sdks")
async def test_nobody_is_shut_out(windows: Windows, place: Office, scheme: Scheme, width: int) -> None:
    purse = place.desk.purse
    await purse.ask_all([Freeze("f", "jev", "a test", "kim"), Revoke("r", "user", "mallory", "leaked", "kim")])
    await place.desk.new_key("spend", user="alice", note="laptop")
    stranger = await windows.open(scheme=scheme, width=width)
    found = {"/": await violations(stranger)}
    await stranger.goto(f"{place.url}sign-in")
    found["/sign-in"] = await violations(stranger)
    page = await signed_in(windows, place, scheme=scheme, width=width)
    for path in ("budget", f"budget?budget=jev&by=user&period={YESTERDAY}", "budget?budget=none", "keys"):
        await page.goto(place.url + path)
        for summary in await page.locator("main summary").all():
            await summary.click()
        found[path] = await violations(page)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    windows.complaints = [one for one in windows.complaints if "404" not in one]  # the browser tells of the page above
    await page.goto(f"{place.url}budget")
    await page.locator("summary", has_text="Freeze").click()
    await page.get_by_label("What", exact=True).fill("all")
    await page.get_by_label("Reason").first.fill("a test")
    await page.get_by_role("button", name="Freeze …").click()
    await expect(page.get_by_role("button", name="Freeze it")).to_be_visible()
    found["confirm"] = await violations(page)
    assert {path: one for path, one in found.items() if one} == {}
