"""Looks into the past for one web process: the wallet at a moment, one call's life. One at a time, apart, and bounded.

Each is a process of its own (`projector.audit.looking`), which ends as soon as nobody waits for it. What was found
about a moment that is over never changes, so it is kept for whoever asks next.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import structlog

from engine.errors import NoAnswer
from projector.audit.looking import Look, LookAtLife, LookAtMoment, Seen, SeenLife, look_apart
from projector.audit.moment import Moment
from web.moments import NS_PER_S
from web.problems import Problem, unavailable
from web.settings import Settings

WAITING_MAX = 8  # looks that wait for the one that runs
KEPT_MAX = 512  # moments
OVER_AFTER_S = 60  # so long after a moment nothing will be decided at it, whatever the clocks of a cluster say

Looking: TypeAlias = Callable[[Look], Awaitable[Seen]]

log = structlog.get_logger()


class Lookback:
    """`looking`: who looks; a process of its own, unless a test brings another."""

    def __init__(self, settings: Settings, *, looking: Looking = look_apart) -> None:
        self._wallet, self._url = settings.wallet, settings.nats_url
        self._data = str(settings.data) if settings.data is not None else ""
        self._looking = looking
        self._one = asyncio.Lock()
        self._waiting = 0
        self._kept: OrderedDict[int, Moment] = OrderedDict()

    async def moment(self, at: int, *, now: int) -> Moment:
        """The wallet at `at` (ns, not after `now`). Raises `Problem` 503, and `PurseError` where nobody knows."""
        if at in self._kept:
            self._kept.move_to_end(at)
            return self._kept[at]
        seen = await self._look(LookAtMoment(self._wallet, at, self._url, self._data))
        assert seen.moment is not None
        if now - at > OVER_AFTER_S * NS_PER_S:
            self._kept[at] = seen.moment
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        return seen.moment

    async def life(self, id: str, *, after: int | None, scales: Mapping[str, int]) -> SeenLife:
        """What names this call behind sequence `after` (None: lately). Raises as `moment` does."""
        seen = await self._look(LookAtLife(self._wallet, id, after, dict(scales), self._url))
        assert seen.life is not None
        return seen.life

    async def _look(self, what: Look) -> Seen:
        if self._waiting >= WAITING_MAX:
            raise unavailable("overloaded", "Too many are looking into the past at this moment; ask again.")
        self._waiting += 1
        try:
            async with self._one:
                seen = await self._looking(what)
        except TimeoutError:
            raise _too_far() from None
        finally:
            self._waiting -= 1
        if seen.untrusted:
            log.error("past_not_trusted", why=seen.untrusted)
            raise Problem(503, "not-trusted", "What is on record here contradicts itself, so it is not shown.")
        if seen.error:
            raise NoAnswer(seen.error)
        return seen


def _too_far() -> Problem:
    detail = "It would take too long to read up to this moment. `purse audit DAY` once leaves snapshots of that day."
    return Problem(503, "too-far", detail)
