"""Turns what was measured of proxies into a table for people and rows for programs. Measures nothing."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from bench.proxy.contender import Contender, Shape
from bench.proxy.litellm import LITELLM
from bench.proxy.measure import Figures, Measured
from bench.proxy.purse import PURSE
from bench.rows import Row

CAPTION = (
    "Added: over the direct way in the same round, the median of the rounds; the direct way's line has its own times. "
    "First: the first byte of a stream. CPU: ms a call, of the process that calls pass through + of server, engine and "
    "projector; the figure that noise disturbs least."
)


def show(console: Console, measured: Measured, rounds: int) -> None:
    """The table, and a line for whatever was wrong."""
    for who, why in measured.failed.items():
        console.print(f"[red]not measured:[/] {who.name}: {why}")
    if not measured.figures:
        return
    console.print(_table(measured, rounds))
    for (who, shape), figures in measured.figures.items():
        if figures.errors:
            said = ", ".join(f"{count} x {what}" for what, count in figures.errors.items())
            console.print(f"[red]errors:[/] {who.name}, {shape.title}: {said}")
    for who, books in measured.books.items():
        console.print(f"books of {who.name}: charged for {books.charged:,g} of {books.calls:,} calls")


def _table(measured: Measured, rounds: int) -> Table:
    title = f"What a proxy adds to a call, median of {rounds} rounds"
    table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left", caption=CAPTION)
    for heading in (
        "",
        "added p50 ms",
        "added p99 ms",
        "first p50",
        "first p99",
        "calls/s",
        "CPU ms",
        "errors",
        "x p50",
    ):
        table.add_column(heading, justify="right" if heading else "left")
    for shape in dict.fromkeys(shape for _, shape in measured.figures):
        table.add_section()
        for (who, its), figures in measured.figures.items():
            if its == shape:
                ratio = _ratio(measured, shape, "p50_ms") if who is PURSE else None
                table.add_row(
                    *_cells(who, shape, figures), f"{ratio:.2f}" if ratio is not None else "",
                    style="bold" if who is PURSE else None,
                )  # fmt: skip
    return table


def _cells(who: Contender, shape: Shape, figures: Figures) -> Iterator[str]:
    times, taken = figures.added or figures.taken, figures.taken
    yield f"{shape.title.removeprefix('proxy, ')}: {who.name}"
    yield f"{times.p50_ms:,.2f}"
    yield f"{times.p99_ms:,.2f}"
    yield f"{times.first_p50_ms:,.2f}" if shape.stream else ""
    yield f"{times.first_p99_ms:,.2f}" if shape.stream else ""
    yield f"{taken.calls_per_s:,.0f}"
    rest = f" + {taken.rest_ms:.2f}" if taken.rest_ms else ""
    yield f"{taken.proxy_ms:.2f}{rest}" if taken.proxy_ms else ""
    yield str(sum(figures.errors.values()))


def _ratio(measured: Measured, shape: Shape, field: str) -> float | None:
    """Ours over the peer's; none where one of them added nothing that could be measured."""
    ours, theirs = (measured.figures.get((who, shape)) for who in (PURSE, LITELLM))
    if ours is None or theirs is None or ours.added is None or theirs.added is None:
        return None
    mine: float = getattr(ours.added, field)
    peers: float = getattr(theirs.added, field)
    return mine / peers if mine > 0 and peers > 0 else None


def rows(measured: Measured) -> Iterator[Row]:
    """For `results.json`: what is added, over what LiteLLM added in the same run."""
    for (who, shape), figures in measured.figures.items():
        name = f"{shape.title}: {who.name}"
        for what, field in _fields(shape):
            if figures.added is None:
                yield Row(f"{name}: {what}", round(getattr(figures.taken, field), 3), "ms")
                continue
            ratio = _ratio(measured, shape, field) if who is PURSE else None
            yield Row(
                f"{name}: added {what}", round(getattr(figures.added, field), 3), "ms",
                peer=LITELLM.name if ratio is not None else None, ratio=None if ratio is None else round(ratio, 3),
            )  # fmt: skip
        yield Row(f"{name}: calls", round(figures.taken.calls_per_s, 1), "1/s")
        yield Row(f"{name}: errors", sum(figures.errors.values()), "calls", 0, not figures.errors)
        if figures.taken.proxy_ms:
            yield Row(f"{name}: CPU of the proxy", round(figures.taken.proxy_ms, 3), "ms")
        if figures.taken.rest_ms:
            yield Row(f"{name}: CPU of the wallet", round(figures.taken.rest_ms, 3), "ms")


def _fields(shape: Shape) -> Iterator[tuple[str, str]]:
    yield "p50", "p50_ms"
    yield "p99", "p99_ms"
    if shape.stream:
        yield "first byte p50", "first_p50_ms"
        yield "first byte p99", "first_p99_ms"
