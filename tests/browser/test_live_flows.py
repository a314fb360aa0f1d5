"""Everything people do on the pages, on one real wallet while `purse drive` spends from it: no figure is ever wrong.

All that any page shows from first to last is written down, and in the end held against the record.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest
from browser.answers import command, get
from browser.at_sequence import NS, Event, events
from browser.readings import WAIT_S, Reading, Readings, Shown
from browser.window import CHROMIUM
from playwright.async_api import Browser, BrowserContext, Page, expect
from running_purse import RunningPurse, environment, running_purse

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux"),
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"there is no {CHROMIUM} to look through"),
    pytest.mark.timeout(600),
]

WAIT_MS = WAIT_S * 1_000
QUESTION = "How much of the purse is left?"
PLAN = """
[ask]
upstream = "built-in"
max_tokens = 120
[budgets.traffic]
unit = "usd"
limit = "50"
per = "total"
public = "amounts"
where = { provider = "trace" }
[budgets.minute]
unit = "usd"
limit = "0.5"
per = "minute"
public = "amounts"
where = { provider = "trace" }
[budgets.asks]
unit = "usd"
limit = "0.175"
per = "total"
public = "amounts"
where = { provider = "jev" }
"""
"""`asks` has room for one answer; `minute` is about half used by the traffic of a whole minute."""

ROWS, ROWS_A_SECOND = 30_000, 15
SEQUENCES_MIN = 12  # that each page must have shown before its figures are judged
MOMENTS_MAX = 5  # that are tried until one is an event's own
POLL_S = 0.2


@dataclass
class Scene:
    """A wallet under load, `/` as a stranger has it open and `/budget` as an operator has, from first to last."""

    wallet: RunningPurse
    browser: Browser
    readings: Readings = field(default_factory=Readings)
    documents: list[dict[str, Any]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    async def context(self) -> BrowserContext:
        """A visitor of their own, whose pages are watched."""
        context = await self.browser.new_context(timezone_id="UTC", reduced_motion="reduce")
        self.contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        context.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        await self.readings.watch(context)
        return context

    async def stranger(self) -> Page:
        page = await (await self.context()).new_page()
        await page.goto(self.wallet.url)
        return page

    async def open(self) -> None:
        """The two pages that stay open."""
        self.home = await self.stranger()
        self.desk = await (await self.context()).new_page()
        await self.desk.goto(f"{self.wallet.url}/sign-in?then=/budget")
        await self.desk.fill("input[name=key]", self.wallet.key)
        await self.desk.click("main button[type=submit]")

    def shown(self) -> list[list[Reading]]:
        """What each of the two has shown so far."""
        return [self.readings.of(self.home, "/"), self.readings.of(self.desk, "/budget")]

    async def until_both(self, seen: Callable[[list[Reading]], bool], *, wait_s: float = WAIT_S) -> None:
        """Wait until `seen` is true of what each of the two has shown."""
        await self.readings.until(lambda: all(map(seen, self.shown())), wait_s=wait_s)

    async def poll(self) -> None:
        """Read `/v1/status` again and again, whatever happens to the web."""
        while True:
            with suppress(OSError, http.client.HTTPException, ValueError):  # it was killed, or is not ready again
                self.documents.append(await asyncio.to_thread(get, self.wallet, "/v1/status"))
            await asyncio.sleep(POLL_S)

    async def close(self) -> None:
        for context in self.contexts:
            await context.close()


@pytest.fixture(scope="module")
async def scene(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    folder = tmp_path_factory.mktemp("purse")
    (folder / "purse.toml").write_text(PLAN)
    with running_purse(folder / "data", "--config", str(folder / "purse.toml")) as wallet:
        scene = Scene(wallet, browser)
        async with traffic(wallet, folder):
            await scene.open()
            polling = asyncio.create_task(scene.poll())
            yield scene
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
            await scene.close()


@asynccontextmanager
async def traffic(wallet: RunningPurse, folder: Path) -> AsyncIterator[None]:
    """`purse drive` for as long as the block runs, at the pace of a trace that lasts longer than any test."""
    trace = folder / "trace.csv"
    began = datetime(2026, 11, 16, 18, 15, 46, tzinfo=UTC)
    moments = (began + timedelta(seconds=n / ROWS_A_SECOND) for n in range(ROWS))
    rows = (f"{at:%Y-%m-%d %H:%M:%S.%f},{(n % 7 + 1) * 111},{n % 130 * 4}" for n, at in enumerate(moments))
    trace.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows, ""]))
    options = ("--speed", "1", "--concurrency", "16", "--label", "provider=trace", "--json")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "commonpurse", "drive", str(trace), *options, "--url", wallet.url, "--key", wallet.key,
        env=environment(),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        assert process.returncode is None, "the traffic ended before the tests did"
        process.send_signal(signal.SIGINT)
        said, _ = await asyncio.wait_for(process.communicate(), WAIT_S)
    told = json.loads(said)
    assert (told["stopped"], told["errors"], told["unequal"], told["unsettled"]) == ("Ctrl-C", 0, 0, 0), told
    assert told["due"] == told["settled"], told


# --- the flows --------------------------------------------------------------------------------------------------------


async def test_an_answer_streams_and_who_does_not_fit_is_told_why(scene: Scene) -> None:
    first, second = await scene.stranger(), await scene.stranger()
    for page in (first, second):
        await page.get_by_label("Your question").fill(QUESTION)
        await expect(page.locator("#estimate")).to_contain_text("Could use up to", timeout=WAIT_MS)
    await first.get_by_role("button", name="Ask", exact=True).click()
    await expect(first.locator("#answer")).to_contain_text("You asked", timeout=WAIT_MS)
    await second.get_by_role("button", name="Ask", exact=True).click()  # all is held for the first, or spent by now
    refusal = second.locator("#refusal")
    await expect(refusal).to_have_text(
        re.compile(r"^Other calls are using what is left\.|It does not reset\.$"), timeout=WAIT_MS
    )
    await expect(refusal).to_be_visible()
    await expect(second.get_by_label("Your question")).to_have_value(QUESTION)
    await expect(second.locator("#answer")).to_have_text("")
    await expect(first.locator("#answer")).to_contain_text("this box asks that one instead.", timeout=WAIT_MS)
    await expect(first.get_by_label("Your question")).to_have_value(QUESTION)
    await scene.until_both(lambda readings: paid(readings, "asks"))


def paid(readings: list[Reading], budget: str) -> bool:
    """Whether something of this budget is spent by now, and nothing of it held."""
    lines = readings[-1].budgets[budget].lines if readings else None
    return lines is not None and lines["spent"][0] > 0 and not lines["held"][0]


async def test_a_freeze_is_read_by_strangers_until_it_is_lifted(scene: Scene) -> None:
    frozen = scene.home.locator("[data-at=frozen]")
    await expect(frozen).to_be_hidden()
    tab = await scene.desk.context.new_page()
    await tab.goto(f"{scene.wallet.url}/budget")
    await tab.locator("summary", has_text="Freeze").click()
    await tab.get_by_label("What", exact=True).fill("all")
    await tab.get_by_label("Reason").first.fill("Looking into a spike")
    await tab.get_by_role("button", name="Freeze …").click()
    await tab.get_by_role("button", name="Freeze it").click()
    await expect(frozen).to_have_text(
        "Frozen: new calls are refused until an operator lifts it. Reason: Looking into a spike. "
        "Calls in progress still settle.",
        timeout=WAIT_MS,
    )
    await expect(scene.desk.get_by_role("rowheader", name="Frozen")).to_be_visible(timeout=WAIT_MS)
    await tab.get_by_role("button", name="Lift", exact=True).click()
    await tab.get_by_role("button", name="Lift the freeze").click()
    await expect(frozen).to_be_hidden(timeout=WAIT_MS)
    await expect(scene.desk.get_by_text("Nothing is frozen, cooling or revoked.")).to_be_visible(timeout=WAIT_MS)
    await tab.close()


async def test_both_pages_come_back_by_themselves_when_the_web_was_killed(scene: Scene) -> None:
    await scene.until_both(lambda readings: bool(readings) and readings[-1].state == "live")
    killed_after = max(one.seq for one in scene.readings.all)
    before = [len(readings) for readings in scene.shown()]

    def since() -> list[list[Reading]]:
        return [readings[already:] for readings, already in zip(scene.shown(), before, strict=True)]

    scene.wallet.kill("web")
    await scene.readings.until(lambda: all(came_back(readings, killed_after) for readings in since()))
    lost = [one.badge for readings in since() for one in readings if one.state == "stale"]
    assert all(badge.startswith("not live") for badge in lost), lost


def came_back(readings: list[Reading], seq: int) -> bool:
    """Whether the page said that it is not live, and then that it is, with figures newer than `seq`."""
    lost = next((n for n, one in enumerate(readings) if one.state == "stale"), len(readings))
    return any(one.state == "live" and one.seq > seq for one in readings[lost:])


async def test_a_minute_begins_anew_before_the_eyes_of_both(scene: Scene) -> None:
    await scene.until_both(reset, wait_s=3 * WAIT_S)


def reset(readings: list[Reading]) -> bool:
    """Whether a minute with less on it followed one with more."""
    shown = [one.budgets["minute"] for one in readings if one.budgets["minute"].lines]
    minutes = [list(same) for _, same in groupby(shown, key=lambda one: one.resets)]
    spent = [[one.lines["spent"][0] for one in minute if one.lines] for minute in minutes]
    return any(old[-1] > new[0] for old, new in pairwise(spent))


# --- the figures ------------------------------------------------------------------------------------------------------


async def test_every_figure_that_was_shown_is_the_records(scene: Scene, tmp_path: Path) -> None:
    await scene.until_both(lambda readings: len({one.seq for one in readings}) >= SEQUENCES_MIN)
    await scene.readings.until(lambda: len({one["seq"] for one in scene.documents}) >= SEQUENCES_MIN)
    readings, shown, documents = list(scene.readings.all), scene.shown(), list(scene.documents)
    record = tmp_path / "record.jsonl"
    await asyncio.to_thread(command, scene.wallet, "export", "--raw", str(record))
    found = await events(record, {one.seq for one in readings} | {one["seq"] for one in documents})

    assert scene.readings.unreadable == []
    assert [why for one in readings for why in wrong_in(one, found[one.seq])] == []
    assert [why for one in documents for why in wrong_in_document(one, found[one["seq"]])] == []
    for one in shown:
        seqs = [reading.seq for reading in one]
        assert seqs == sorted(seqs), "figures went back in time"
        await audited(scene.wallet, seqs, found)
    assert [one for one in scene.complaints if not one.startswith("Failed to load resource")] == []


def wrong_in(reading: Reading, event: Event) -> list[str]:
    assert set(reading.budgets) == {"traffic", "minute", "asks"}
    return [
        f"{reading.path} #{reading.seq}: {why}" for one in reading.budgets.values() for why in event.differences(one)
    ]


def wrong_in_document(document: dict[str, Any], event: Event) -> list[str]:
    return [f"/v1/status: {why}" for one in document["budgets"] for why in event.differences(told(one))]


def told(budget: dict[str, Any]) -> Shown:
    """A budget of `/v1/status` as a page would show it."""
    lines = {
        line: (Decimal(budget[name]), Decimal(str(budget[f"{name}_pct"])))
        for line, name in (("spent", "settled"), ("others", "extra"), ("held", "held"))
    }
    used = Decimal(str(budget["used_pct"]))
    lines["left"] = (max(Decimal(0), Decimal(budget["remaining"])), max(Decimal(0), 100 - used))
    until = re.search(r"T(\d\d:\d\d)", budget["resets_at"] or "")
    return Shown(budget["name"], f"{int(used)} % used", until[1] if until else "", lines)


async def audited(wallet: RunningPurse, seqs: list[int], found: dict[int, Event]) -> None:
    """`purse audit --at` says the same of the newest event that was shown and has a microsecond of its own."""
    for seq in sorted(set(seqs), reverse=True)[:MOMENTS_MAX]:
        event = found[seq]
        second, ns = divmod(event.at, NS)
        moment = f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{min(999_999, -(-ns // 1_000)):06}Z"
        said = await asyncio.to_thread(command, wallet, "audit", "--at", moment)
        if said["upto"] == seq:
            lines = {
                one["budget"]: [Decimal(one[name]) for name in ("settled", "extra", "held")] for one in said["budgets"]
            }
            assert lines == event.now
            return
    raise AssertionError("no event that was shown could be found by its moment")
