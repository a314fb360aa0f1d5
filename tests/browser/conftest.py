"""One browser for the session, one stage and one watched window for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from browser.stage import Stage, staged
from browser.window import CHROMIUM, FLAGS, Windows
from playwright.async_api import Browser, async_playwright, expect

expect.set_options(timeout=20_000)  # for a machine that is busy with other things


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        await browser.close()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


@pytest.fixture
async def windows(browser: Browser, stage: Stage) -> AsyncIterator[Windows]:
    """Opens pages on the stage, and fails the test if any of them complained."""
    windows = Windows(browser, stage)
    yield windows
    await windows.close()
    assert windows.complaints == []
