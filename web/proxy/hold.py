"""One hold from `held` to its end. Whatever happens in its block, and whoever leaves, it ends exactly once.

    before anything was sent                     released
    the provider said what was used              settled at that, exactly, above the grant too
    nobody knows                                 settled at a guess, `estimated`: what was seen, or the whole grant

If the process dies, the hold lapses and is charged: never free. A settle goes through the client, whose spool keeps it
while the stream is away. Nobody's answer waits for it: it is on its way before whoever called can hear that the call is
over and ask again, and goes to the stream before what they ask then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType

import structlog

from engine.core.messages import Again, Amounts, Held, Renew, Settle
from engine.errors import NoAnswer, PurseError
from web.moments import NS_PER_S
from web.purse import Purse

SETTLE_WAIT_S = 2.0  # past the second after which the client puts a settlement on disk
LOOK_S = 0.25  # how often the keeper of a hold looks whether there is something to do
PROGRESS_S = 2.0
PROGRESS_STEPS = 20  # told sooner where another twentieth of the grant is used
RENEW_SHARE = 2  # renewed when 1/2 of its time is over
RENEW_WAIT_S = 5.0
ENDINGS_MAX = 4_096
"""Settlements whose callers have gone on. Past it callers wait for their own: calls must not end faster than that."""

log = structlog.get_logger()


class Endings:
    """Settlements on their way whose calls are over. Whoever opened it waits for them when it closes."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, purse: Purse, ask: Settle) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(_settle(purse, ask))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def crowded(self) -> bool:
        return len(self._tasks) > ENDINGS_MAX

    async def close(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)


async def _settle(purse: Purse, ask: Settle) -> None:
    try:
        await purse.ask(ask, wait_s=SETTLE_WAIT_S)
    except NoAnswer as error:
        log.warning("settle_unheard", hold=ask.hold, kept=error.kept)  # the client goes on with it
    except PurseError as error:
        log.error("settle_failed", hold=ask.hold, error=type(error).__name__)  # the hold lapses and is charged


class OpenHold:
    """`async with`: its end is settled when the block ends, by what was said last."""

    def __init__(self, purse: Purse, endings: Endings, held: Held) -> None:
        self.held = held
        self.allowance_gone = False
        self._purse, self._endings = purse, endings
        self._ending = Settle(hold=held.id, release=True)
        self._watched: Callable[[], Amounts] = dict
        self._told: Amounts = {}
        self._told_at = self._began = time.monotonic()
        self._keeper: asyncio.Task[None] | None = None
        self._keeps_later: asyncio.TimerHandle | None = None

    # --- what is known of its end -------------------------------------------------------------------------------------

    def sending(self) -> None:
        """From here on the call may have happened: unless more becomes known it costs its grant."""
        self.guess(self.held.amounts)

    def release(self) -> None:
        """It did not happen."""
        self._ending = Settle(hold=self.held.id, release=True)

    def exact(self, amounts: Amounts) -> None:
        """The provider says that it cost this."""
        self._ending = Settle(hold=self.held.id, amounts=amounts)

    def guess(self, amounts: Amounts) -> None:
        """Nobody says what it cost; no less than this."""
        self._ending = Settle(hold=self.held.id, amounts=amounts, estimated=True)

    def watch(self, seen: Callable[[], Amounts]) -> None:
        """What it has cost so far by our own count: on the record now and then, as far as it was granted."""
        self._watched = seen

    # --- its life -----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> OpenHold:
        self._keeps_later = asyncio.get_running_loop().call_later(LOOK_S, self._begin_to_keep)
        return self

    def _begin_to_keep(self) -> None:
        """Most calls are over before anything is to be kept: they need no keeper."""
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The settle is on its way before this returns: whoever cancels this cannot stop it."""
        ending = self._endings.begin(self._purse, self._ending)
        if self._keeps_later is not None:
            self._keeps_later.cancel()
        if self._keeper is not None:
            self._keeper.cancel()
            if self._keeper.done() and not self._keeper.cancelled():
                self._keeper.result()  # a bug of ours: it never ends by itself
        if self._endings.crowded:
            await asyncio.shield(ending)

    async def _keep(self) -> None:
        """Tell progress, and renew the hold while the call runs."""
        length_s = max(1.0, (self.held.expires_at - self.held.at) / NS_PER_S)
        n, renew_at = 1, self._began + length_s / RENEW_SHARE
        while True:
            try:
                await self._tell_progress()
                if time.monotonic() >= renew_at:
                    renewed = await self._renew(n)
                    n, renew_at = n + 1, time.monotonic() + length_s / RENEW_SHARE if renewed else float("inf")
            except PurseError:
                pass  # the next look tries again; a hold that runs out meanwhile is charged
            await asyncio.sleep(LOOK_S)

    async def _tell_progress(self) -> None:
        granted = self.held.amounts
        seen = {unit: min(amount, granted.get(unit, amount)) for unit, amount in self._watched().items()}
        rise = max((amount - self._told.get(unit, 0) for unit, amount in seen.items()), default=0)
        much = any(
            (amount - self._told.get(unit, 0)) * PROGRESS_STEPS >= granted.get(unit, 0) for unit, amount in seen.items()
        )
        if rise > 0 and (much or time.monotonic() - self._told_at >= PROGRESS_S):
            self._told_at = time.monotonic()
            await self._purse.ask(Settle(hold=self.held.id, amounts=seen, final=False), wait_s=SETTLE_WAIT_S)
            self._told = seen

    async def _renew(self, n: int) -> bool:
        """False: it will not be renewed, now or ever; the call goes on, and is settled late."""
        answered = await self._purse.ask(Renew(hold=self.held.id, n=n), wait_s=RENEW_WAIT_S)
        if isinstance(answered.outcome, Held | Again):
            return True
        log.warning("not_renewed", hold=self.held.id, outcome=type(answered.outcome).__name__)
        return False
