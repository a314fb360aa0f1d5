"""The page over a real wallet: what a caller holds and settles is seen, within a second where nothing else runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from browser.answers import post
from browser.window import CHROMIUM
from playwright.async_api import Browser, expect
from running_purse import running_purse

SEEN_WITHIN_MS = 1_000 if os.environ.get("PURSE_SOAK") else 15_000

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux"),
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"there is no {CHROMIUM} to look through"),
]


async def test_the_meter_moves_with_a_hold_and_with_its_settle(browser: Browser, tmp_path: Path) -> None:
    with running_purse(tmp_path / "data") as wallet:
        page = await browser.new_page()
        await page.goto(wallet.url)
        jev = page.locator("[data-budget=jev]")
        await expect(jev).to_contain_text("0 % used")
        held = post(wallet, "/v1/holds", {"id": "x", "amounts": {"usd": "0.30"}, "labels": {"provider": "jev"}})
        assert held == 201
        await expect(jev).to_contain_text("30 % used", timeout=SEEN_WITHIN_MS)
        assert post(wallet, "/v1/holds/x/settle", {"amounts": {"usd": "0.12"}}) == 200
        await expect(jev).to_contain_text("12 % used", timeout=SEEN_WITHIN_MS)
        await page.close()
