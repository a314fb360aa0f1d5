"""Takes the pictures in `docs/screenshots`: `python tests/browser/screenshots.py`, when the page looks different."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, ViewportSize, async_playwright, expect

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from browser.office import KEY, office  # noqa: E402
from browser.stage import Stage, dollars, neurons, staged, standing  # noqa: E402
from browser.window import CHROMIUM, FLAGS  # noqa: E402

FOLDER = ROOT / "docs" / "screenshots"
DESK: ViewportSize = {"width": 1000, "height": 720}
OFFICE: ViewportSize = {"width": 1240, "height": 1480}
PHONE: ViewportSize = {"width": 390, "height": 720}


async def main() -> None:
    async with staged() as stage, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        await picture(browser, stage, "light", viewport=DESK, scheme="light")
        await picture(browser, stage, "dark", viewport=DESK, scheme="dark")
        await picture(browser, stage, "phone", viewport=PHONE, scheme="light")
        for scheme in ("light", "dark"):
            await budget(browser, scheme)
        await browser.close()


async def budget(browser: Browser, scheme: Literal["light", "dark"]) -> None:
    """The operators' page, as far down as who spent it."""
    async with office() as desk:
        page = await browser.new_page(viewport=OFFICE, color_scheme=scheme, reduced_motion="reduce")
        await page.goto(str(desk.client.make_url("/sign-in")))
        await page.get_by_label("Key", exact=True).fill(KEY)
        await page.get_by_role("button", name="Sign in").click()
        await desk.purse.show()
        await expect(page.locator(".fresh .badge")).to_have_text("live")
        await page.screenshot(path=FOLDER / f"budget-{scheme}.png")
        await page.close()


async def picture(
    browser: Browser, stage: Stage, name: str, *, viewport: ViewportSize, scheme: Literal["light", "dark"]
) -> None:
    stage.status = standing(neurons(), dollars())
    page = await browser.new_page(
        viewport=viewport, color_scheme=scheme, timezone_id="America/New_York", reduced_motion="reduce",
        device_scale_factor=1.5 if name == "phone" else 1,
    )  # fmt: skip
    await page.goto(stage.url)
    await stage.listeners(1)
    await stage.tell(stage.status)
    await expect(page.locator("[data-at=badge]")).to_have_text("live")
    await page.screenshot(path=FOLDER / f"{name}.png", full_page=name != "phone")
    stage.cut()
    await page.close()
    await stage.listeners(0)


if __name__ == "__main__":
    asyncio.run(main())
