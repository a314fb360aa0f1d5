"""What the READMEs say is so: their commands and links work, their examples parse, their tables name every file."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest

from commonpurse.__main__ import purse
from web import alerts, estimate, health, operating, spending, watching
from web.routes import Route

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
READMES = [ROOT / "README.md", *sorted(ROOT.glob("[!.]*/README.md")), *sorted(ROOT.glob("web/*/README.md")), *GUIDES]
TABLED = {
    "engine": ("", "core/", "prices/"),
    "projector": (
        "",
        "days/",
        "audit/",
        "whatif/",
        "backfill/",
        "export/",
        "seals/",
        "observers/",
        "alerts/",
        "delivery/",
    ),
    "web": ("",),
    "web/proxy": ("",),
    "web/cycles": ("",),
    "web/pages": ("",),
    "commonpurse": ("", "client/", "integrations/"),
    "examples": ("",),
}
"""Folders whose README names all that is in them, and the subfolders it names file by file."""

UNNAMED = {"README.md", "py.typed", "__init__.py", "__pycache__"}
ROUTES = (
    *spending.ROUTES, *estimate.ROUTES, *operating.ROUTES, *watching.ROUTES, *alerts.ROUTES, *health.ROUTES,
)  # fmt: skip

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
_FILE = re.compile(r"(?:[\w.-]+/)*[\w-]+\.(?:py|md|js|css|html|toml|yaml)|(?:[\w.-]+/)+")
_THE_READERS_OWN = {"purse.toml"}  # files that whoever reads this writes


def readme(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def fences(text: str, *kinds: str) -> list[str]:
    return [body for kind, body in _FENCE.findall(text) if kind in kinds]


def spans(text: str) -> list[str]:
    """What stands in backticks outside of the examples."""
    return _SPAN.findall(_FENCE.sub("", text))


def commands(text: str) -> Iterator[str]:
    """Everything that is written to be typed: the lines of shell examples, and what stands in backticks."""
    yield from spans(text)
    for example in fences(text, "sh", "bash", "console"):
        yield from example.replace("\\\n", " ").splitlines()


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


every_readme = pytest.mark.parametrize("path", READMES, ids=named)


# --- what can be typed ------------------------------------------------------------------------------------------------


@every_readme
def test_its_make_targets_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {target for line in commands(readme(path)) for target in re.findall(r"(?:^|\s)make ([a-z]+)", line)}
    assert asked <= targets


@every_readme
def test_its_purse_commands_exist(path: Path) -> None:
    for line in commands(readme(path)):
        for words in re.findall(r"(?:^|\s)purse((?: [a-z]+)+)", line):
            check_command(words.split())


def check_command(words: list[str]) -> None:
    """`purse` and these words: as far as there are groups, each word is a command of the one before."""
    group: click.Command | None = purse
    for word in words:
        if not isinstance(group, click.Group):
            return  # an argument
        with click.Context(group) as ctx:
            found = group.get_command(ctx, word)
        assert found is not None, f"there is no `{group.name} {word}`"
        group = found


def test_the_front_page_names_every_command() -> None:
    front = " ".join(commands(readme(ROOT / "README.md")))
    with click.Context(purse) as ctx:
        missing = [name for name in purse.list_commands(ctx) if not re.search(rf"(?<![\w-]){name}(?![\w-])", front)]
    assert missing == []


# --- examples ---------------------------------------------------------------------------------------------------------


@every_readme
def test_its_python_and_json_examples_parse(path: Path) -> None:
    for example in fences(readme(path), "python", "py"):
        compile(example, named(path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for example in fences(readme(path), "json"):
        json.loads(example)


@every_readme
def test_its_curl_examples_are_requests_the_api_takes(path: Path) -> None:
    for example in fences(readme(path), "sh", "bash", "console"):
        for line in example.replace("\\\n", " ").splitlines():
            if line.startswith("curl "):
                check_curl(line)


def check_curl(line: str) -> None:
    words = shlex.split(line, comments=True)
    url = next(word for word in words if word.startswith("http"))
    body = words[words.index("-d") + 1] if "-d" in words else None
    method = words[words.index("-X") + 1] if "-X" in words else "GET" if body is None else "POST"
    address = re.sub(r"^https?://[^/]+|\?.*$", "", url)
    found = [route for route in ROUTES if route.method == method and matches(route, address)]
    assert found, f"no route takes {method} {address}"
    if body is not None:
        assert found[0].takes is not None
        msgspec.json.decode(body, type=found[0].takes)


def matches(route: Route, address: str) -> bool:
    return re.fullmatch(re.sub(r"{\w+}", "[^/]+", route.path), address) is not None


# --- files ------------------------------------------------------------------------------------------------------------


@every_readme
def test_its_links_resolve(path: Path) -> None:
    found = (first or second for first, second in _LINK.findall(_FENCE.sub("", readme(path))))
    local = {link.partition("#")[0] for link in found if not re.match(r"https?:|#", link)}
    assert {link for link in local if not (path.parent / link).exists()} == set()


@every_readme
def test_it_names_no_file_that_is_not_there(path: Path) -> None:
    files = {span for span in spans(readme(path)) if _FILE.fullmatch(span)} - _THE_READERS_OWN
    folders = [path.parent, ROOT, ROOT / "engine"]
    assert {file for file in files if not any((folder / file).exists() for folder in folders)} == set()


@pytest.mark.parametrize("folder", TABLED)
def test_its_table_names_every_file_of_its_folder(folder: str) -> None:
    table = set(re.findall(r"^\| `([^`]+)` \|", readme(ROOT / folder / "README.md"), re.MULTILINE))
    there = {name for sub in TABLED[folder] for name in contents(ROOT / folder, sub)}
    assert there - set(TABLED[folder]) - table == set()


def contents(folder: Path, sub: str) -> Iterator[str]:
    """The files in a folder, and its subfolders with a slash, as a table names them."""
    for each in (folder / sub).iterdir():
        if each.name not in UNNAMED and not each.name.startswith("."):
            yield f"{sub}{each.name}{'/' if each.is_dir() else ''}"


def test_the_front_page_tells_where_every_folder_of_the_source_is() -> None:
    rows = re.findall(r"^\| \[?([a-z]+)/", readme(ROOT / "README.md"), re.MULTILINE)
    source = {
        each.name for each in ROOT.iterdir() if each.is_dir() and (any(each.rglob("*.py")) or each.name == "docs")
    }
    assert set(rows) == {name for name in source if not name.startswith(".")}


def test_the_readmes_are_looked_at() -> None:
    assert {named(path) for path in READMES} >= {"README.md", *(f"{folder}/README.md" for folder in TABLED)}
