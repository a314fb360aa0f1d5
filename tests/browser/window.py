"""The browser that the tests look through: where it is, how pages are opened in it, and what it complains about."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from browser.stage import NOON, SECOND
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
]  # fmt: skip

# Tells the console of what the policy forbade, whatever the browser itself prints, and notes everything that jumped.
_WATCH = """
addEventListener("securitypolicyviolation", (event) => console.error(`forbidden: ${event.violatedDirective}`));
const jumps = [], watching = new PerformanceObserver((list) => jumps.push(...list.getEntries()));
watching.observe({ type: "layout-shift", buffered: true });
window.jumps = () => [...jumps.splice(0), ...watching.takeRecords()].map((entry) => entry.value);
"""


AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
_WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


async def violations(page: Page) -> list[str]:
    """What axe-core finds: its rule, and where. Asked from outside of the page, whose policy lets no script in."""
    await page.evaluate(f"{AXE.read_text(encoding='utf-8')}; undefined")
    found = await page.evaluate("tags => axe.run({runOnly: tags})", _WCAG)
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


class Shown(Protocol):
    """Whatever pages are opened of."""

    url: str


@dataclass
class Windows:
    """Pages on the stage. `complaints`: every error in a console, uncaught exception and violation of the policy."""

    browser: Browser
    stage: Shown
    complaints: list[str] = field(default_factory=list)
    _contexts: list[BrowserContext] = field(default_factory=list)

    async def open(
        self,
        *,
        width: int = 900,
        scheme: Literal["light", "dark"] = "light",
        zone: str = "UTC",
        script: bool = True,
        clock: bool = False,
    ) -> Page:
        """A page of its own; with `clock`, its time stands still at the stage's until the test moves it."""
        context = await self.browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, timezone_id=zone, java_script_enabled=script,
            reduced_motion="reduce",
        )  # fmt: skip
        self._contexts.append(context)
        page = await context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        if script:
            await page.add_init_script(_WATCH)
        if clock:
            await page.clock.install(time=NOON / SECOND - 3600)  # it runs until it is stopped, which may take a while
            await page.clock.pause_at(NOON / SECOND)
        await page.goto(self.stage.url)
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    async def close(self) -> None:
        for context in self._contexts:
            await context.close()
