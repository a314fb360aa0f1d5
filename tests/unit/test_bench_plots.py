"""The pictures of a run show what it measured, in axes with units, and are the same bytes for the same figures."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.chart import Curve, Panel, draw
from bench.growth import IDS, METERS, ids_name, kept_name, meters_name
from bench.plots import draw_all
from bench.restart import COUNTS, snapshot_name, zero_name
from bench.rows import Results, Row

MACHINE: dict[str, str | int | float] = {
    "cores": 2, "cpu": "a <cpu> & more", "system": "Linux", "python": "CPython 3.11", "load": 0.2, "day": "2026-12-01",
    "fdatasync_4k_p50_ms_before": 0.2,
}  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"


def results(rows: list[Row]) -> Results:
    return Results(rows, MACHINE, 3.0, 5, 1_200, [])


def whole_run() -> Results:
    rows = []
    for who in ("Common Purse", "Redis"):
        for number, callers in enumerate(("1 caller", "16 callers", "64 callers", "256 callers", "1,024 callers")):
            rows.append(Row(f"{who}, {callers}: decisions", 500.0 * 3**number, "1/s"))
            rows += [Row(f"{who}, {callers}: {what}", 1.0 + number, "ms") for what in ("p50", "p99")]
    rows += [Row(ids_name(count), 6.0, "us") for count in IDS]
    rows += [Row(of(count), 7.0, "us") for count in METERS for of in (meters_name, kept_name)]
    rows += [Row(of(count), count / 1e5, "s") for count in COUNTS for of in (zero_name, snapshot_name)]
    return results(rows)


def texts(path: Path) -> list[str]:
    return [text.text or "" for text in ElementTree.parse(path).iter(f"{SVG}text")]


def test_a_whole_run_makes_three_pictures(tmp_path: Path) -> None:
    written = draw_all(whole_run(), tmp_path)
    assert [path.name for path in written] == ["load.svg", "users.svg", "history.svg"]
    load, users, history = (" ".join(texts(path)) for path in written)
    for words, wanted in (
        (load, ("1/s", "ms", "callers", "Common Purse", "Redis", "1,024", "a <cpu> & more", "median of 5")),
        (users, ("µs of CPU", "MB", "100,000")),
        (history, ("ids remembered", "1,000,000", "asks on the stream", "with a snapshot", "2026-12-01")),
    ):
        assert [word for word in wanted if word not in words] == []
    assert "PostgreSQL" not in load  # it was not measured
    before = [path.read_bytes() for path in written]
    assert [path.read_bytes() for path in draw_all(whole_run(), tmp_path)] == before


def test_of_nothing_no_picture_is_made(tmp_path: Path) -> None:
    assert draw_all(results([Row("Redis, 1 caller: decisions", 1.0, "1/s")]), tmp_path) == []


def test_pictures_have_colours_for_light_and_for_dark(tmp_path: Path) -> None:
    light, dark = draw_all(whole_run(), tmp_path)[0].read_text().split("@media (prefers-color-scheme: dark)")
    for name in ("--sheet", "--ink", "--c0", "--c4"):
        assert re.search(f"{name}: #", light)
        assert re.search(f"{name}: #", dark)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.3, 40.0], ["0.2", "0.5", "1", "2", "5", "10", "20", "50"]),
        ([100.0, 180_000.0], ["100", "1,000", "10,000", "100,000", "1,000,000"]),
        ([5.0, 5.0], ["0.5", "5"]),
    ],
    ids=["two decades", "four decades", "one value"],
)
def test_a_logarithmic_axis_has_round_ticks_around_all_values(values: list[float], ticks: list[str]) -> None:
    curve = Curve("a", [(1.0, values[0]), (10.0, values[1])])
    drawn = ElementTree.fromstring(draw("t", [Panel("p", "x", "y", [curve])], "c"))
    assert [text.text for text in drawn.iter(f"{SVG}text") if text.get("text-anchor") == "end"] == ticks


def test_an_even_axis_begins_at_nothing() -> None:
    curve = Curve("a", [(1.0, 6.1), (10.0, 7.9)])
    drawn = ElementTree.fromstring(draw("t", [Panel("p", "x", "y", [curve], log_y=False)], "c"))
    ticks = [text.text for text in drawn.iter(f"{SVG}text") if text.get("text-anchor") == "end"]
    assert ticks == ["0", "2", "4", "6", "8"]


def test_higher_values_are_drawn_higher() -> None:
    curve = Curve("a", [(1.0, 10.0), (10.0, 1_000.0)])
    drawn = ElementTree.fromstring(draw("t", [Panel("p", "x", "y", [curve])], "c"))
    low, high = list(drawn.iter(f"{SVG}circle"))[:2]
    assert float(high.get("cy", "0")) < float(low.get("cy", "0"))
    assert float(high.get("cx", "0")) > float(low.get("cx", "0"))
