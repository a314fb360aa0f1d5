"""The pages of the past over a real wallet: page, `/v1/status`, `purse audit` and `--at` say the same."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from browser.answers import command, get, post
from browser.window import CHROMIUM
from playwright.async_api import Browser, Page, expect
from running_purse import running_purse

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux"),
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"there is no {CHROMIUM} to look through"),
]
WAIT_MS = 60_000


async def figures(page: Page) -> dict[str, str]:
    budgets = await page.locator(".moment [data-budget]").all()
    return {str(await one.get_attribute("data-budget")): str(await one.get_attribute("data-used")) for one in budgets}


async def test_page_status_and_audit_say_the_same_of_a_real_day(browser: Browser, tmp_path: Path) -> None:
    with running_purse(tmp_path / "data") as wallet:
        labels = {"provider": "jev", "user": "alice", "model": "m1"}
        for n in range(4):
            assert post(wallet, "/v1/holds", {"id": f"call-{n}", "amounts": {"usd": "0.2"}, "labels": labels}) == 201
            assert post(wallet, f"/v1/holds/call-{n}/settle", {"amounts": {"usd": "0.11"}}) == 200
        assert post(wallet, "/v1/holds", {"id": "open", "amounts": {"usd": "0.3"}, "labels": labels}) == 201
        assert post(wallet, "/v1/holds", {"id": "much", "amounts": {"usd": "0.5"}, "labels": labels}) == 429
        status = get(wallet, "/v1/status")
        day = next(one["period"] for one in status["budgets"] if one["name"] == "jev")
        context = await browser.new_context()
        page = await context.new_page()
        page.set_default_timeout(WAIT_MS)
        await page.goto(f"{wallet.url}/sign-in?then=/days")
        await page.fill("input[name=key]", wallet.key)
        await page.click("main button[type=submit]")
        cell = page.locator(f"td a[href='/days/{day}']")
        await expect(cell).to_contain_text("jev 74 %", timeout=WAIT_MS)
        await expect(cell).to_contain_text("1 refused")
        await expect(cell).to_contain_text("running")
        await cell.click()
        budget = page.locator("article.panel[data-budget=jev]")
        await expect(budget).to_contain_text("0.74 of 1 usd")
        used = {one["name"]: one["used"] for one in status["budgets"]}
        audited = {one["budget"]: one["used"] for one in command(wallet, "audit", day)["budgets"]}
        assert (used["jev"], audited["jev"]) == ("0.74", "0.74")

        now = datetime.now(UTC)
        clock = now.strftime("%H:%M:%S") if now.date().isoformat() == day else "23:59:59"
        await page.goto(f"{wallet.url}/days/{day}?at={clock}")
        at = command(wallet, "audit", "--at", f"{day}T{clock}Z")
        await expect(page.locator(".as-of")).to_contain_text(f"event #{at['upto']:,}, told #{at['told']:,}")
        assert await figures(page) == {one["budget"]: one["used"] for one in at["budgets"] if one["each"] is None}

        await page.goto(f"{wallet.url}/holds/call-2")
        await expect(page.locator(".timeline li")).to_have_count(2, timeout=WAIT_MS)
        receipts = [event["receipt"]["chain"] for event in command(wallet, "audit", "--hold", "call-2")["events"]]
        shown = [await one.get_attribute("title") for one in await page.locator(".proof-line code").all()]
        assert shown == receipts
        await page.goto(f"{wallet.url}/holds/much")
        await expect(page.locator(".timeline .headline")).to_have_text(re.compile("^Refused: other calls held"))
        await context.close()
