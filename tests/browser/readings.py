"""Everything that open pages of a wallet ever showed, as a person could have read it: each change of their figures.

A page tells of itself in the instant after it drew, so nothing that stood there for a moment only is missed.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

from playwright.async_api import BrowserContext, Page

Found = TypeVar("Found")

WAIT_S = 60.0
LINES = ("spent", "others", "held", "left")

# The two pages are built differently and say the same: which budget, how much, until when, and each line of the meter.
_TELL = """
(() => {
  const words = (root, selector) => root.querySelector(selector)?.textContent.trim() ?? "";
  const window_ = (budget) => ({
    name: budget.dataset.budget,
    used: words(budget, "[data-at=used]"),
    resets: words(budget, "[data-at=resets]"),
    lines: ["spent", "others", "held", "left"].map((line) =>
      [line, words(budget, `[data-at=${line}]`), words(budget, `[data-at=${line}-amount]`)]),
  });
  const panel = (budget) => ({
    name: words(budget, "h3 a"),
    used: words(budget, ".figure"),
    resets: words(budget, "dl ~ p.quiet"),
    lines: [...budget.querySelectorAll("dl.lines > div")].map((line) => {
      const share = line.querySelector("dd").firstChild.data.trim();
      return [line.querySelector("svg").classList[1], share, words(line, "dd small")];
    }),
  });
  let told = "";
  const tell = () => {
    const badge = document.querySelector(".fresh .badge");
    const as_of = [...document.querySelectorAll(".fresh span")].map((one) => one.textContent);
    const budgets = [
      ...[...document.querySelectorAll("#window [data-budget]")].map(window_),
      ...[...document.querySelectorAll("article.panel")].map(panel),
    ];
    if (badge === null || budgets.length === 0) return;
    const said = JSON.stringify({
      path: location.pathname,
      as_of: as_of.find((one) => one.includes("event #")),
      state: badge.dataset.state,
      badge: badge.textContent,
      budgets,
    });
    if (said !== told) window.saw(said);
    told = said;
  };
  addEventListener("DOMContentLoaded", () => {
    tell();
    new MutationObserver(tell).observe(
      document.documentElement, { subtree: true, childList: true, characterData: true, attributes: true });
  });
})();
"""


@dataclass(frozen=True)
class Shown:
    """One budget as it was shown. `resets`: the time of day of its end, "" if never; None: no figure was shown.

    `lines`: each line's amount and its percentage.
    """

    budget: str
    used: str
    resets: str
    lines: dict[str, tuple[Decimal, Decimal]] | None


@dataclass(frozen=True)
class Reading:
    """A page at one instant. `seq`: the event it says its figures are as of."""

    page: Page
    path: str
    seq: int
    state: str
    badge: str
    budgets: dict[str, Shown]


def _reading(page: Page, said: dict[str, Any]) -> Reading:
    found = re.search(r"event #([\d,]+)", said["as_of"])
    assert found is not None, said
    budgets = {one["name"]: _shown(one) for one in said["budgets"]}
    seq = int(found[1].replace(",", ""))
    return Reading(page, said["path"], seq, said["state"], said["badge"], budgets)


def _shown(said: dict[str, Any]) -> Shown:
    until = re.search(r"(\d\d:\d\d) UTC", said["resets"])
    lines = None
    if said["used"].rstrip(".") != "No figure yet":
        lines = {line: (_number(amount), _number(share.removesuffix(" %"))) for line, share, amount in said["lines"]}
        assert set(lines) == set(LINES), said
    else:
        assert not re.search(r"[1-9]", str(said["lines"])), f"figures of a period that is over: {said}"
    return Shown(said["name"], said["used"], until[1] if until else "", lines)


def _number(written: str) -> Decimal:
    return Decimal(written.replace(",", ""))


@dataclass
class Readings:
    """All of them, in the order in which they came. `unreadable`: what no reader could make sense of."""

    all: list[Reading] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self, context: BrowserContext) -> None:
        """From now on, take what the pages of this context show."""
        await context.expose_binding("saw", self._saw)
        await context.add_init_script(_TELL)

    def _saw(self, source: dict[str, Any], said: str) -> None:
        try:
            self.all.append(_reading(source["page"], json.loads(said)))
        except (AssertionError, ArithmeticError) as error:
            self.unreadable.append(f"{error}: {said}")
        self._more.set()
        self._more = asyncio.Event()

    def of(self, page: Page, path: str) -> list[Reading]:
        return [one for one in self.all if one.page is page and one.path == path]

    async def until(self, found: Callable[[], Found], *, wait_s: float = WAIT_S) -> Found:
        """Wait until something that is true is found in what was shown, and return it."""
        try:
            async with asyncio.timeout(wait_s):
                while not (what := found()):
                    await self._more.wait()
        except TimeoutError as error:
            error.add_note("\n".join(map(str, self.all[-10:] + self.unreadable[-3:])))
            raise
        return what
