"""How often strangers may come: counted by the engines for all web processes, by this one where no engine answers.

It slows down and guards no money. Addresses and their hashes stay in memory; a hash leaves in a visit and nowhere else.
"""

from __future__ import annotations

from aiohttp import web

from engine.core import limits
from engine.core.messages import Visit, VisitKind
from engine.core.visits import SECOND_NS, Visits
from web.purse import Purse
from web.settings import Settings
from web.visitors import Visitors


class Slowing:
    """`slowed`: how many visits this process told to wait, by kind."""

    def __init__(self, purse: Purse, settings: Settings, visitors: Visitors) -> None:
        self.slowed: dict[VisitKind, int] = {"ask": 0, "estimate": 0}
        self._purse = purse
        self._visitors = visitors
        self._most: dict[VisitKind, int] = {"ask": settings.asks_per_minute, "estimate": settings.estimates_per_minute}
        self._answer_wait_s = settings.visit_wait_s
        self._visits = Visits()
        self._until = 0
        self._waiting: set[tuple[bytes, VisitKind]] = set()

    async def wait_s(self, request: web.Request, kind: VisitKind) -> int:
        """Count a visit of whoever is behind this request. 0 to go on, else the seconds until they may come again."""
        visitor = self._visitors.of(request, await self._purse.visit_secret())
        seconds = self._told_before(visitor, kind) or await self._count(visitor, kind)
        self.slowed[kind] += bool(seconds)
        return seconds

    def _told_before(self, visitor: bytes, kind: VisitKind) -> int:
        """Whoever was told to wait is told so again without asking: a flood here is none at the engine."""
        left = self._until - self._purse.now()
        return -(-left // SECOND_NS) if left > 0 and (visitor, kind) in self._waiting else 0

    async def _count(self, visitor: bytes, kind: VisitKind) -> int:
        most = self._most[kind]
        own = self._visits.count(visitor, kind, self._purse.now(), most=most)  # always: an engine may fall silent
        counted = await self._purse.visit(Visit(visitor, kind, most), wait_s=self._answer_wait_s) or own
        if counted.until > self._until:
            self._until = counted.until
            self._waiting.clear()
        if counted.until == self._until and counted.wait_s and len(self._waiting) < limits.VISITORS_MAX:
            self._waiting.add((visitor, kind))
        return counted.wait_s
