"""The page of faults is honest: every fault stands there once, and every test it names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "faults.md").read_text()
ROWS = re.findall(r"^\| ([A-M]\d+) \| (.+?) \| (.+) \|$", PAGE, re.MULTILINE)
TESTS = frozenset(
    name for file in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", file.read_text())
)
PARTS_TO_COME = ("proxies", "alerts", "crash work")

IDS = {
    "A": (1, 3, 4, 5, 6, 8, 9, 11, 12, 13, 14, 15),
    "B": (1, 2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25),
    "C": (1, 2, 3, 4, 7, 10, 11, 12, 13, 14, 16, 17, 18, 19),
    "D": (1, 2, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17),
    "E": (1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 14, 15, 16),
    "F": (1, 2, 3, 4, 6, 8, 9, 10, 11),
    "G": (1, 3, 4),
    "H": (1, 2, 3, 4, 5, 6),
    "I": (1, 2, 3, 5),
    "J": (1, 2, 3, 5, 6, 7, 9),
    "K": (1, 2, 4, 6, 7),
    "L": tuple(range(1, 22)),
    "M": tuple(range(1, 20)),
}


def test_every_fault_stands_on_the_page_once_and_in_order() -> None:
    assert [id for id, _, _ in ROWS] == [f"{section}{number}" for section, numbers in IDS.items() for number in numbers]


@pytest.mark.parametrize(("id", "_fault", "held"), ROWS, ids=[id for id, _, _ in ROWS])
def test_every_test_named_for_a_fault_exists(id: str, _fault: str, held: str) -> None:
    named = re.findall(r"`(test_\w+)`", held)
    assert [name for name in named if name not in TESTS] == []
    assert named or held.startswith(("Cannot arise: ", "Comes with: ")), f"{id} is held by nothing and says nothing"


@pytest.mark.parametrize(("id", "_fault", "held"), ROWS, ids=[id for id, _, _ in ROWS])
def test_what_is_to_come_names_the_part_that_brings_it(id: str, _fault: str, held: str) -> None:
    for part in re.findall(r"[Cc]omes with: ([a-z ]+)", held):
        assert part.strip() in PARTS_TO_COME, id


@pytest.mark.parametrize("test", sorted(name for name in TESTS if re.match(r"test_[a-m]\d+_", name)))
def test_a_test_that_bears_a_fault_in_its_name_bears_one_there_is(test: str) -> None:
    for section, number in re.findall(r"(?:test|\d)_([a-m])(\d+)(?=_)", test):
        assert int(number) in IDS[section.upper()], f"{test}: no fault {section.upper()}{number}"
