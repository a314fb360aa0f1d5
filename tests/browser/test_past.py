"""The pages of the past in a browser: calendar, day and slider, decisions, one call; and without a script."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import date

import pytest
import pytest_asyncio
from browser.axe import SCRIPT, violations
from desk_client import KEY, Desk, open_desk
from past import NS, PastPurse, midnight, weeks
from playwright.async_api import Browser, ConsoleMessage, Page, expect

from projector.audit.moment import wallet_at
from projector.reading import CopySource

FIRST = date(2026, 11, 24)
DAY = "2026-11-25"
START = midnight(date(2026, 11, 25))


class Visit:
    """A browser window of somebody who is signed in, and all that its console complained about."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self._address = page, address
        self.complaints: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    async def go(self, path: str) -> None:
        await self.page.goto(f"{self._address}{path}")

    async def sign_in(self, then: str) -> None:
        await self.go(f"/sign-in?then={then}")
        await self.page.fill("input[name=key]", KEY)
        await self.page.click("main button[type=submit]")


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    purse = PastPurse(weeks(FIRST))
    async with open_desk(purse=purse, looking=purse.looking) as opened:
        yield opened


async def visit(
    browser: Browser, desk: Desk, *, script: bool = True, width: int = 1100, scheme: str = "light"
) -> Visit:
    context = await browser.new_context(
        viewport={"width": width, "height": 900}, java_script_enabled=script, reduced_motion="reduce",
        color_scheme="dark" if scheme == "dark" else "light",
    )  # fmt: skip
    return Visit(await context.new_page(), str(desk.client.make_url("")).rstrip("/"))


async def moment(desk: Desk, second: int) -> dict[str, str]:
    """What an audit says each shared budget had used at this second of the day."""
    found = await wallet_at(CopySource(desk.purse.stream), START + second * NS)
    return {one["budget"]: one["used"] for one in found.budgets if one["each"] is None}


async def shown(page: Page) -> dict[str, str]:
    budgets = await page.locator(".moment [data-budget]").all()
    return {str(await one.get_attribute("data-budget")): str(await one.get_attribute("data-used")) for one in budgets}


async def test_from_the_calendar_to_a_day_and_its_slider_to_what_the_audit_says(browser: Browser, desk: Desk) -> None:
    window = await visit(browser, desk)
    page = window.page
    await window.sign_in("/days")
    await page.get_by_role("link", name="25 November 2026").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Wednesday, 25 November 2026")
    await expect(page.locator(".moment")).to_be_visible()  # that of the highest use, unasked
    slider = page.get_by_role("slider", name="Time of day")
    await slider.fill(str(15 * 3600))
    await expect(page.locator(".as-of")).to_contain_text("At 15:00:00 UTC")
    assert await shown(page) == await moment(desk, 15 * 3600)
    await expect(page.get_by_role("status")).to_contain_text("At 15:00:00 UTC")
    await slider.press("ArrowRight")
    await expect(page.locator(".as-of")).to_contain_text("At 15:01:00 UTC")
    assert await shown(page) == await moment(desk, 15 * 3600 + 60)
    await expect(page).to_have_url(re.compile(r"\?at=15:01:00$"))
    await page.reload()
    await expect(page.locator(".as-of")).to_contain_text("At 15:01:00 UTC")
    await expect(slider).to_have_attribute("aria-valuetext", "15:01:00")
    assert window.complaints == []


async def test_the_past_is_there_without_a_script(browser: Browser, desk: Desk) -> None:
    window = await visit(browser, desk, script=False)
    page = window.page
    await window.sign_in("/days")
    await page.get_by_role("link", name="25 November 2026").click()
    await expect(page.locator(".slider")).to_be_hidden()
    await page.locator("#at").fill("19:00:00")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator(".as-of")).to_contain_text("At 19:00:00 UTC")
    assert await shown(page) == await moment(desk, 19 * 3600)
    await page.get_by_role("link", name="See them one by one").click()
    await page.locator("tbody a").first.click()
    await expect(page.locator("[data-state=refused]")).to_be_visible()
    await expect(page.locator(".timeline .headline").first).to_contain_text("Refused:")


async def test_a_days_decisions_lead_to_a_calls_timeline(browser: Browser, desk: Desk) -> None:
    window = await visit(browser, desk)
    page = window.page
    await window.sign_in(f"/days/{DAY}/decisions")
    row = page.locator("tbody tr", has_text="Settled").first
    id = await row.get_by_role("link").inner_text()
    await row.get_by_role("link").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(id)
    kinds = [await one.get_attribute("class") for one in await page.locator(".timeline li").all()]
    assert (kinds[0], kinds[-1]) == ("held", "end")
    events = (await desk.get(f"/v1/holds/{id}/events"))["events"]
    seqs = [await one.get_attribute("data-seq") for one in await page.locator(".timeline li").all()]
    assert seqs == [str(event["seq"]) for event in events]
    assert window.complaints == []


async def test_a_look_that_is_overtaken_is_never_shown(browser: Browser, desk: Desk) -> None:
    window = await visit(browser, desk)
    page = window.page
    await window.sign_in(f"/days/{DAY}")
    await expect(page.locator(".moment")).to_be_visible()
    slider = page.get_by_role("slider")
    for hour in (3, 9, 12, 18):
        await slider.fill(str(hour * 3600))
    await expect(page.locator(".as-of")).to_contain_text("At 18:00:00 UTC")
    assert await shown(page) == await moment(desk, 18 * 3600)
    assert window.complaints == []


@pytest.mark.skipif(not SCRIPT.exists(), reason="axe-core was not fetched: npm ci in tests/browser")
@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (1100, "dark"), (360, "light")])
async def test_nothing_stands_in_anybodys_way(browser: Browser, desk: Desk, width: int, scheme: str) -> None:
    window = await visit(browser, desk, width=width, scheme=scheme)
    page = window.page
    await window.sign_in("/days")
    paths = ("/days", f"/days/{DAY}?at=12:00:00", f"/days/{DAY}/decisions", "/holds/1125-001")
    for path in paths:
        await window.go(path)
        assert await violations(page) == [], path
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{path} is {wide} pixels wide"
    assert window.complaints == []
