"""Draws curves as an SVG in the style of our pages, for light and dark. It knows nothing of what is measured.

Text, rules and colours follow whoever looks (`prefers-color-scheme`); a curve is told by its colour and by its marker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, PANEL_HEIGHT = 900, 280
LEFT, RIGHT, TOP, BOTTOM = 74, 36, 66, 58  # of a panel, around its plot
LEGEND_LINE, CAPTION_LINE = 24, 17
CAPTION_CHARS = 155
TICKS_MAX = 6
MARKER = 4.5

STYLE = """
:root { --sheet: #fffdf8; --ink: #1f1c16; --soft: #625c50; --rule: #e3dccd; --strong: #b9af9b;
  --c0: #1f5f4b; --c1: #b0781c; --c2: #9a3412; --c3: #2f62a3; --c4: #7a4a8c; }
@media (prefers-color-scheme: dark) { :root { --sheet: #1a1916; --ink: #ece7db; --soft: #a9a294; --rule: #32302a;
  --strong: #5c574c; --c0: #6db597; --c1: #dfae5c; --c2: #e88a63; --c3: #86b2e8; --c4: #c79ad8; } }
text { font-family: -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", system-ui, sans-serif;
  font-size: 13px; fill: var(--ink); }
.soft { fill: var(--soft); font-size: 12px; } .head { font-weight: 600; font-size: 15px; }
.sheet { fill: var(--sheet); } .rule { stroke: var(--rule); } .axis { stroke: var(--strong); }
.curve { fill: none; stroke-width: 2; } .ours { stroke-width: 3; } .dashed { stroke-dasharray: 5 4; }
""" + "".join(f".c{n} {{ stroke: var(--c{n}); }} .m{n} {{ fill: var(--c{n}); }}\n" for n in range(5))  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """Points in order of x. `colour`: 0 is ours, up to 4. Dashed is the same one's other figure."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int = 0
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes. `x` and `y` name what is counted and its unit. x is always logarithmic."""

    title: str
    x: str
    y: str
    curves: Sequence[Curve]
    log_y: bool = True


@dataclass(frozen=True)
class Scale:
    """From values to places."""

    ticks: Sequence[float]
    place: Callable[[float], float]


def draw(title: str, panels: Sequence[Panel], caption: str) -> str:
    """The picture. The legend stands once below the panels, then the caption, which says where the figures are from."""
    legend = list(_legend([curve for panel in panels for curve in panel.curves]))
    lines = list(_wrapped(caption))
    legend_at = PANEL_HEIGHT + 16
    caption_at = legend_at + LEGEND_LINE * (1 + max((row for _, row, _ in legend), default=0)) + 8
    height = caption_at + CAPTION_LINE * len(lines) + 6
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>",
        f'<rect class="sheet" width="{WIDTH}" height="{height}" rx="6"/>',
    ]  # fmt: skip
    for number, panel in enumerate(panels):
        out += _panel(panel, WIDTH / len(panels) * number, WIDTH / len(panels))
    for x, row, curve in legend:
        y = legend_at + LEGEND_LINE * row
        out += [_line([(x, y), (x + 30, y)], curve), _marker(x + 15, y, curve.colour),
                f'<text x="{x + 38:g}" y="{y + 4:g}">{escape(curve.name)}</text>']  # fmt: skip
    for number, line in enumerate(lines):
        out.append(f'<text class="soft" x="16" y="{caption_at + CAPTION_LINE * number:g}">{escape(line)}</text>')
    return "\n".join([*out, "</svg>", ""])


def _panel(panel: Panel, left: float, width: float) -> Iterator[str]:
    points = [point for curve in panel.curves for point in curve.points]
    x0, x1, y0, y1 = left + LEFT, left + width - RIGHT, PANEL_HEIGHT - BOTTOM, TOP
    across = _across([x for x, _ in points], x0, x1)
    up = (_decades if panel.log_y else _from_zero)([y for _, y in points], y0, y1)
    yield f'<text class="head" x="{left + 16:g}" y="28">{escape(panel.title)}</text>'
    yield f'<text class="soft" x="{left + 16:g}" y="48">{escape(panel.y)}</text>'
    for tick in up.ticks:
        y = up.place(tick)
        yield f'<path class="rule" d="M{x0:g} {y:.1f}H{x1:g}"/>'
        yield f'<text class="soft" x="{x0 - 8:g}" y="{y + 4:.1f}" text-anchor="end">{_number(tick)}</text>'
    for tick in across.ticks:
        x = across.place(tick)
        yield f'<path class="axis" d="M{x:.1f} {y0:g}v5"/>'
        yield f'<text class="soft" x="{x:.1f}" y="{y0 + 20:g}" text-anchor="middle">{_number(tick)}</text>'
    yield f'<path class="axis" d="M{x0:g} {y0:g}H{x1:g}"/>'
    yield f'<text class="soft" x="{(x0 + x1) / 2:g}" y="{y0 + 42:g}" text-anchor="middle">{escape(panel.x)}</text>'
    for curve in sorted(panel.curves, key=lambda curve: -curve.colour):  # ours on top
        placed = [(across.place(x), up.place(y)) for x, y in curve.points]
        yield _line(placed, curve)
        if not curve.dashed:
            yield from (_marker(x, y, curve.colour) for x, y in placed)


def _line(placed: Sequence[tuple[float, float]], curve: Curve) -> str:
    words = f"curve c{curve.colour}{' ours' if not curve.colour else ''}{' dashed' if curve.dashed else ''}"
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in placed)
    return f'<path class="{words}" d="M{path}"/>'


def _marker(x: float, y: float, colour: int) -> str:
    r = MARKER
    match colour:
        case 0:
            return f'<circle class="m0" cx="{x:.1f}" cy="{y:.1f}" r="{r:g}"/>'
        case 1:
            path = f"M{x - r:.1f} {y - r:.1f}h{2 * r:g}v{2 * r:g}h{-2 * r:g}z"
        case 2:
            path = f"M{x:.1f} {y - r - 1:.1f}L{x + r + 1:.1f} {y + r:.1f}L{x - r - 1:.1f} {y + r:.1f}z"
        case 3:
            path = f"M{x:.1f} {y - r - 1:.1f}L{x + r + 1:.1f} {y:.1f}L{x:.1f} {y + r + 1:.1f}L{x - r - 1:.1f} {y:.1f}z"
        case _:
            path = f"M{x - r - 1:.1f} {y - r:.1f}L{x + r + 1:.1f} {y - r:.1f}L{x:.1f} {y + r + 1:.1f}z"
    return f'<path class="m{colour}" d="{path}"/>'


def _legend(curves: Sequence[Curve]) -> Iterator[tuple[float, int, Curve]]:
    """Each name once: where it stands in its row, which row, whose it is."""
    x, row = 16.0, 0
    first: dict[str, Curve] = {}
    for curve in curves:
        first.setdefault(curve.name, curve)
    for curve in first.values():
        wide = 38 + 7.4 * len(curve.name) + 26
        if x > 16 and x + wide > WIDTH:
            x, row = 16.0, row + 1
        yield x, row, curve
        x += wide


# --- scales -----------------------------------------------------------------------------------------------------------


def _across(values: Sequence[float], start: float, end: float) -> Scale:
    """Logarithmic, with a tick where something was measured."""
    ticks = sorted(set(values))
    low, high = math.log(ticks[0]), math.log(ticks[-1])
    room = (end - start) * 0.03
    return Scale(ticks, _between(low, high, start + room, end - room, math.log))


def _decades(values: Sequence[float], start: float, end: float) -> Scale:
    """Logarithmic, from the tick below all values to the one above. Ticks at 1, 2 and 5 where decades are too few."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    steps = (1,) if high - low > 3 else (1, 2, 5)
    all_ticks = [step * 10.0**power for power in range(low, high + 1) for step in steps]
    above = next(tick for tick in [*all_ticks, 10.0 ** (high + 1)] if tick >= max(values))
    below = [tick for tick in all_ticks if tick <= min(values)][-1]
    ticks = [tick for tick in all_ticks if below <= tick <= above]
    if len(ticks) == 1:
        ticks = [ticks[0] / 10, *ticks]
    return Scale(ticks, _between(math.log(ticks[0]), math.log(ticks[-1]), start, end, math.log))


def _from_zero(values: Sequence[float], start: float, end: float) -> Scale:
    """Even, from nothing on, so that what is flat looks flat."""
    rough = max(values) / (TICKS_MAX - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough)
    count = math.ceil(max(values) / step)
    return Scale([step * n for n in range(count + 1)], _between(0, step * count, start, end, float))


def _between(
    low: float, high: float, start: float, end: float, of: Callable[[float], float]
) -> Callable[[float], float]:
    span = high - low or 1.0
    return lambda value: start + (of(value) - low) / span * (end - start)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def _wrapped(text: str) -> Iterator[str]:
    line = ""
    for word in text.split():
        if len(line) + len(word) + 1 > CAPTION_CHARS:
            yield line
            line = ""
        line = f"{line} {word}".strip()
    yield line
