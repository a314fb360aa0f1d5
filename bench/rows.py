"""What a run leaves for programs: `results.json`. A row is one figure."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Row(msgspec.Struct, frozen=True):
    """One figure. `target` is in the figure's own unit, made from the same run where a peer is what it is measured by.

    `peer`, `ratio`: the best durable peer over a network in the same run, and the value over the peer's:
    above 1 is better for decisions, below 1 for times.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    met: bool | None = None
    peer: str | None = None
    ratio: float | None = None


class Results(msgspec.Struct, frozen=True):
    """What stands in `results.json`. `failed`: what could not be measured, and of what."""

    rows: list[Row]
    machine: dict[str, str | int | float]
    seconds: float
    runs: int
    took_s: float
    failed: list[str]


def write(path: Path, results: Results) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")


def read(path: Path) -> Results:
    return msgspec.json.decode(path.read_bytes(), type=Results)
