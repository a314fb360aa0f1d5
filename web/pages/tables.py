"""Tables of figures, one way for all pages: a caption, a head, rows whose first cell names them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from web.html import Html, element, joined
from web.pages.words import TABLE

Row = Sequence[str | int]


def table(caption: str, head: Row, rows: Iterable[Row], *, words: int = 1, foot: Row = (), unseen: bool = True) -> Html:
    """`words`: how many columns at the left are words; the others are figures and line up at the right."""
    body = joined(_row(row, words) for row in rows)
    parts = [
        element("caption", caption, class_="unseen" if unseen else None),
        element("thead", element("tr", *(_cell("th", text, n, words, scope="col") for n, text in enumerate(head)))),
        element("tbody", body),
    ]
    if foot:
        parts.append(element("tfoot", _row(foot, words)))
    # whoever has no mouse must be able to scroll a table that is wider than the window
    return element("div", element("table", *parts), class_="scroll", role="group", tabindex="0", aria_label=caption)


def _row(row: Row, words: int) -> Html:
    first, *others = row
    cells = [_cell("td", text, n, words) for n, text in enumerate(others, 1)]
    return element("tr", element("th", first, scope="row"), *cells)


def _cell(tag: str, inside: str | int, place: int, words: int, **more: str) -> Html:
    return element(tag, inside, class_="number" if place >= words else None, **more)


BARS: Final = element("span", TABLE.bars, class_="unseen")
"""The head of a column of bars."""


def bar(part: int, whole: int) -> Html:
    """A bar as wide as this share of the whole."""
    width = f"{100 * max(0, part) / whole:.2f}%" if whole > 0 else "0"
    return Html(f'<svg class="bar" aria-hidden="true"><rect width="{width}" height="100%"/></svg>')
