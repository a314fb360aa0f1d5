"""A budget against slowing: how many steps of Python's own code ten thousand decisions take.

Times do not repeat on a busy machine, counts of bytecode do. They say nothing of what happens within C, and every minor
version of Python has its own. The recorded ones stand in `decision_cost.json`; after a change that is meant to cost
more, `python -m tests.unit.test_decision_cost` records those of the Python it runs under.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from bench.core import ASKS, Pairs, Teller
from engine.core.messages import AnyAsk, Entry

RECORDED = Path(__file__).with_name("decision_cost.json")
DECISIONS = 10_000
MOST = 1.1
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def steps(work: Callable[[], object]) -> int:
    """How many bytecodes `work` runs."""
    count = 0

    def on_event(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if event == "call":
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
        elif event == "opcode":
            count += 1
        return on_event

    before = sys.gettrace()
    sys.settrace(on_event)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def counted() -> dict[str, int]:
    """Steps of deciding, and of taking in what was decided."""
    few = Pairs(ASKS)  # fills what is remembered between calls; and 3.12 counts from the second time on
    steps(lambda: few.decide(Teller()))
    pairs = Pairs(DECISIONS // 2)
    entries: list[Entry] = []
    decided = steps(lambda: entries.extend(_decide(Teller(), pairs.messages)))
    folded = steps(lambda: _fold(Teller(), pairs.messages, entries))
    return {"decide": decided, "fold": folded}


def _decide(teller: Teller, messages: list[list[AnyAsk]]) -> list[Entry]:
    return [teller.entry(asks) for asks in messages]


def _fold(teller: Teller, messages: list[list[AnyAsk]], entries: list[Entry]) -> None:
    for asks, entry in zip(messages, entries, strict=True):
        teller.fold(asks, entry)


def recorded() -> dict[str, dict[str, int]]:
    return msgspec.json.decode(RECORDED.read_bytes(), type=dict[str, dict[str, int]])


def test_ten_thousand_decisions_take_no_more_steps_than_recorded() -> None:
    known = recorded().get(VERSION)
    if known is None:
        pytest.skip(f"nothing is recorded for Python {VERSION}: python -m tests.unit.test_decision_cost")
    now = counted()
    assert now.keys() == known.keys()
    assert all(now.values()), "nothing was counted"
    slower = {
        what: f"{now[what]:,} steps, recorded are {known[what]:,}" for what in now if now[what] > MOST * known[what]
    }
    assert not slower


def test_the_count_repeats() -> None:
    pairs = Pairs(ASKS)
    steps(lambda: pairs.decide(Teller()))
    assert steps(lambda: pairs.decide(Teller())) == steps(lambda: pairs.decide(Teller()))


if __name__ == "__main__":
    RECORDED.write_bytes(msgspec.json.format(msgspec.json.encode({**recorded(), VERSION: counted()}), indent=2) + b"\n")
