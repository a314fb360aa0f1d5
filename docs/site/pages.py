"""A hook of mkdocs: which pages there are, in which order, and what a link out of docs/ becomes.

The pages are written to be read in the repository as well, so they link to its files. Each such file comes along: a
README as a page under `inside/`, any other as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
INSIDE = "inside/"
"""Where files of the repository outside of docs/ are in the site."""

READMES = ["CHANGELOG.md", "[!.]*/README.md", "*/*/README.md"]
NOT_PAGES = ("site/", ".venv/", "docs/")

FIRST = {
    "": ["index.md", "start.md", "concepts.md"],
    "guides": ["protect-an-openai-app.md", "guard-a-program.md", "per-user-caps.md", "audit-a-day.md"],
}
"""What comes first in its section; the rest follows by name."""

SECTIONS = {
    "Guides": ["guides/"],
    "Reference": ["reference/", "refusals.md", "words.md"],
    "Operating": ["operating.md", "scaling.md", "performance.md"],
    "Inside": ["internals.md", INSIDE, "testing.md", "faults.md"],
    "Compared": ["comparison.md"],
    "Decisions": ["decisions/"],
}
"""The tabs, each with the pages and folders that are in it. Any page that is in none stands before them."""

_CODE = re.compile(r"^( *)(```+).*?^\1\2$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r" {0,3}(?:[-*]|\d+\.) ")
_LINK = re.compile(r"(?<=\]\()[^)\s]+(?=\))|(?<=src=\")[^\"]+|(?<=srcset=\")[^\"]+|(?<=href=\")[^\"]+")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the READMEs and all they or the pages link to, and says the order."""
    waiting = [path for pattern in READMES for path in sorted(ROOT.glob(pattern))]
    known = {file.src_uri for file in files}
    for page in files.documentation_pages():
        waiting += linked(ROOT / "docs" / page.src_uri)
    while waiting:
        path = waiting.pop()
        if (uri := site_uri(path)) in known or str(path.relative_to(ROOT)).startswith(NOT_PAGES):
            continue
        known.add(uri)
        files.append(File.generated(config, uri, abs_src_path=str(path)))
        if path.suffix == ".md":
            waiting += linked(path)
    config.nav = order([file.src_uri for file in files.documentation_pages()])
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Turns links between files of the repository into links between pages of the site."""
    here = repository_path(page.file.src_uri)
    return prose(spaced(markdown), lambda text: _LINK.sub(lambda found: moved(found[0], here, page.file.src_uri), text))


def linked(page: Path) -> Iterator[Path]:
    """The files of the repository that a page links to, outside of its code."""
    for link in _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
        if is_local(link) and (path := target(page, link.partition("#")[0])).is_file():
            yield path


def moved(link: str, page: Path, uri: str) -> str:
    """The same link, from page to page of the site."""
    if not is_local(link):
        return link
    name, hash_, anchor = link.partition("#")
    return relpath(site_uri(target(page, name)), str(PurePosixPath(uri).parent)) + hash_ + anchor


def is_local(link: str) -> bool:
    return re.match(r"[a-z]+:|#|/", link) is None


def target(page: Path, name: str) -> Path:
    """The file a link leads to; of a folder, its README."""
    path = Path(normpath(page.parent / name))
    return path / "README.md" if path.is_dir() else path


def site_uri(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    return name.removeprefix("docs/") if name.startswith("docs/") else INSIDE + name


def repository_path(uri: str) -> Path:
    return ROOT / (uri.removeprefix(INSIDE) if uri.startswith(INSIDE) else f"docs/{uri}")


def prose(text: str, change: Any) -> str:
    """The text with `change` done to all that is not code."""
    done, at = [], 0
    for code in _CODE.finditer(text):
        done += [change(text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*done, change(text[at:])])


def spaced(text: str) -> str:
    """Lists and tables as Python's Markdown sees them: behind an empty line, and four spaces deeper each time."""
    done: list[str] = []
    is_code = in_list = in_table = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            item, row = _ITEM.match(line) is not None, line.startswith("|")
            if done and done[-1].strip() and ((item and not in_list) or (row and not in_table)):
                done.append("")
            in_list = item or (in_list and (not line or line.startswith("  ")))
            in_table = row
            line = re.sub(r"^ {2,3}(?=\S)", "    ", line)
        done.append(line)
    return "\n".join(done)


def order(pages: list[str]) -> list[Any]:
    """Sections and the pages in them, as mkdocs wants it."""
    nav: list[Any] = []
    left = sorted(pages, key=place)
    for title, named in SECTIONS.items():
        there = [page for name in named for page in left if page == name or (name[-1] == "/" and page.startswith(name))]
        left = [page for page in left if page not in there]
        if there:
            nav.append({title: there})
    return [*left, *nav]


def place(uri: str) -> tuple[bool, int, str]:
    """First what is named first in its section, then by name."""
    section, _, name = uri.rpartition("/")
    first = FIRST.get(section, [])
    return name not in first, first.index(name) if name in first else 0, uri
