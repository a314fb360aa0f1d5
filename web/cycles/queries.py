"""What stands behind the `?`: each filter read once, and none that nobody here would serve."""

from __future__ import annotations

from collections.abc import Collection

from aiohttp import web

from web.bodies import shown
from web.cycles.refusals import invalid
from web.cycles.subject import LEVELS
from web.moments import parse_moment

LIMIT_MAX = 200
LIMIT_DEFAULT = 50
CURSOR_MAX = 2**63 - 1


class Query:
    """The parameters of one request. A blank one is as good as none.

    Raises `Refused` 400 for what is not known: to leave a filter out of account would be a wrong answer.
    """

    def __init__(self, request: web.Request, known: Collection[str]) -> None:
        self._said: dict[str, str] = {}
        for name, value in request.query.items():
            if name not in known:
                raise invalid(shown(name), f"not known here; this route reads {', '.join(known)}")
            if name in self._said:
                raise invalid(name, "given twice")
            self._said[name] = value

    def said(self, name: str) -> str | None:
        return self._said.get(name) or None

    def levels(self) -> dict[str, str]:
        return {level: value for level in LEVELS if (value := self.said(level))}

    def limit(self) -> int:
        limit = self.number("limit") if self.said("limit") is not None else LIMIT_DEFAULT
        if not 1 <= limit <= LIMIT_MAX:
            raise invalid("limit", f"expected 1 to {LIMIT_MAX}")
        return limit

    def number(self, name: str) -> int:
        """A whole number, 0 where none is said."""
        said = self.said(name)
        if said is None:
            return 0
        if not (said.isascii() and said.isdigit() and len(said) <= 19 and int(said) <= CURSOR_MAX):
            raise invalid(name, "expected a whole number" if name != "cursor" else "expected what an answer gave")
        return int(said)

    def flag(self, name: str) -> bool:
        said = self.said(name)
        if said not in (None, "true", "false"):
            raise invalid(name, "expected true or false")
        return said == "true"

    def one_of(self, name: str, known: Collection[str]) -> str | None:
        said = self.said(name)
        if said is not None and said not in known:
            raise invalid(name, f"expected one of {', '.join(known)}")
        return said

    def moment_ms(self, name: str) -> int | None:
        """A time as RFC 3339, in ms."""
        said = self.said(name)
        return None if said is None else parse_moment(said, field=name) // 1_000_000
