"""Lists that come in pages (`data`, `has_more`, `next_page`), as OpenAI and Anthropic both give their costs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

from projector.observers.source import Unreadable

PAGES_MAX = 20
TOKEN_CHARS_MAX = 1_024

Row = TypeVar("Row")


class Page(msgspec.Struct, Generic[Row], frozen=True):
    data: list[Row]
    has_more: bool = False
    next_page: str | None = None


async def all_rows(ask: Callable[[dict[str, str]], Awaitable[Page[Row]]]) -> list[Row]:
    """The rows of every page. `ask` gets the parameters that name the page. Raises `Unreadable`.

    A list that does not end, or says there is more and not where, has no sum.
    """
    rows: list[Row] = []
    asked: set[str] = set()
    which: dict[str, str] = {}
    for _ in range(PAGES_MAX):
        page = await ask(which)
        rows += page.data
        if not page.has_more:
            return rows
        token = page.next_page or ""
        if not 1 <= len(token) <= TOKEN_CHARS_MAX or token in asked:
            raise Unreadable("its answer has more pages and does not say where")
        asked.add(token)
        which = {"page": token}
    raise Unreadable(f"its answer has more than {PAGES_MAX} pages")
