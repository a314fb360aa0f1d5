"""The fenced blocks of every page that a reader may copy from."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    {ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("[!.]*/README.md"), *ROOT.glob("*/*/README.md")}
)

SHOWN = {"text"}
"""Not to be typed: diagrams, and what a command prints."""

_FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """`place`: page and line. `title`: the file it stands for, if it says one."""

    place: str
    language: str
    title: str | None
    body: str


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    return blocks_in(page.read_text(encoding="utf-8"), name_of(page))


def blocks_in(text: str, page: str) -> list[Block]:
    found = []
    for fence in _FENCE.finditer(text):
        title = _TITLE.search(fence[2])
        line = text.count("\n", 0, fence.start()) + 1
        body = re.sub(rf"^{fence[1]}", "", fence[3], flags=re.MULTILINE)
        found.append(Block(f"{page}:{line}", fence[2].partition(" ")[0], title[1] if title else None, body))
    return found


def commands_in(body: str) -> list[str]:
    """The commands of a shell block, without prompts and comments. A backslash or an open quote goes on."""
    found, begun = [], ""
    for line in re.sub(r"\\\n\s*", "", body).splitlines():
        begun = f"{begun}\n{line}" if begun else line.strip().removeprefix("$ ")
        if is_whole(begun):
            found.append(begun)
            begun = ""
    return [command for command in [*found, begun] if command and not command.startswith("#")]


def is_whole(command: str) -> bool:
    try:
        shlex.split(command, comments=True)
    except ValueError:  # a quote that nobody closed
        return False
    return True
