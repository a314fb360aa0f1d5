"""The wallet's status as documents, and live: each new one is encoded once for all who watch, and the latest wins.

Strangers see names, shares and times, and amounts only where the plan says `public = "amounts"`. Nothing here folds
the stream: the projector does, and this only passes on what it says.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Literal

import msgspec

from engine.core.amounts import format_amount
from engine.core.documents import AlertBrief, Barred, BudgetStatus, Status
from engine.core.messages import (
    Frost,
)
from engine.errors import NoAnswer
from web import statement
from web.bell import Bell
from web.known import Known
from web.moments import format_bound, format_moment
from web.problems import Problem, unavailable
from web.purse import Purse

Audience = Literal["public", "operator"]

INTERVAL_S = 0.25  # at most four documents a second
STALE_S = 5.0  # the projector's heartbeat comes every second
AGE_STEP_S = 1.0
KEEP_ALIVE_S = 15.0
STILL_HERE = b": still here\n\n"
RETRY_MS = 5_000  # how long a browser waits before it connects again
VIEWERS_MAX = 1_000
CATCH_UP_S = 0.5
CATCH_UP_STEP_S = 0.01


# --- documents --------------------------------------------------------------------------------------------------------


def document(status: Status, *, audience: Audience, live: bool) -> dict[str, object]:
    """The status as JSON. `live`: it is no older than a few seconds."""
    frost = statement.freeze_shown(status)
    body: dict[str, object] = {
        "wallet": status.wallet,
        "as_of": format_moment(status.as_of),
        "seq": status.seq,
        "live": live,
        "frozen": None if frost is None else _frost(frost),
        "budgets": [_budget(budget, audience=audience, now=status.as_of) for budget in status.budgets],
        "open_earlier": statement.earlier(status),
    }
    if audience == "operator":
        body |= {
            "plan": status.plan,
            "open_holds": status.open_holds,
            "freezes": [_frost(frozen) for frozen in status.frozen],
            "barred": [_barred(barred) for barred in status.barred],
            "barred_more": status.barred_more,
            "alerts": [_alert(alert) for alert in status.alerts],
        }
    return body


def _frost(frost: Frost) -> dict[str, object]:
    until = None if frost.until is None else format_moment(frost.until)
    return {"scope": frost.scope, "reason": frost.reason, "since": format_moment(frost.since), "until": until}


def _barred(barred: Barred) -> dict[str, object]:
    until = None if barred.until is None else format_moment(barred.until)
    said = {"label": barred.label, "value": barred.value, "reason": barred.reason, "guard": barred.guard}
    return {**said, "until": until}


def _alert(alert: AlertBrief) -> dict[str, object]:
    return {"id": alert.id, "text": alert.text, "at": format_moment(alert.at), "delivered": alert.delivered}


def _budget(budget: BudgetStatus, *, audience: Audience, now: int) -> dict[str, object]:
    share = statement.shares(budget)
    first = budget.first_exhausted_at
    shown = audience == "operator" or budget.public == "amounts"
    body: dict[str, object] = {
        "name": budget.name,
        "unit": budget.unit,
        "per": budget.per,
        "zone": budget.zone,
        "period": budget.period,
        **(_amounts(budget) if shown else {}),
        "used_pct": share.used / 10,
        "held_pct": share.held / 10,
        "settled_pct": share.spent / 10,
        "extra_pct": share.others / 10,
        "starts_at": format_moment(budget.start),
        "resets_at": format_bound(budget.resets_at),
        "first_exhausted_at": None if first is None else format_moment(first),
        "observed": _observed(budget, shown=shown),
        "reading": _reading(budget, audience=audience, now=now),
    }
    return body | {name: text for name, text in (("note", budget.note), ("link", budget.link)) if text}


def _amounts(budget: BudgetStatus) -> dict[str, str]:
    amounts = {
        "limit": budget.limit, "settled": budget.settled, "held": budget.held,
        "extra": budget.extra, "used": budget.used, "remaining": budget.remaining,
    }  # fmt: skip
    return {name: format_amount(amount, scale=budget.scale) for name, amount in amounts.items()}


def _observed(budget: BudgetStatus, *, shown: bool) -> dict[str, str] | None:
    figure = budget.observed
    if figure is None:
        return None
    amount = {"figure": format_amount(figure.figure, scale=budget.scale)} if shown else {}
    return {"source": figure.source, **amount, "as_of": format_moment(figure.as_of)}


def _reading(budget: BudgetStatus, *, audience: Audience, now: int) -> dict[str, object] | None:
    """Whether the figure is still the account's. `stale`: the wallet counts its own calls alone since `read_at`."""
    read = statement.observation(budget)
    if read is None:
        return None
    body: dict[str, object] = {
        "source": read.source,
        "read_at": None if read.at is None else format_moment(read.at),
        "every_s": read.every_s,
        "stale": read.stale(now),
        "unreadable": read.unreadable,
    }
    if audience == "operator" and budget.reading is not None and read.unreadable:
        body["why"] = budget.reading.unreadable
    return body


# --- live -------------------------------------------------------------------------------------------------------------


class Board:
    """The newest status of one process, and everybody who watches it."""

    def __init__(self, purse: Purse, known: Known) -> None:
        self._purse, self._known = purse, known
        self._latest: Status | None = None
        self._shown_at = float("-inf")
        self._stale = False
        self._frames: dict[Audience, bytes] = {}
        self._version = 0
        self._bell = Bell()
        self._viewers = 0
        self._answered_seq = self._folded_seq = 0
        self.closed = False

    @property
    def latest(self) -> Status | None:
        return self._latest

    @property
    def viewers(self) -> int:
        """How many watch the live stream now."""
        return self._viewers

    def show(self, status: Status) -> None:
        """What the projector says by itself. Every viewer gets it, unless a newer one comes first."""
        self._keep(status)
        self._shown_at, self._stale = time.monotonic(), False
        self._announce()

    def _keep(self, status: Status) -> None:
        """The newest from here on, unless it was said before the one that is known and has come later."""
        latest = self._latest
        if latest is None:
            self._shown_at = time.monotonic()
        if latest is None or status.seq >= latest.seq or status.as_of >= latest.as_of:
            self._latest = status
            self._frames.clear()
        self._folded_seq = max(self._folded_seq, status.seq)

    async def run(self) -> None:
        """Show what the projector says and notice when it stops saying it, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._watch_age())

    async def _follow(self) -> None:
        async for status in self._purse.follow_status():
            self.show(status)
            if status.plan and status.plan != self._known.terms.digest:
                await self._renew_terms()
            await asyncio.sleep(INTERVAL_S)

    async def _renew_terms(self) -> None:
        try:
            await self._known.refresh()
        except NoAnswer:
            return  # the next document names the same digest and comes within a second

    async def _watch_age(self) -> None:
        """When nothing newer comes, say once to all who watch that the figures are no longer live."""
        while True:
            await asyncio.sleep(AGE_STEP_S)
            if self._latest is not None and not self._stale and not self._is_live():
                self._stale = True
                self._announce()

    def _is_live(self) -> bool:
        return time.monotonic() - self._shown_at <= STALE_S

    def _announce(self) -> None:
        self._frames.clear()
        self._version += 1
        self._bell.ring()

    def close(self) -> None:
        """End every viewer's stream, so that the process can stop."""
        self.closed = True
        self._bell.ring()

    # --- asked for ----------------------------------------------------------------------------------------------------

    async def now(self) -> Status:
        """The status as the projector knows it this moment. Raises `Problem` 503 while there is none.

        Whoever begins to watch afterwards sees none that is older: figures on a page never go back.
        """
        await self.catch_up()
        status = await self._purse.status()
        if status is None:
            raise unavailable("no-status", "The projector has no figures yet.")
        self._keep(status)
        return status

    def answered(self, seq: int) -> None:
        """This process has told a caller the outcome of an ask in message `seq`."""
        self._answered_seq = max(self._answered_seq, seq)

    @property
    def answered_seq(self) -> int:
        """The newest ask message whose outcome this process has told a caller."""
        return self._answered_seq

    async def catch_up(self) -> None:
        """Wait, not for long, until the projector has folded what was answered here: who asks, then reads, sees it."""
        goal, deadline = self._answered_seq, time.monotonic() + CATCH_UP_S
        while self._folded_seq < goal and time.monotonic() < deadline:
            status = await self._purse.status()
            if status is None:
                return
            self._folded_seq = max(self._folded_seq, status.seq)
            if self._folded_seq < goal:
                await asyncio.sleep(CATCH_UP_STEP_S)

    # --- watched ------------------------------------------------------------------------------------------------------

    def frame(self, audience: Audience) -> bytes:
        """The latest document as one server-sent event, encoded once for everybody of this audience."""
        frame = self._frames.get(audience)
        if frame is None:
            assert self._latest is not None
            body = msgspec.json.encode(document(self._latest, audience=audience, live=not self._stale))
            frame = b"event: status\nid: %d\ndata: %b\n\n" % (self._latest.seq, body)
            self._frames[audience] = frame
        return frame

    async def frames(self, audience: Audience) -> AsyncIterator[bytes]:
        """What one viewer is sent: when to come back, the latest document, each newer one, signs of life."""
        yield b"retry: %d\n\n" % RETRY_MS
        seen = 0
        while not self.closed:
            if self._version != seen:
                seen = self._version
                yield self.frame(audience)
            elif not await self._bell.rung(within_s=KEEP_ALIVE_S):
                yield STILL_HERE

    @property
    def live(self) -> bool:
        """Whether the newest document is no older than a few seconds."""
        return not self._stale

    async def changes(self, *, every_s: float, keep_alive_s: float = KEEP_ALIVE_S) -> AsyncIterator[bool]:
        """True for each newer document, at most one in `every_s`; False where none came for so long."""
        seen = 0
        while not self.closed:
            if self._version != seen and self._latest is not None:
                seen = self._version
                yield True
                await asyncio.sleep(every_s)
            elif not await self._bell.rung(within_s=keep_alive_s):
                yield False

    def admit(self) -> None:
        """One more viewer. Raises `Problem` 503 when there are too many; else `leave` must follow."""
        if self._viewers >= VIEWERS_MAX:
            detail = "Too many are watching. GET /v1/status answers all the same."
            raise Problem(503, "too-many-viewers", detail, headers={"Retry-After": "30"})
        self._viewers += 1

    def leave(self) -> None:
        self._viewers -= 1
