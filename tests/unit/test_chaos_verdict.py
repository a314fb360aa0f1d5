"""The verdict after a storm is only worth something if it sees every kind of loss: each is shown to it once here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from bench.chaos.deeds import NARROW, WIDE, Deed, Heard
from bench.chaos.verdict import Line, Record, differences
from commonpurse.proof import Metered, Proof
from engine.core.documents import BudgetStatus, Status

HELD, SETTLED = Heard("held", 1, 2), Heard("settled", 3, 4)
OVER_HTTP = {"held": Heard("held", 0, 2), "settled": Heard("settled", 0, 4)}
DEED = Deed("a", WIDE, 10, HELD, 0.1, cost=7, settled=SETTLED)


def deed(**changed: Any) -> Deed:
    return msgspec.structs.replace(DEED, **changed)


def record(
    holds: list[Line] | None = None, settles: list[Line] | None = None, given_up: list[Line] | None = None
) -> Record:
    found = Record()
    found.holds["a"] = [Line(HELD)] if holds is None else holds
    found.settles["a"] = [Line(SETTLED, 7)] if settles is None else settles
    found.given_up["a"] = given_up or []
    return found


def seen(done: Deed, there: Record, *, proved: int = 7, shown: int = 7) -> list[str]:
    meter = Metered(WIDE, None, "total", "usd", limit=100, settled=proved)
    proof = Proof("main", 4, 2, 2, 0, {}, [meter], "")
    budget = BudgetStatus(WIDE, "usd", 9, "total", "UTC", "total", 0, 0, limit=100, settled=shown, held=0, extra=0)
    found = list(differences([done], there, proof, Status("main", 3, 1, "", [budget])))
    assert found.pop().startswith(NARROW), "nobody used that lane here, so it has no meter"
    return found


def test_what_is_as_it_must_be_is_no_difference() -> None:
    assert seen(DEED, record()) == []


LOSSES: list[tuple[str, Callable[[], list[str]]]] = [
    ("heard Heard", lambda: seen(DEED, record(holds=[]))),
    ("heard Heard", lambda: seen(deed(held=Heard("held", 1, 5)), record())),
    ("its settle heard", lambda: seen(deed(settled=Heard("settled", 3, 9)), record())),
    ("decided 2 times", lambda: seen(DEED, record(holds=[Line(HELD), Line(Heard("held", 5, 6))]))),
    ("decided 2 times", lambda: seen(DEED, record(holds=[Line(Heard("exhausted", 5, 6)), Line(HELD)]))),
    (r"7 was handed over, \[\] was charged", lambda: seen(DEED, record(settles=[Line(Heard("again", 3, 4))]))),
    (r"7 was handed over, \[7, 7\]", lambda: seen(DEED, record(settles=[Line(SETTLED, 7), Line(SETTLED, 7)]))),
    ("nothing was handed over", lambda: seen(deed(cost=None, settled=None), record())),
    ("giving up charged", lambda: seen(DEED, record(given_up=[Line(Heard("settled", 5, 6), 3)]))),
    ("its settle was told", lambda: seen(DEED, record(settles=[Line(SETTLED, 7), Line(Heard("stray", 5, 6), 7)]))),
    ("to the callers", lambda: seen(DEED, record(), proved=8)),
    ("to the callers", lambda: seen(DEED, record(), shown=0)),
]


@pytest.mark.parametrize("number", range(len(LOSSES)))
def test_every_kind_of_loss_is_seen(number: int) -> None:
    said, look = LOSSES[number]
    assert any(re.search(said, line) for line in look())


def test_over_http_the_first_answer_may_be_shown_again() -> None:
    twice = [Line(HELD), Line(Heard("again", 5, 6))]
    assert seen(deed(held=Heard("held", 0, 6), settled=OVER_HTTP["settled"]), record(holds=twice)) == []
    assert seen(deed(**OVER_HTTP), record()) == []
    assert seen(deed(held=Heard("held", 0, 6)), record()) != []
    assert seen(deed(held=Heard("exhausted", 0, 2)), record()) != []


def test_who_asks_anew_may_be_refused_before_and_held_again_only_after_giving_up() -> None:
    anew = deed(asked_anew=True)
    assert seen(anew, record(holds=[Line(Heard("exhausted", 5, 6)), Line(HELD)])) == []
    twice = [Line(Heard("held", 5, 6)), Line(HELD)]
    assert seen(anew, record(holds=twice)) != []
    assert seen(anew, record(holds=twice, given_up=[Line(Heard("settled", 7, 8))])) == []
