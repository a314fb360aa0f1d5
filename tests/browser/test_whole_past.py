"""The pages of the past over a real wallet: page, `/v1/status`, `purse audit` and `--at` say the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from browser.window import CHROMIUM
from playwright.async_api import Browser, Page, expect
from running_purse import RunningPurse, running_purse

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux"),
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"there is no {CHROMIUM} to look through"),
]
WAIT_MS = 60_000


def get(wallet: RunningPurse, path: str) -> Any:
    request = urllib.request.Request(f"{wallet.url}{path}", headers={"Authorization": f"Bearer {wallet.key}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def post(wallet: RunningPurse, path: str, body: dict[str, object]) -> int:
    headers = {"Authorization": f"Bearer {wallet.key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{wallet.url}{path}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def audit(wallet: RunningPurse, *arguments: str) -> Any:
    """What `purse audit` says, in a process of its own beside the wallet."""
    command = [sys.executable, "-m", "commonpurse", "audit", *arguments, "--data", str(wallet.data), "--json"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(said.stdout)


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
        audited = {one["budget"]: one["used"] for one in audit(wallet, day)["budgets"]}
        assert (used["jev"], audited["jev"]) == ("0.74", "0.74")

        now = datetime.now(UTC)
        clock = now.strftime("%H:%M:%S") if now.date().isoformat() == day else "23:59:59"
        await page.goto(f"{wallet.url}/days/{day}?at={clock}")
        at = audit(wallet, "--at", f"{day}T{clock}Z")
        await expect(page.locator(".as-of")).to_contain_text(f"event #{at['upto']:,}, told #{at['told']:,}")
        assert await figures(page) == {one["budget"]: one["used"] for one in at["budgets"] if one["each"] is None}

        await page.goto(f"{wallet.url}/holds/call-2")
        await expect(page.locator(".timeline li")).to_have_count(2, timeout=WAIT_MS)
        receipts = [event["receipt"]["chain"] for event in audit(wallet, "--hold", "call-2")["events"]]
        shown = [await one.get_attribute("title") for one in await page.locator(".proof-line code").all()]
        assert shown == receipts
        await page.goto(f"{wallet.url}/holds/much")
        await expect(page.locator(".timeline .headline")).to_have_text(re.compile("^Refused: other calls held"))
        await context.close()
