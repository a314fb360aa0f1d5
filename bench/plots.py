"""`python -m bench.plots`: draws what stands in `results.json`: what a decision costs by load, by users, by history.

`make bench` does it by itself at the end. The pictures are part of `docs/performance.md`. A curve of somebody who was
not measured is left out; so is a picture of which nothing was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bench import rows
from bench.chart import Curve, Panel, draw
from bench.growth import IDS, METERS, ids_name, kept_name, meters_name
from bench.peers import PEERS
from bench.purse import PURSE
from bench.restart import COUNTS, snapshot_name, zero_name
from bench.rows import Results

FOLDER = Path(__file__).parents[1] / "docs" / "plots"
RESULTS = Path(__file__).with_name("results.json")
NETWORKED = [PURSE, *[peer for peer in PEERS if peer.networked]]


def draw_all(results: Results, folder: Path) -> list[Path]:
    """Write `load.svg`, `users.svg` and `history.svg`. Returns what was written."""
    values = {row.name: row.value for row in results.rows}
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, title, panels in (
        ("load", "Cost against load", _load(values)),
        ("users", "Cost against users", _users(values)),
        ("history", "Cost against history", _history(values)),
    ):
        shown = [panel for panel in panels if panel.curves]
        if shown:
            path = folder / f"{name}.svg"
            path.write_text(draw(title, shown, _caption(results)), encoding="utf-8")
            written.append(path)
    return written


def _load(values: Mapping[str, float]) -> list[Panel]:
    callers = "callers, each with one ask under way"
    return [
        Panel("Decisions a second", callers, "1/s, logarithmic", list(_of_all(values, "decisions"))),
        Panel(
            "Time of one ask, p50, and dashed p99", callers, "ms, logarithmic",
            [*_of_all(values, "p50"), *_of_all(values, "p99", dashed=True)],
        ),
    ]  # fmt: skip


def _of_all(values: Mapping[str, float], what: str, *, dashed: bool = False) -> Iterator[Curve]:
    for colour, who in enumerate(NETWORKED):
        names = {
            shape.callers: f"{who.name}, {shape.title}: {what}"
            for shape in who.shapes
            if shape.asks == 1 and not shape.settles
        }
        yield from _curve(who.name, {count: names[count] for count in sorted(names)}, values, colour, dashed=dashed)


def _users(values: Mapping[str, float]) -> list[Panel]:
    users = "users, each with a meter"
    return [
        Panel("A decision, the core alone", users, "µs of CPU", list(_each("a hold", METERS, meters_name, values)),
              log_y=False),
        Panel("What the wallet keeps", users, "MB, logarithmic; one settled call a user remembered",
              list(_each("memory", METERS, kept_name, values, 1))),
    ]  # fmt: skip


def _history(values: Mapping[str, float]) -> list[Panel]:
    starts = [
        *_each("from zero", COUNTS, zero_name, values, 1),
        *_each("with a snapshot", COUNTS, snapshot_name, values, 3),
    ]
    return [
        Panel("A decision, the core alone", "ids remembered", "µs of CPU",
              list(_each("a hold", IDS, ids_name, values)), log_y=False),
        Panel("Until an engine is ready again", "asks on the stream", "s, logarithmic", starts),
    ]  # fmt: skip


def _each(
    name: str, counts: Sequence[int], name_of: Callable[[int], str], values: Mapping[str, float], colour: int = 0
) -> Iterator[Curve]:
    yield from _curve(name, {count: name_of(count) for count in counts}, values, colour)


def _curve(
    name: str, at: Mapping[int, str], values: Mapping[str, float], colour: int, *, dashed: bool = False
) -> Iterator[Curve]:
    """Where at least two of its points were measured."""
    points = [(float(x), values[row]) for x, row in at.items() if row in values]
    if len(points) > 1:
        yield Curve(name, points, colour, dashed)


def _caption(results: Results) -> str:
    facts = results.machine
    return (
        f"Source: `make bench` on {facts['day']}, median of {results.runs}, bench/results.json. {facts['cores']} cores "
        f"({facts['cpu']}), {facts['system']}, {facts['python']}; fdatasync of 4 KiB takes "
        f"{facts['fdatasync_4k_p50_ms_before']} ms (p50); load of the machine before: {facts['load']:.1f}."
    )


if __name__ == "__main__":
    for each in draw_all(rows.read(RESULTS), FOLDER):
        print(each)
