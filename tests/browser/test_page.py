"""The page as visitors see it, in a real browser: figures, words, and that it never says more than it knows."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from browser.stage import HOUR, MINUTE, NOON, SECOND, Stage, dollars, neurons, standing
from browser.window import CHROMIUM, Windows
from playwright.async_api import Locator, Page, expect

from engine.core.documents import Figure, Reading, Status
from engine.core.messages import (
    Frost,
)

pytestmark = pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"there is no {CHROMIUM} to look through")

USED_UP = neurons(settled=10_000_000_000, extra=0, held=0, first_exhausted_at=NOON - 2 * HOUR)
ALL_HELD = neurons(settled=9_000_000_000, extra=0, held=1_000_000_000)
PAUSED = Frost("all", "checking the prices.", NOON - MINUTE)


def part(page: Page, name: str, budget: str | None = None) -> Locator:
    inside = page.locator(f"[data-budget={budget}]") if budget else page.locator("#window")
    return inside.locator(f"[data-at={name}]")


async def live(stage: Stage, page: Page, status: Status | None = None) -> None:
    """Make the page live with this document, or with what the stage stands at."""
    await stage.listeners(1)
    told = status or stage.status
    assert told is not None
    await stage.tell(told)
    await expect(part(page, "badge")).to_have_text("live")


async def expect_stale(page: Page) -> None:
    await expect(part(page, "badge")).to_have_text("not live since 17:47:30 UTC")


# --- figures ----------------------------------------------------------------------------------------------------------


async def test_the_figures_are_there_without_javascript(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons(), dollars())
    page = await windows.open(script=False)
    headline = page.locator("[data-budget=neurons] .headline")
    await expect(headline).to_have_text("70 % used. Resets 00:00 UTC, in 6 h 12 min.")
    await expect(page.locator("[data-budget=neurons] tbody")).to_have_text(
        "Spent 52.8 % Others on the account from the provider\u2019s own figure 6.2 % "
        "Held for calls in progress the unused part comes back when the call ends 11.0 %",
        use_inner_text=True,
    )
    await expect(page.locator("[data-budget=jev] tfoot")).to_have_text("Left 0.64686 64.7 %", use_inner_text=True)
    await expect(page.locator(".fresh")).to_have_text(
        "as of 17:47:12 UTC, event #123,456 · Reload the page for newer figures.", use_inner_text=True
    )
    await expect(part(page, "badge")).to_be_hidden()
    assert await widths(page, "neurons") == pytest.approx([0.528, 0.062, 0.110], abs=0.002)


async def widths(page: Page, budget: str) -> list[float]:
    """How wide the spent, others and held segments are, as parts of the meter."""
    whole = await page.locator(f"[data-budget={budget}] .meter").bounding_box()
    assert whole is not None
    boxes = [await part(page, f"bar-{line}", budget).bounding_box() for line in ("spent", "others", "held")]
    return [box["width"] / whole["width"] if box else 0 for box in boxes]


async def test_strangers_are_told_no_amounts(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open()
    await live(stage, page)
    assert "5281" not in await page.content()
    await expect(part(page, "spent-amount", "neurons")).to_be_hidden()


async def test_a_live_update_moves_the_meter(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open()
    await live(stage, page)
    await stage.tell(standing(neurons(settled=6_000_000_000, held=2_000_000_000), seq=123_457))
    await expect(part(page, "used", "neurons")).to_have_text("86 % used.")
    await expect(part(page, "held", "neurons")).to_have_text("20.0 %")
    await expect(part(page, "as-of")).to_have_text("as of 17:47:12 UTC, event #123,457")
    meter = page.get_by_role("meter", name="neurons")
    await expect(meter).to_have_attribute("aria-valuenow", "86.2")
    await expect(meter).to_have_attribute(
        "aria-valuetext",
        "86.2 % used: 60.0 % spent, 6.2 % others on the account, 20.0 % held for calls in progress, 13.8 % left",
    )
    assert await widths(page, "neurons") == pytest.approx([0.6, 0.062, 0.2], abs=0.002)


STANDINGS = {
    "usual": standing(neurons(), dollars()),
    "used up": standing(USED_UP, dollars(settled=1_212_000_000)),
    "all held": standing(ALL_HELD),
    "a little": standing(neurons(settled=70_000_000, extra=0, held=0, source="", observed=None)),
    "frozen": standing(frozen=[PAUSED]),
    "one frozen": standing(neurons(), dollars(), frozen=[Frost("jev", "", NOON, NOON + 30 * HOUR)]),
    "one user frozen": standing(frozen=[Frost("user=alice", "a secret", NOON)]),
    "settling": standing(neurons(earlier_open=1), dollars(earlier_open=3)),
    "settling months": standing(neurons(per="month", period="2026-11", resets_at=NOON + 50 * HOUR, earlier_open=1)),
    "no figure from the source": standing(neurons(extra=0, observed=None)),
    "old figure": standing(neurons(observed=Figure("cloudflare", 1, NOON - 91 * SECOND))),
    "old figure, read again": standing(
        neurons(observed=Figure("cloudflare", 1, NOON - HOUR), reading=Reading("cloudflare", 60, NOON - 150 * SECOND))
    ),
    "unreadable": standing(
        neurons(observed=Figure("cloudflare", 1, NOON - HOUR), reading=Reading("cloudflare", 30, 0, "status 500")),
        dollars(source="openai", reading=Reading("openai", 30, 0, "status 500")),
    ),
    "no longer fits": standing(neurons(first_exhausted_at=NOON - HOUR)),
    "in all": standing(dollars(per="total", period="total", resets_at=2**63 - 1, settled=1_000_000_000)),
    "no limit at all": standing(dollars(limit=0, settled=0, held=0)),
    "over": standing(neurons(), dollars(resets_at=NOON)),
    "large": standing(dollars(limit=12_345_678_900_000_000, settled=1_234_567_000_000_000, held=1), seq=12_345_678),
}


@pytest.mark.parametrize("standing_of", STANDINGS)
async def test_the_script_says_what_the_server_says(stage: Stage, windows: Windows, standing_of: str) -> None:
    stage.status = STANDINGS[standing_of]
    drawn = await said(await windows.open(script=False))
    page = await windows.open(clock=True)
    await live(stage, page, STANDINGS[standing_of])
    assert await said(page) == drawn


async def said(page: Page) -> list[str]:
    """All that the window says: its visible text, and what the meters are made of."""
    found: list[str] = await page.evaluate(_SAID)
    assert len(found) > 12
    return [" ".join(text.split()) for text in found]


_SAID = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const texts = all("#window h3, #window .headline, #window .note, #window tr, [data-at=as-of]");
  const names = ["x", "width", "aria-valuenow", "aria-valuetext"];
  const meters = all("[role=meter], [role=meter] rect").flatMap((part) => names.map((name) => part.getAttribute(name)));
  return [...texts.filter((text) => text.checkVisibility()).map((text) => text.innerText), ...meters.map(String)];
}"""


async def test_a_changed_plan_draws_the_window_anew(stage: Stage, windows: Windows) -> None:
    stage.status = None
    page = await windows.open()
    await expect(page.locator(".empty")).to_contain_text("No figures yet.")
    await stage.listeners(1)
    await stage.tell(standing(dollars()))
    await expect(part(page, "used", "jev")).to_have_text("35 % used.")
    await stage.tell(standing(dollars(), seq=123_458))
    await expect(part(page, "badge")).to_have_text("live")


# --- words ------------------------------------------------------------------------------------------------------------


async def test_the_reset_is_told_in_the_visitors_time_too(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open(zone="America/New_York")
    headline = page.locator(".headline")
    await expect(headline).to_have_text("70 % used. Resets 00:00 UTC (19:00 your time), in 6 h 12 min.")


async def test_used_up_is_said_in_words(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open()
    await live(stage, page)
    await expect(part(page, "full", "neurons")).to_be_hidden()
    await stage.tell(standing(USED_UP))
    await expect(part(page, "full", "neurons")).to_have_text(
        "This shared budget is used up. New calls are refused until it resets. It was first exhausted at 15:47 UTC."
    )
    await stage.tell(standing(ALL_HELD))
    await expect(part(page, "full", "neurons")).to_have_text(
        "All that is left is held for calls in progress. The unused part comes back when they end."
    )


async def test_a_freeze_is_said_in_words_with_its_reason(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open()
    await live(stage, page)
    await stage.tell(standing(frozen=[PAUSED]))
    await expect(part(page, "frozen")).to_have_text(
        "Frozen: new calls are refused until an operator lifts it. Reason: checking the prices. "
        "Calls in progress still settle."
    )
    await stage.tell(standing())
    await expect(part(page, "frozen")).to_be_hidden()


async def test_thresholds_are_spoken_once_each(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open()
    await live(stage, page)
    heard = page.get_by_role("status")
    await expect(heard).to_have_text("")
    await stage.tell(standing(neurons(settled=6_000_000_000)))
    await expect(heard).to_have_text("neurons: 75 % of the shared budget is used.")
    await stage.tell(standing(neurons(settled=8_300_000_000)))
    await expect(heard).to_have_text("neurons: 100 % of the shared budget is used.")
    await stage.tell(standing(neurons(settled=6_000_000_000)))
    await stage.tell(standing(neurons(settled=6_100_000_000)))
    await expect(part(page, "spent", "neurons")).to_have_text("61.0 %")
    await expect(heard).to_have_text("neurons: 100 % of the shared budget is used.")


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [360, 900])
async def test_the_countdown_ticks_and_moves_nothing(stage: Stage, windows: Windows, width: int) -> None:
    stage.status = standing(neurons(source="", observed=None), dollars())
    page = await windows.open(width=width, zone="America/New_York", clock=True)
    before = await page.locator("[role=meter]").nth(1).bounding_box()
    assert await page.evaluate("window.jumps()") == []
    await page.clock.run_for(15_000)
    await expect_stale(page)
    await page.screenshot()  # what has changed by now is drawn
    await page.evaluate("window.jumps()")  # the badge grew by a word: that is news, not the countdown
    await page.clock.run_for(3 * 60_000)
    await expect(part(page, "resets-in", "neurons")).to_have_text("in 6 h 9 min.")
    assert await page.locator("[role=meter]").nth(1).bounding_box() == before
    await page.screenshot()
    assert await page.evaluate("window.jumps()") == []


async def test_figures_of_a_period_that_is_over_are_not_shown(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open(clock=True)
    await live(stage, page)
    await page.clock.fast_forward("06:13:00")
    await expect(page.locator(".headline")).to_have_text(
        "No figure yet. This period ended at 00:00 UTC. The new figures are on their way."
    )
    await expect(part(page, "left", "neurons")).to_have_text("\N{EN DASH}")
    assert await widths(page, "neurons") == [0, 0, 0]


async def test_an_old_figure_of_the_provider_is_admitted(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open(clock=True)
    await expect(part(page, "own-calls", "neurons")).to_be_hidden()
    await page.clock.run_for(75_000)
    await expect(part(page, "own-calls", "neurons")).to_have_text(
        "Counting its own calls since 17:47 UTC: cloudflare has given no newer figure."
    )


# --- live or not ------------------------------------------------------------------------------------------------------


async def test_a_stream_that_ends_is_not_live_and_comes_back_by_itself(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open()
    await live(stage, page)
    stage.cut()
    await expect(part(page, "badge")).to_contain_text("not live since 17:47:")
    await expect(part(page, "used", "neurons")).to_have_text("70 % used.")
    await live(stage, page, standing(neurons(settled=7_000_000_000), seq=123_460))
    await expect(part(page, "used", "neurons")).to_have_text("87 % used.")


async def test_no_older_figure_is_shown_after_a_reconnect(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open(clock=True)
    await live(stage, page)
    await stage.tell(standing(neurons(settled=10_000), seq=99))
    await expect_stale(page)
    await expect(part(page, "used", "neurons")).to_have_text("70 % used.")
    await page.clock.run_for(9_000)
    await stage.tell(standing(neurons(settled=10_000), seq=100))
    await expect(part(page, "as-of")).to_have_text("as of 17:47:12 UTC, event #123,456")
    await live(stage, page, standing(neurons(settled=5_000_000_000), seq=123_457))


async def test_silence_is_not_live(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open(clock=True)
    await live(stage, page)
    await page.clock.run_for(9_000)
    await expect(part(page, "badge")).to_have_text("live")
    await page.clock.run_for(2_000)
    await expect_stale(page)
    await stage.listeners(0)
    await page.clock.run_for(2_000)
    await live(stage, page)


async def test_a_server_that_does_not_know_is_not_live(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open(clock=True)
    await live(stage, page)
    await stage.tell(standing(neurons()), live=False)
    await expect_stale(page)


async def test_a_refused_stream_is_asked_for_again(stage: Stage, windows: Windows) -> None:
    stage.status, stage.refuse_streams = standing(neurons()), True
    page = await windows.open(clock=True)
    await expect_stale(page)
    stage.refuse_streams = False
    await page.clock.run_for(2_000)
    await live(stage, page)
    assert [told for told in windows.complaints if "503" not in told] == []
    windows.complaints.clear()


# --- looks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [320, 360])
async def test_a_phone_never_scrolls_sideways(stage: Stage, windows: Windows, width: int) -> None:
    long = neurons(name="a-budget-of-thirty-two-characters")
    stage.status = standing(USED_UP, dollars(settled=123_456_789), long, frozen=[PAUSED])
    page = await windows.open(width=width, zone="Asia/Kolkata")
    await live(stage, page)
    await page.locator("summary").click()
    assert await page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_text_is_readable(stage: Stage, windows: Windows, scheme: Literal["light", "dark"]) -> None:
    stage.status = standing(USED_UP, dollars(), neurons(name="settling", earlier_open=2), frozen=[PAUSED])
    page = await windows.open(scheme=scheme)
    await live(stage, page)
    await page.locator("summary").click()
    texts = await page.evaluate(_COLOURS)
    await stage.tell(stage.status, live=False)
    await expect(part(page, "badge")).to_contain_text("not live")
    texts += await page.evaluate(_COLOURS)
    assert len(texts) > 60
    assert {text["said"]: ratio for text in texts if (ratio := contrast(text["ink"], text["ground"])) < 4.5} == {}


_COLOURS = """() => {
  const ground = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return colour !== "rgba(0, 0, 0, 0)" || !element.parentElement ? colour : ground(element.parentElement);
  };
  const holders = [...document.querySelectorAll("body *")].filter((element) => element.checkVisibility()
    && [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()));
  return holders.map((element) => (
    { said: element.textContent, ink: getComputedStyle(element).color, ground: ground(element) }));
}"""


def contrast(ink: str, ground: str) -> float:
    """The contrast of two computed colours by WCAG 2: 1 to 21."""
    low, high = sorted((luminance(ink), luminance(ground)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


async def test_the_policy_forbids_what_the_page_does_not_do(stage: Stage, windows: Windows) -> None:
    stage.status = standing(neurons())
    page = await windows.open()
    await page.evaluate("document.body.setAttribute('style', 'color: red')")
    await page.evaluate("document.body.append(Object.assign(document.createElement('script'), { text: '1' }))")
    await page.evaluate("new Promise((resolve) => setTimeout(resolve))")  # violations are told in a task of their own
    forbidden = [told for told in windows.complaints if told.startswith("forbidden:")]
    assert forbidden == ["forbidden: style-src-attr", "forbidden: script-src-elem"]
    windows.complaints.clear()
