"""Turns samples into tables for people and rows for programs. Measures nothing."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec
from rich.console import Console
from rich.table import Table

from bench.contender import Contender, Shape
from bench.core import Figure
from bench.drive import Sample
from bench.machine import Machine, Syncs
from bench.rows import Row
from bench.targets import BESIDE, TABLE, Judged, Target, judge, peer_name

Measured: TypeAlias = Mapping[tuple[Contender, Shape], Sample]

WIDTH = 150  # of a table in a file
FINE_UNITS = frozenset({"x", "s", "ms", "us", "MB", "s/s", "events/s"})  # told with decimals


def console() -> Console:
    """As wide as the terminal, and wide enough for a table in a file."""
    return Console(width=None if sys.stdout.isatty() else WIDTH)


def median(samples: Sequence[Sample]) -> Sample:
    """Field by field, over the runs."""
    service = [sample.service_us for sample in samples if sample.service_us is not None]
    return Sample(
        decisions_per_s=statistics.median(sample.decisions_per_s for sample in samples),
        p50_ms=statistics.median(sample.p50_ms for sample in samples),
        p99_ms=statistics.median(sample.p99_ms for sample in samples),
        client_us=statistics.median(sample.client_us for sample in samples),
        service_us=statistics.median(service) if service else None,
    )


def best_peer(measured: Measured, group: str, ours: Contender) -> tuple[Contender, Sample] | None:
    """The fastest networked peer of a group of shapes; all peers here are durable, or they would not be measured."""
    peers = [
        (who, sample)
        for (who, shape), sample in measured.items()
        if shape.group == group and who is not ours and who.networked
    ]
    return max(peers, key=lambda peer: peer[1].decisions_per_s, default=None)


def rows(measured: Measured, figures: Iterable[Figure], ours: Contender) -> list[Row]:
    """Everything that was measured, ours with its ratio to the best peer."""
    made: list[Row] = []
    for (who, shape), sample in measured.items():
        peer = best_peer(measured, shape.group, ours) if who is ours else None
        made += _rows(f"{who.name}, {shape.title}", shape, sample, peer)
    for figure in figures:
        met = figure.value <= figure.at_most if figure.at_most is not None else None
        made.append(Row(figure.name, round(figure.value, 3), figure.unit, figure.at_most, met))
    return made


def _rows(name: str, shape: Shape, sample: Sample, peer: tuple[Contender, Sample] | None) -> Iterator[Row]:
    yield _decisions_row(name, shape, sample, peer)
    times = {"p50": (sample.p50_ms, "ms"), "p99": (sample.p99_ms, "ms"), "CPU of the client": (sample.client_us, "us")}
    if sample.service_us is not None:
        times["CPU of the service"] = (sample.service_us, "us")
    for what, (value, unit) in times.items():
        ratio = None
        if peer is not None and not (unit == "ms" and shape.asks > 1):  # batches of another size take another time
            theirs = _same(what, peer[1])
            ratio = round(value / theirs, 3) if theirs else None
        yield Row(
            f"{name}: {what}",
            round(value, 3),
            unit,
            peer=peer[0].name if ratio is not None and peer else None,
            ratio=ratio,
        )


def _decisions_row(name: str, shape: Shape, sample: Sample, peer: tuple[Contender, Sample] | None) -> Row:
    name, value = f"{name}: decisions", round(sample.decisions_per_s)
    if peer is None:
        return Row(name, value, "1/s")
    ratio = round(sample.decisions_per_s / peer[1].decisions_per_s, 3)
    return Row(name, value, "1/s", peer=peer[0].name, ratio=ratio)


def _same(what: str, sample: Sample) -> float | None:
    return {
        "p50": sample.p50_ms,
        "p99": sample.p99_ms,
        "CPU of the client": sample.client_us,
        "CPU of the service": sample.service_us,
    }[what]


def machine_facts(machine: Machine, before: Syncs, after: Syncs) -> dict[str, str | int | float]:
    """For `results.json`, with the day."""
    facts: dict[str, str | int | float] = dict(zip(machine.__dataclass_fields__, astuple(machine), strict=True))
    facts["day"] = datetime.now(UTC).date().isoformat()
    for when, disk in (("before", before), ("after", after)):
        facts[f"fdatasync_4k_p50_ms_{when}"] = round(disk.p50_ms, 3)
        facts[f"fdatasync_4k_p99_ms_{when}"] = round(disk.p99_ms, 3)
    return facts


# --- for people -------------------------------------------------------------------------------------------------------


def show_targets(console: Console, rows: Sequence[Row]) -> None:
    """What is wanted and what was reached."""
    table = Table(title="Targets", title_justify="left", title_style="bold", caption_justify="left")
    table.caption = (
        "Redis: the usual Lua script, appendfsync always, one call a request. x best: our figure over that of the best "
        "durable networked peer of the same run, whoever that is (decisions: more is better; times: less is)."
    )
    for heading in ("", "wanted", "reached", "met", "stretch", "x best"):
        table.add_column(heading, justify="left" if heading in ("", "met") else "right")
    for one in judge(rows):
        table.add_row(*_target_cells(one), style=None if one.met else "dim" if one.met is None else "bold")
    console.print(table)


def _target_cells(one: Judged) -> Iterator[str]:
    target = one.target
    yield target.what + (f" ({target.remark})" if target.remark else "")
    yield _wanted(target)
    yield _reached(one)
    yield {True: "met", False: "missed", None: ""}[one.met]
    if target.stretch is None:
        yield ""
    else:
        yield f"{target.stretch:,g}{' x' if target.of else ''}{' met' if one.stretched else ''}"
    row = one.row
    yield f"{row.ratio:.2f} x {row.peer}" if row is not None and row.ratio is not None else ""


def _wanted(target: Target) -> str:
    bound = "at least" if target.least is not None else "at most"
    if target.of is not None:
        return f"{bound} {target.wanted:g} x {peer_name(target.of)}"
    return f"{bound} {target.wanted:,g} {target.unit}"


def _reached(one: Judged) -> str:
    if one.value is None:
        return "not measured"
    assert one.row is not None
    own = f"{_number(one.row)} {one.row.unit}"
    return f"{one.value:.2f} x ({own})" if one.target.of is not None else own


def _number(figure: Figure | Row) -> str:
    return f"{figure.value:,.2f}" if figure.unit in FINE_UNITS else f"{figure.value:,.0f}"


def show(console: Console, measured: Measured, ours: Contender) -> None:
    """Everybody side by side."""
    if measured:
        console.print(_table(measured, ours))


def show_figures(console: Console, title: str, figures: Sequence[Figure]) -> None:
    """A table, where anything of it was measured."""
    if figures:
        console.print(_figures_table(title, figures))


def say_figures(console: Console, title: str, figures: Iterable[Figure], *, as_json: bool) -> None:
    """What a module that is run by itself says: a table, or a line of JSON each for who runs it."""
    if not as_json:
        show_figures(console, title, list(figures))
        return
    for figure in figures:
        print(msgspec.json.encode(figure).decode(), flush=True)


def _table(measured: Measured, ours: Contender) -> Table:
    table = Table(
        title="Durable decisions, side by side", title_justify="left", title_style="bold", caption_justify="left"
    )
    table.caption = (
        "x: over the best networked peer of the same group in this run (decisions: more is better; times: less is). "
        "CPU: microseconds a decision, the figure that noise disturbs least."
    )
    for heading in ("", "decisions/s", "x", "p50 ms", "p99 ms", "x p99", "CPU client", "CPU service"):
        table.add_column(heading, justify="right" if heading else "left")
    for group in dict.fromkeys(shape.group for _, shape in measured):
        table.add_section()
        peer = best_peer(measured, group, ours)
        for (who, shape), sample in measured.items():
            if shape.group == group:
                table.add_row(*_cells(who, shape, sample, peer), style="bold" if who is ours else None)
    return table


def _cells(who: Contender, shape: Shape, sample: Sample, peer: tuple[Contender, Sample] | None) -> list[str]:
    ratio = sample.decisions_per_s / peer[1].decisions_per_s if peer is not None else None
    p99 = sample.p99_ms / peer[1].p99_ms if peer is not None and shape.asks == 1 else None
    return [
        f"{shape.title}: {who.name}",
        f"{sample.decisions_per_s:,.0f}",
        _times(ratio),
        f"{sample.p50_ms:,.2f}",
        f"{sample.p99_ms:,.2f}",
        _times(p99),
        f"{sample.client_us:,.1f}",
        f"{sample.service_us:,.1f}" if sample.service_us is not None else "in client",
    ]


def _times(ratio: float | None) -> str:
    return f"{ratio:.2f}" if ratio is not None else ""


def _figures_table(title: str, figures: Sequence[Figure]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("wanted", justify="right")
    beside = {target.row: target for target in (*TABLE, *BESIDE) if target.of is None}
    for figure in figures:
        table.add_row(figure.name, f"{_number(figure)} {figure.unit}", _figure_wanted(figure, beside.get(figure.name)))
    return table


def _figure_wanted(figure: Figure, target: Target | None) -> str:
    if target is not None:
        return f"{'met' if target.reached(figure.value) else 'missed'} ({_wanted(target)})"
    if figure.at_most is not None:
        return f"{'met' if figure.value <= figure.at_most else 'missed'} (at most {figure.at_most:,g})"
    return ""


def show_machine(console: Console, machine: Machine, disk: Syncs) -> None:
    """Before anything is measured, so that a warning comes in time."""
    console.print(f"{machine.cores} cores ({machine.cpu}), {machine.system}, {machine.python}, {machine.file_system}")
    console.print(f"fdatasync of 4 KiB: p50 {disk.p50_ms:.2f} ms, p99 {disk.p99_ms:.2f} ms")
    if machine.warning is not None:
        console.print(f"[yellow]note:[/] {machine.warning}")
