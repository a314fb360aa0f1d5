"""What could not be measured, so that one contender's failure costs its own rows and no others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

SAID_CHARS = 600


class Troubles:
    """Who failed, and of what, in the order in which it happened. Said at once, and once more at the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._failed: dict[str, str] = {}

    @property
    def failed(self) -> list[str]:
        return [f"{name}: {why}" for name, why in self._failed.items()]

    def has(self, name: str) -> bool:
        """Whether this failed before: then it is not tried again."""
        return name in self._failed

    def add(self, name: str, why: str) -> None:
        self._failed[name] = why
        self._console.print(f"[red]failed:[/] {escape(name)}: {escape(why)}", highlight=False)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Whatever goes wrong in the block is told under this name, and the run goes on. Cancelling is no failure."""
        try:
            yield
        except Exception as error:  # no error of one contender may cost the others' rows; the exit status tells of it
            self.add(name, _first(error))

    def show(self) -> None:
        """At the end, where it is seen."""
        for line in self.failed:
            self._console.print(f"[red]not measured:[/] {escape(line)}", highlight=False)


def _first(error: BaseException) -> str:
    """The first cause of a group, with what was noted about it."""
    notes = [*getattr(error, "__notes__", [])]
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
        notes += getattr(error, "__notes__", [])
    return ". ".join([f"{type(error).__name__}: {error}"[:SAID_CHARS], *(note[-SAID_CHARS:] for note in notes)])
