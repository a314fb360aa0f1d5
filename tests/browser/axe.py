"""axe-core over a page: everything that it finds wrong, in words."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from playwright.async_api import Page

SCRIPT = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@cache
def _script() -> str:
    return SCRIPT.read_text(encoding="utf-8")


async def violations(page: Page) -> list[str]:
    """Each with the first elements it is about."""
    await page.evaluate(_script())
    found = await page.evaluate("(tags) => axe.run({ runOnly: tags })", TAGS)
    return [
        f"{one['id']}: {one['help']}: {[node['target'] for node in one['nodes'][:3]]}" for one in found["violations"]
    ]
