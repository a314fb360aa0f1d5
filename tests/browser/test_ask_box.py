"""The ask box over a real wallet, with the stand-in that comes with it: estimate, ask, watch the meter, be refused."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from browser.window import CHROMIUM
from playwright.async_api import Browser, Page, expect
from running_purse import running_purse

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux"),
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"there is no {CHROMIUM} to look through"),
]

QUESTION = "How much of the purse is left?"
ONE_ANSWER = """
[ask]
upstream = "built-in"
max_tokens = 120
[budgets.small]
unit = "usd"
limit = "0.175"
per = "day"
"""
"""Room for one answer: what it really costs leaves less than the next one could."""


@asynccontextmanager
async def looking(browser: Browser, url: str, complaints: list[str]) -> AsyncIterator[Page]:
    page = await browser.new_page()
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    await page.goto(url)
    yield page
    await page.close()


async def test_a_visitor_asks_and_sees_what_it_takes(browser: Browser, tmp_path: Path) -> None:
    complaints = list[str]()
    with running_purse(tmp_path / "data") as wallet:
        async with looking(browser, wallet.url, complaints) as page:
            ask = page.get_by_role("button", name="Ask", exact=True)
            await expect(ask).to_be_disabled()
            await page.get_by_label("Your question").fill(QUESTION)
            await expect(page.locator("#estimate")).to_contain_text("Could use up to")
            await ask.click()
            await expect(page.get_by_role("button", name="Stop")).to_be_visible()
            await expect(page.locator("#answer")).to_contain_text("this box asks that one instead.")
            await expect(ask).to_be_enabled()
            await expect(page.get_by_label("Your question")).to_have_value(QUESTION)
            await expect(page.locator("[data-budget=jev]")).to_contain_text("2 % used")
            await expect(page.locator("[data-budget=neurons]")).to_contain_text("2 % used")
    assert complaints == []


async def test_stopping_an_answer_pays_for_what_was_said_and_frees_the_rest(browser: Browser, tmp_path: Path) -> None:
    with running_purse(tmp_path / "data") as wallet:
        async with looking(browser, wallet.url, []) as page:
            await page.get_by_label("Your question").fill(QUESTION)
            await page.get_by_role("button", name="Ask", exact=True).click()
            await expect(page.locator("#answer")).to_contain_text("You asked")
            await page.get_by_role("button", name="Stop").click()
            await expect(page.locator("#refusal")).to_contain_text("Stopped")
            held = page.locator("[data-budget=jev] td[data-at=held]")
            await expect(held).to_have_text("0.0 %")
            await expect(page.locator("[data-budget=jev] td[data-at=spent]")).not_to_have_text("0.0 %")


async def test_what_does_not_fit_any_more_is_said_and_the_draft_stays(browser: Browser, tmp_path: Path) -> None:
    config = tmp_path / "purse.toml"
    config.write_text(ONE_ANSWER)
    with running_purse(tmp_path / "data", "--config", str(config)) as wallet:
        async with looking(browser, wallet.url, []) as page:
            ask = page.get_by_role("button", name="Ask", exact=True)
            await page.get_by_label("Your question").fill(QUESTION)
            await ask.click()
            await expect(page.locator("#answer")).to_contain_text("this box asks that one instead.")
            await expect(page.locator("#estimate")).to_contain_text("does not cover this question")
            await expect(ask).to_be_disabled()
            await expect(page.get_by_label("Your question")).to_have_value(QUESTION)
