"""A meter of one budget that is over: what was spent, by others, held, and left, drawn and in words."""

from __future__ import annotations

from engine.core.documents import BudgetStatus
from web import statement
from web.html import Html, element
from web.page import bar_edges
from web.pages.past_words import DAY
from web.statement import tenths


def meter(*, limit: int, settled: int, extra: int, held: int, name: str) -> tuple[Html, str]:
    """The drawing with its words for those who do not see it, and its headline."""
    of = BudgetStatus(
        name=name, unit="", scale=0, per="day", zone="UTC", period="", start=0, resets_at=0,
        limit=limit, settled=settled, held=held, extra=extra,
    )  # fmt: skip
    shares = statement.shares(of)
    said = statement.meter_words(shares)
    drawing = Html(_DRAWING.format(**bar_edges(shares)))
    found = element(
        "div", drawing, class_="meter", role="meter", aria_label=name, aria_valuemin="0", aria_valuemax="100",
        aria_valuenow=tenths(min(1000, shares.used)), aria_valuetext=said,
    )  # fmt: skip
    return found, DAY.used.format(share=tenths(shares.used))


_DRAWING = (
    '<svg width="100%" height="100%" aria-hidden="true" focusable="false">'
    '<rect class="spent" x="{spent_x}%" width="{spent_width}%" height="100%"/>'
    '<rect class="others" fill="url(#others)" x="{others_x}%" width="{others_width}%" height="100%"/>'
    '<rect class="held" fill="url(#held)" x="{held_x}%" width="{held_width}%" height="100%"/>'
    '<rect class="limit" x="{limit_x}%" width="{limit_width}" height="100%"/></svg>'
)
