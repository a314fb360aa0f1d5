"""Charts: drawn here as SVG, for everybody; where there is a script and its library, drawn again to be read closely.

A chart shows what a sentence and a table beside it say too, so floats are good enough here, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from web.html import Html, element, fill, joined
from web.statement import SECOND, grouped

LineKind = Literal["area", "line", "even", "ahead", "bars"]

_WIDE, _HIGH = 1000, 400  # of the drawing's own coordinates; it is stretched to its frame
_ROOM_ABOVE = 1.06
_STEPS: Final = (1, 2, 5)
_HOUR_S, _DAY_S = 3600, 86_400


class Line(msgspec.Struct, frozen=True):
    """One thing to be drawn: moments in ns, and a value for each. `until`: where each bar ends."""

    name: str
    kind: LineKind
    at: Sequence[int]
    values: Sequence[float]
    until: Sequence[int] = ()


class Chart(msgspec.Struct, frozen=True):
    """`name`: unique on its page. `says`: what it shows, for whoever does not see it."""

    name: str
    says: str
    unit: str
    start: int
    end: int
    lines: Sequence[Line]
    now: int | None = None


def draw(chart: Chart) -> Html:
    """The chart's figure: its legend, its drawing, and beside it the values for the script."""
    top = _top(chart)
    return fill(
        "chart.html",
        name=chart.name,
        says=chart.says,
        values=msgspec.json.encode(_values(chart)).decode(),
        legend=joined(_legend(line) for line in chart.lines),
        grid=joined(_grid(top)),
        labels=joined([*_y_labels(top, chart.unit), *_x_labels(chart)]),
        wide=_WIDE,
        high=_HIGH,
        shapes=joined([*(_shape(chart, line, top) for line in _backmost_first(chart.lines)), *_now(chart)]),
    )


def _values(chart: Chart) -> dict[str, object]:
    """What the script draws from: one row of moments, in seconds, and a row of values for each line."""
    moments = sorted({at for line in chart.lines for at in line.at})
    rows = [dict(zip(line.at, line.values, strict=True)) for line in chart.lines]
    return {
        "unit": chart.unit,
        "range": [chart.start // SECOND, chart.end // SECOND],
        "names": [line.name for line in chart.lines],
        "kinds": [line.kind for line in chart.lines],
        "x": [at // SECOND for at in moments],
        "y": [[row.get(at) for at in moments] for row in rows],
    }


def _legend(line: Line) -> Html:
    swatch = Html(f'<svg class="key {line.kind}" viewBox="0 0 24 10" aria-hidden="true"><path d="M0 5h24"/></svg>')
    return element("li", swatch, line.name)


# --- the drawing ------------------------------------------------------------------------------------------------------


def _backmost_first(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: line.kind not in ("area", "bars"))


def _shape(chart: Chart, line: Line, top: float) -> Html:
    def x(at: int) -> float:
        return _WIDE * (min(max(at, chart.start), chart.end) - chart.start) / max(1, chart.end - chart.start)

    def y(value: float) -> float:
        return _HIGH * (1 - max(0.0, value) / top)

    if not line.at:
        return Html("")
    if line.kind == "bars":
        boxes = zip(line.at, line.until, line.values, strict=True)
        path = "".join(
            f"M{x(at) + 0.6:.1f} {_HIGH}V{y(value):.1f}H{max(x(until) - 0.6, x(at) + 1.6):.1f}V{_HIGH}z"
            for at, until, value in boxes
        )
        return element("path", class_="bars", d=path)
    points = [f"{x(at):.1f} {y(value):.1f}" for at, value in zip(line.at, line.values, strict=True)]
    path = "M" + "L".join(points)
    drawn = element("path", class_=line.kind, d=path)
    if line.kind != "area":
        return drawn
    under = f"{path}L{x(line.at[-1]):.1f} {_HIGH}L{x(line.at[0]):.1f} {_HIGH}z"
    return joined([element("path", class_="under", d=under), drawn])


def _now(chart: Chart) -> list[Html]:
    if chart.now is None or not chart.start <= chart.now < chart.end:
        return []
    x = _WIDE * (chart.now - chart.start) / (chart.end - chart.start)
    return [element("path", class_="now", d=f"M{x:.1f} 0V{_HIGH}")]


# --- scales -----------------------------------------------------------------------------------------------------------


def _top(chart: Chart) -> float:
    return _ROOM_ABOVE * max((value for line in chart.lines for value in line.values), default=0) or 1.0


def _ticks(top: float) -> list[float]:
    """Three to six round numbers up to the top."""
    power = 10.0 ** math.floor(math.log10(top))
    sizes = [step * power / scale for scale in (10, 1) for step in _STEPS]
    size = next((size for size in sizes if top / size <= 5), sizes[-1])
    return [n * size for n in range(1, int(top / size) + 1)]


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def _grid(top: float) -> Iterable[Html]:
    for tick in _ticks(top):
        y = _percent(1 - tick / top)
        yield element("line", x1="0", x2="100%", y1=y, y2=y)


def _y_labels(top: float, unit: str) -> Iterable[Html]:
    *ticks, last = _ticks(top)
    for tick in (*ticks, last):
        said = grouped(f"{tick:.6f}".rstrip("0").rstrip("."))
        text = f"{said} {unit}" if tick == last else said
        # the drawing ends above the line of times; nested frames give each its own hundred percent
        yield element("text", text, x="0", y=_percent(1 - tick / top), dy="-4")


def _x_labels(chart: Chart) -> Iterable[Html]:
    for at in _moments(chart.start // SECOND, chart.end // SECOND):
        share = (at - chart.start // SECOND) / max(1, (chart.end - chart.start) // SECOND)
        anchor = "start" if share == 0 else "end" if share == 1 else "middle"
        moment = datetime.fromtimestamp(at, UTC)
        hours = chart.end - chart.start <= 2 * _DAY_S * SECOND
        said = f"{moment:%H:%M}" if hours else f"{moment.day} {moment:%b}"
        class_ = "minor" if round(share * 8) % 2 else None
        yield element("text", said, x=_percent(share), y="100%", dy="20", text_anchor=anchor, class_=class_)


def _moments(start_s: int, end_s: int) -> list[int]:
    """Nine moments, evenly set; fewer where the period has fewer hours or days."""
    return [start_s + (end_s - start_s) * n // 8 for n in range(9)]
