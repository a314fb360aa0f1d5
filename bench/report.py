"""Turns samples into a table for people and rows for programs. Measures nothing."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TypeAlias

import msgspec
from rich.console import Console
from rich.table import Table

from bench.contender import Contender, Shape
from bench.core import Figure
from bench.drive import Sample
from bench.machine import Machine, Syncs

Measured: TypeAlias = Mapping[tuple[Contender, Shape], Sample]

RATIO_WANTED = {"1 caller": 0.4}
"""Decisions against the best peer that we want at least, where it is not 1.

A lone caller waits for two synced appends in turn, the ask's and the told's, where a peer has one: that is the price of
a record that stands before anybody hears of it. From a few callers on the appends are shared.
"""


FINE_UNITS = frozenset({"x", "ms", "s/s", "events/s"})  # told with decimals


class Row(msgspec.Struct, frozen=True):
    """One figure. `target` is in the figure's own unit, made from the same run where there is a peer to compare with.

    `ratio` is the value over the peer's: above 1 is better for decisions, below 1 for times.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    met: bool | None = None
    peer: str | None = None
    ratio: float | None = None


class Results(msgspec.Struct, frozen=True):
    """What stands in `results.json`."""

    rows: list[Row]
    machine: dict[str, str | int | float]
    seconds: float
    runs: int


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
    """Everything that was measured, ours with targets and ratios."""
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
    target = round(RATIO_WANTED.get(shape.group, 1.0) * peer[1].decisions_per_s)
    ratio = round(sample.decisions_per_s / peer[1].decisions_per_s, 3)
    return Row(name, value, "1/s", target, value >= target, peer[0].name, ratio)


def _same(what: str, sample: Sample) -> float | None:
    return {
        "p50": sample.p50_ms,
        "p99": sample.p99_ms,
        "CPU of the client": sample.client_us,
        "CPU of the service": sample.service_us,
    }[what]


def machine_facts(machine: Machine, before: Syncs, after: Syncs) -> dict[str, str | int | float]:
    """For `results.json`."""
    facts: dict[str, str | int | float] = dict(zip(machine.__dataclass_fields__, astuple(machine), strict=True))
    for when, disk in (("before", before), ("after", after)):
        facts[f"fdatasync_4k_p50_ms_{when}"] = round(disk.p50_ms, 3)
        facts[f"fdatasync_4k_p99_ms_{when}"] = round(disk.p99_ms, 3)
    return facts


def write(path: Path, results: Results) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")


# --- for people -------------------------------------------------------------------------------------------------------


def show(console: Console, measured: Measured, figures: Sequence[Figure], ours: Contender) -> None:
    """The tables."""
    if measured:
        console.print(_table(measured, ours))
    if figures:
        console.print(_figures_table("The pure core alone, one process, CPU time", figures))


def show_figures(console: Console, title: str, figures: Sequence[Figure]) -> None:
    """What a part that measures by itself found, where it was measured."""
    if figures:
        console.print(_figures_table(title, figures))


def _table(measured: Measured, ours: Contender) -> Table:
    table = Table(
        title="Durable decisions, side by side", title_justify="left", title_style="bold", caption_justify="left"
    )
    table.caption = (
        "x: over the best networked peer of the same group in this run (decisions: more is better; times: less is). "
        "CPU: microseconds a decision, the figure that noise disturbs least."
    )
    for heading in ("", "decisions/s", "x", "p50 ms", "p99 ms", "x p99", "CPU client", "CPU service", "wanted"):
        table.add_column(heading, justify="right" if heading else "left")
    for group in dict.fromkeys(shape.group for _, shape in measured):
        table.add_section()
        peer = best_peer(measured, group, ours)
        for (who, shape), sample in measured.items():
            if shape.group == group:
                verdict = _verdict(shape, sample, peer) if who is ours else ""
                table.add_row(*_cells(who, shape, sample, peer), verdict, style="bold" if who is ours else None)
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


def _verdict(shape: Shape, sample: Sample, peer: tuple[Contender, Sample] | None) -> str:
    if peer is None:
        return ""
    wanted = RATIO_WANTED.get(shape.group, 1.0)
    met = sample.decisions_per_s >= wanted * peer[1].decisions_per_s
    return f"{'met' if met else 'missed'} ({wanted:g} x)"


def _times(ratio: float | None) -> str:
    return f"{ratio:.2f}" if ratio is not None else ""


def _figures_table(title: str, figures: Sequence[Figure]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("wanted", justify="right")
    for figure in figures:
        shown = f"{figure.value:,.2f}" if figure.unit in FINE_UNITS else f"{figure.value:,.0f}"
        wanted = "" if figure.at_most is None else f"{_met(figure)} (at most {figure.at_most:,g})"
        table.add_row(figure.name, f"{shown} {figure.unit}", wanted)
    return table


def _met(figure: Figure) -> str:
    return "met" if figure.at_most is not None and figure.value <= figure.at_most else "missed"


def show_machine(console: Console, machine: Machine, disk: Syncs) -> None:
    """Before anything is measured, so that a warning comes in time."""
    console.print(f"{machine.cores} cores ({machine.cpu}), {machine.system}, {machine.python}, {machine.file_system}")
    console.print(f"fdatasync of 4 KiB: p50 {disk.p50_ms:.2f} ms, p99 {disk.p99_ms:.2f} ms")
    if machine.warning is not None:
        console.print(f"[yellow]note:[/] {machine.warning}")
