"""The reference is what the code says today, leads where it says, and leaves nothing out."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from reference.configuration_page import explained, keys
from reference.limits_page import found
from reference.markdown import anchor
from reference.pages import FOLDER, PAGES

from engine.core import limits
from web.app import _TABLES
from web.metrics import KINDS

MARKDOWN = sorted(name for name in PAGES if name.endswith(".md"))


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def headings(text: str) -> set[str]:
    return {anchor(line.lstrip("# ")) for line in text.splitlines() if line.startswith("#")}


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_is_as_the_code_makes_it(name: str) -> None:
    assert read(name) == PAGES[name](), "it is stale: run `make reference`"


@pytest.mark.parametrize("name", [*MARKDOWN, "README.md"])
def test_its_links_lead_somewhere(name: str) -> None:
    text = read(name)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, place = link.partition("#")
        target = (FOLDER / file).resolve() if file else FOLDER / name
        assert target.exists(), link
        if place and target.parent == FOLDER:
            assert f"#{place}" in headings(target.read_text(encoding="utf-8")), link


def test_its_front_page_names_every_page() -> None:
    named = set(re.findall(r"\]\(([^)\s#]+)", read("README.md")))
    assert set(PAGES) <= named
    assert {path.name for path in FOLDER.iterdir()} == {*PAGES, "README.md"}


def test_every_route_has_a_section() -> None:
    assert {anchor(route.named) for route in _TABLES} <= headings(read("http.md"))


def test_every_key_and_variable_is_explained_and_no_other() -> None:
    for read_by_the_code, on_the_page in explained():
        assert read_by_the_code == on_the_page


class Table(msgspec.Struct):
    unit: str
    limit: int


def test_a_key_that_nobody_explains_is_an_error() -> None:
    with pytest.raises(KeyError, match="limit"):
        keys(Table, {"unit": "What it counts."})


def test_every_limit_of_the_language_stands_there_with_its_value() -> None:
    named = {name: value for name, value in vars(limits).items() if name.isupper()}
    shown = {one.name: one.value for one in found() if one.module == "engine.core.limits"}
    assert shown == named
    text = read("limits.md")
    assert all(f"| `{name}` |" in text for name in named)


def test_every_metric_stands_there() -> None:
    assert [kind.shown for kind in KINDS] == re.findall(r"^\| `(purse_\w+)`", read("metrics.md"), re.MULTILINE)


def test_it_names_no_place_of_this_machine() -> None:
    root = str(Path(__file__).resolve().parents[2])
    assert not [name for name in PAGES if root in read(name)]
