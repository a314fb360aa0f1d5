"""The pages of the past in a browser: calendar, day and slider, decisions, one call; and without a script."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import date
from typing import Literal

import pytest
import pytest_asyncio
from browser.office import Office
from browser.window import AXE, Windows, violations
from desk_client import KEY, Desk, open_desk
from past import NS, PastPurse, midnight, weeks
from playwright.async_api import Browser, Page, expect

from projector.audit.moment import wallet_at
from projector.reading import CopySource

FIRST = date(2026, 11, 24)
DAY = "2026-11-25"
START = midnight(date(2026, 11, 25))


@pytest_asyncio.fixture
async def place() -> AsyncIterator[Office]:
    purse = PastPurse(weeks(FIRST))
    async with open_desk(purse=purse, looking=purse.looking) as desk:
        yield Office(str(desk.client.make_url("/")), desk)


@pytest_asyncio.fixture
async def windows(browser: Browser, place: Office) -> AsyncIterator[Windows]:
    """Opens pages of the past, and fails the test if any of them complained."""
    windows = Windows(browser, place)
    yield windows
    await windows.close()
    assert windows.complaints == []


async def signed_in(windows: Windows, page: Page, path: str) -> Page:
    await page.goto(f"{windows.stage.url}sign-in?then=/{path}")
    await page.get_by_label("Key", exact=True).fill(KEY)
    await page.get_by_role("button", name="Sign in").click()
    return page


async def moment(desk: Desk, second: int) -> dict[str, str]:
    """What an audit says each shared budget had used at this second of the day."""
    found = await wallet_at(CopySource(desk.purse.stream), START + second * NS)
    return {one["budget"]: one["used"] for one in found.budgets if one["each"] is None}


async def shown(page: Page) -> dict[str, str]:
    budgets = await page.locator(".moment [data-budget]").all()
    return {str(await one.get_attribute("data-budget")): str(await one.get_attribute("data-used")) for one in budgets}


async def test_from_the_calendar_to_a_day_and_its_slider_to_what_the_audit_says(
    windows: Windows, place: Office
) -> None:
    page = await signed_in(windows, await windows.open(), "days")
    await page.get_by_role("link", name="25 November 2026").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Wednesday, 25 November 2026")
    await expect(page.locator(".moment")).to_be_visible()  # that of the highest use, unasked
    slider = page.get_by_role("slider", name="Time of day")
    await slider.fill(str(15 * 3600))
    await expect(page.locator(".as-of")).to_contain_text("At 15:00:00 UTC")
    assert await shown(page) == await moment(place.desk, 15 * 3600)
    await expect(page.get_by_role("status")).to_contain_text("At 15:00:00 UTC")
    await slider.press("ArrowRight")
    await expect(page.locator(".as-of")).to_contain_text("At 15:01:00 UTC")
    assert await shown(page) == await moment(place.desk, 15 * 3600 + 60)
    await expect(page).to_have_url(re.compile(r"\?at=15:01:00$"))
    await page.reload()
    await expect(page.locator(".as-of")).to_contain_text("At 15:01:00 UTC")
    await expect(slider).to_have_attribute("aria-valuetext", "15:01:00")


async def test_the_past_is_there_without_a_script(windows: Windows, place: Office) -> None:
    page = await signed_in(windows, await windows.open(script=False), "days")
    await page.get_by_role("link", name="25 November 2026").click()
    await expect(page.locator(".slider")).to_be_hidden()
    await page.locator("#at").fill("19:00:00")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator(".as-of")).to_contain_text("At 19:00:00 UTC")
    assert await shown(page) == await moment(place.desk, 19 * 3600)
    await page.get_by_role("link", name="See them one by one").click()
    await page.locator("tbody a").first.click()
    await expect(page.locator("[data-state=refused]")).to_be_visible()
    await expect(page.locator(".timeline .headline").first).to_contain_text("Refused:")


async def test_a_days_decisions_lead_to_a_calls_timeline(windows: Windows, place: Office) -> None:
    page = await signed_in(windows, await windows.open(), f"days/{DAY}/decisions")
    row = page.locator("tbody tr", has_text="Settled").first
    id = await row.get_by_role("link").inner_text()
    await row.get_by_role("link").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(id)
    kinds = [await one.get_attribute("class") for one in await page.locator(".timeline li").all()]
    assert (kinds[0], kinds[-1]) == ("held", "end")
    events = (await place.desk.get(f"/v1/holds/{id}/events"))["events"]
    seqs = [await one.get_attribute("data-seq") for one in await page.locator(".timeline li").all()]
    assert seqs == [str(event["seq"]) for event in events]


async def test_a_look_that_is_overtaken_is_never_shown(windows: Windows, place: Office) -> None:
    page = await signed_in(windows, await windows.open(), f"days/{DAY}")
    await expect(page.locator(".moment")).to_be_visible()
    slider = page.get_by_role("slider")
    for hour in (3, 9, 12, 18):
        await slider.fill(str(hour * 3600))
    await expect(page.locator(".as-of")).to_contain_text("At 18:00:00 UTC")
    assert await shown(page) == await moment(place.desk, 18 * 3600)


@pytest.mark.skipif(not AXE.exists(), reason="axe-core was not fetched: make sdks")
@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (1100, "dark"), (360, "light")])
async def test_nothing_stands_in_anybodys_way(windows: Windows, width: int, scheme: Literal["light", "dark"]) -> None:
    page = await signed_in(windows, await windows.open(width=width, scheme=scheme), "days")
    paths = ("days", f"days/{DAY}?at=12:00:00", f"days/{DAY}/decisions", "holds/1125-001")
    for path in paths:
        await page.goto(f"{windows.stage.url}{path}")
        assert await violations(page) == [], path
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{path} is {wide} pixels wide"
