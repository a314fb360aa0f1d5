"""The arithmetic of one budget in one period, line by line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.meter import Meter

TABLE = """
what                  | settled | held | figure | extra | base | used
hold 40               |       0 |   40 |      0 |     0 |    0 |   40
settle 30 of 40       |      30 |    0 |      0 |     0 |   30 |   30
observe 50            |      30 |    0 |     50 |    20 |   50 |   50
hold 10               |      30 |   10 |     50 |    20 |   50 |   60
settle 10 of 10       |      40 |    0 |     50 |    20 |   60 |   60
observe 55            |      40 |    0 |     55 |    20 |   60 |   60
observe 70            |      40 |    0 |     70 |    30 |   70 |   70
observe 60            |      40 |    0 |     70 |    30 |   70 |   70
take back 15          |      25 |    0 |     70 |    45 |   70 |   70
settle 5 of 0         |      30 |    0 |     70 |    45 |   75 |   75
take back 3           |      27 |    0 |     70 |    45 |   72 |   72
take back 30          |      -3 |    0 |     70 |    73 |   70 |   70
"""


def meter() -> Meter:
    return Meter("jev", 0, None, "usd", "2026-11-30", 0, 10)


def step(change: Meter, what: str) -> None:
    match what.split():
        case ["hold", amount]:
            change.move(settled=0, held=int(amount))
        case ["settle", amount, "of", held]:
            change.move(settled=int(amount), held=-int(held))
        case ["take", "back", amount]:
            change.move(settled=-int(amount), held=0)
        case ["observe", figure]:
            change.observe(int(figure), as_of=1)
        case _:
            raise AssertionError(what)


def test_every_line_of_the_table_adds_up() -> None:
    kept = meter()
    for line in TABLE.strip().splitlines()[1:]:
        what, *figures = (cell.strip() for cell in line.split("|"))
        step(kept, what)
        found = [kept.settled, kept.held, kept.figure, kept.extra, kept.base, kept.used]
        assert found == [int(figure) for figure in figures], what


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50), st.integers(0, 99)), max_size=8))
def test_the_base_is_never_below_the_figure(moves: list[tuple[int, int, int]]) -> None:
    kept = meter()
    for settled, held, figure in moves:
        promised = kept.used_after(settled=settled, held=held)
        kept.move(settled=settled, held=held)
        assert kept.used == promised
        rise, base = kept.raised_by(figure), kept.base
        kept.observe(figure, as_of=1)
        assert kept.base == base + rise
        assert kept.base >= kept.figure


@pytest.mark.parametrize(("figure", "as_of", "kept"), [(5, 9, (5, 9)), (5, 1, (5, 3)), (4, 9, (5, 3)), (6, 1, (6, 3))])
def test_the_moment_of_the_highest_figure_is_kept(figure: int, as_of: int, kept: tuple[int, int]) -> None:
    observed = meter()
    observed.observe(5, as_of=3)
    observed.observe(figure, as_of=as_of)
    assert (observed.figure, observed.as_of) == kept
