"""Takes the pictures in `docs/screenshots`: `make screenshots`, when a page looks different."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, Page, ViewportSize, async_playwright, expect

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from browser.office import office  # noqa: E402
from browser.stage import Stage, dollars, neurons, staged, standing  # noqa: E402
from browser.window import CHROMIUM, FLAGS  # noqa: E402
from desk_client import KEY, Desk, open_desk  # noqa: E402
from past import PastPurse, weeks  # noqa: E402

FOLDER = ROOT / "docs" / "screenshots"
DESK: ViewportSize = {"width": 1000, "height": 720}
WIDE: ViewportSize = {"width": 1200, "height": 900}
OFFICE: ViewportSize = {"width": 1240, "height": 1480}
PHONE: ViewportSize = {"width": 390, "height": 720}

Scheme = Literal["light", "dark"]
LOOKS: tuple[tuple[str, Scheme], ...] = (("light", "light"), ("dark", "dark"), ("phone", "light"))
TODAY = {"budget": ("/budget", ".fresh .badge:not([data-state=stale])")}
PAST = {
    "days": ("/days", ".calendar"),
    "day": ("/days/2026-11-25?at=16:40:00", ".moment"),
    "hold": ("/holds/1125-001", ".timeline"),
}
"""Name of the picture -> the page, and what is there once it is whole."""


async def main() -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        async with staged() as stage:
            await picture(browser, stage, "light", viewport=DESK, scheme="light")
            await picture(browser, stage, "dark", viewport=DESK, scheme="dark")
            await picture(browser, stage, "phone", viewport=PHONE, scheme="light")
        for name, scheme in LOOKS:
            async with office() as desk:
                await operators(browser, desk, TODAY, name, OFFICE, scheme)
            async with past() as desk:
                await operators(browser, desk, PAST, name, WIDE, scheme)
        await browser.close()


async def picture(browser: Browser, stage: Stage, name: str, *, viewport: ViewportSize, scheme: Scheme) -> None:
    """Of the strangers' page."""
    stage.status = standing(neurons(), dollars())
    page = await window(browser, name, viewport=viewport, scheme=scheme)
    await page.goto(stage.url)
    await stage.listeners(1)
    await stage.tell(stage.status)
    await expect(page.locator("[data-at=badge]")).to_have_text("live")
    await page.screenshot(path=FOLDER / f"{name}.png", full_page=name != "phone")
    stage.cut()
    await page.close()
    await stage.listeners(0)


async def operators(
    browser: Browser, desk: Desk, pages: Mapping[str, tuple[str, str]], name: str, wide: ViewportSize, scheme: Scheme
) -> None:
    """Of operators' pages: today's as far down as who spent it, those of the past to their end."""
    page = await window(browser, name, viewport=PHONE if name == "phone" else wide, scheme=scheme)
    address = str(desk.client.make_url("")).rstrip("/")
    await page.goto(f"{address}/sign-in")
    await page.get_by_label("Key", exact=True).fill(KEY)
    await page.get_by_role("button", name="Sign in").click()
    for of, (path, whole) in pages.items():
        await page.goto(f"{address}{path}")
        await desk.purse.show()
        await expect(page.locator(whole).first).to_be_visible()
        await page.screenshot(path=FOLDER / f"{of}-{name}.png", full_page=name != "phone" and pages is PAST)
    await page.close()


async def window(browser: Browser, name: str, *, viewport: ViewportSize, scheme: Scheme) -> Page:
    return await browser.new_page(
        viewport=viewport, color_scheme=scheme, timezone_id="America/New_York", reduced_motion="reduce",
        device_scale_factor=1.5 if name == "phone" else 1,
    )  # fmt: skip


@asynccontextmanager
async def past() -> AsyncIterator[Desk]:
    """The application with some weeks behind it."""
    purse = PastPurse(weeks())
    async with open_desk(purse=purse, looking=purse.looking) as desk:
        await purse.show()
        try:
            yield desk
        finally:
            desk.board.close()


if __name__ == "__main__":
    asyncio.run(main())
