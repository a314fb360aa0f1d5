"""Purse: the typed client of a wallet. Used by the web front end, by benchmarks and by other people's programs alike.

    async with Purse.connect("nats://...") as purse:
        async with purse.holding({"usd": "0.01"}, labels={"provider": "jev"}) as hold:
            answer = await call_the_model(...)
            hold.cost(usd=answer.cost)

Amounts are written in units, as decimal strings, `Decimal` or `int`; never floats. A refusal comes back as an outcome;
exceptions mean that the ask was wrong (`BadAsk`) or that the world failed (`NoAnswer`, `StreamRefused`).
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

import msgspec

from engine import errors
from engine.asking import Answered, Asker
from engine.core import amounts as written
from engine.core import checks
from engine.core.amounts import SCALES, AmountError
from engine.core.messages import (
    Adjust,
    Amounts,
    AnyAsk,
    AnyOutcome,
    Clock,
    Exhausted,
    Freeze,
    Held,
    Hold,
    Invalid,
    Late,
    Loss,
    Observe,
    Option,
    Renew,
    Restore,
    Revoke,
    Settle,
    Thaw,
)
from engine.core.periods import TOTAL
from engine.core.plan import LapsePolicy, Plan
from engine.errors import BadAsk, NoAnswer, Refused
from engine.guarding import Cost, Guarded, Labels, Said, Terms, Worst, guarded
from engine.holding import Holding, OnError
from engine.journal import Journal
from engine.reader import READ_WAIT_S, Reader
from engine.spool import Spool

__all__ = ["Answered", "Holding", "Purse", "Said"]

WAIT_S = 5.0
PLAN_WAIT_S = 0.25  # for checks at the door: a silent projector must not make a hold late
PLAN_AGAIN_S = 5.0
CLOSE_WAIT_S = 5.0
CLOCK_SLACK_S = 60  # the engine judges what is from the future; here only what cannot be meant
NS = 1_000_000_000


class Purse(Reader):
    """One client of one wallet. Made by `Purse.connect`; safe for any number of concurrent callers."""

    def __init__(self, journal: Journal, spool: Spool | None = None) -> None:
        super().__init__(journal)
        self._asker = Asker(journal, spool)
        self._spool = spool
        self._scales: dict[str, int] = dict(SCALES)
        self._plan: Plan | None = None
        self._plan_again_at = 0.0

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, *, wallet: str = "main", data: Path | None = None) -> AsyncIterator[Purse]:
        """Connect for as long as the block runs.

        With `data`, what was settled or observed and cannot reach the stream is kept in a file under `data/spool` until
        it can, by this client or by the next one there; without, it is tried on only as long as this client lives.
        Raises `NoAnswer` if no server answers at `url`, `Misconfigured` if nothing can be kept in `data` or `url` is
        that of a web process.
        """
        if url.startswith(("http://", "https://")):
            raise errors.Misconfigured("this client speaks to the broker (nats://...); over HTTP others do")
        async with (
            Journal.connect(url, wallet=wallet, name="purse-client") as journal,
            nullcontext() if data is None else Spool.opened(data / "spool" / wallet) as spool,
        ):
            purse = cls(journal, spool)
            await purse._asker.start()
            minding = [asyncio.create_task(work) for work in (purse._asker.run(), purse._asker.heard.run())]
            try:
                yield purse
            finally:
                await purse._asker.close(CLOSE_WAIT_S)
                for task in minding:
                    task.cancel()

    # --- asking -------------------------------------------------------------------------------------------------------

    async def ask(self, ask: AnyAsk, *, wait_s: float = WAIT_S) -> Answered:
        """Ask one thing and hear its outcome, with sequence and receipt. Raises `BadAsk`, `NoAnswer`, `StreamRefused`.

        A hold whose `by` was wrong only because this machine's clock is off is asked once more.
        """
        deadline = time.monotonic() + wait_s
        await self._check_or_keep([ask])
        (answered,) = await self._asker.ask([ask], wait_s=wait_s)
        left_s = deadline - time.monotonic()
        if _by_was_off(answered.outcome) and isinstance(ask, Hold) and left_s > 0:
            again = msgspec.structs.replace(ask, by=self.by(left_s))
            (answered,) = await self._asker.ask([again], wait_s=left_s)
        return answered

    async def ask_all(self, asks: Sequence[AnyAsk], *, wait_s: float = WAIT_S) -> list[Answered]:
        """Ask a list in one message: one outcome each, in order, each ask standing alone.

        Raises `BadAsk` for the first that must not reach the stream; nothing is sent then.
        """
        await self._check_or_keep(asks)
        return await self._asker.ask(asks, wait_s=wait_s)

    def by(self, wait_s: float) -> int:
        """The deadline of a hold asked now: the moment, in stream time, at which its caller stops waiting."""
        return self._asker.now() + int(wait_s * NS)

    def now(self) -> int:
        """The stream's time as this client estimates it, ns."""
        return self._asker.now()

    @property
    def spool_depth(self) -> int:
        """Settlements that are kept on disk because the stream did not take them yet."""
        return self._spool.depth if self._spool is not None else 0

    @property
    def receipt(self) -> tuple[int, str]:
        """Sequence and chain of the newest told this client has heard."""
        return self._asker.heard.newest

    @property
    def contradiction(self) -> str:
        """Why the stream cannot be believed: it denies what this client has heard. "" while it does not."""
        return self._asker.heard.contradiction

    async def hold(
        self,
        amounts: Said | None = None,
        *,
        id: str | None = None,
        labels: Mapping[str, str] | None = None,
        options: Sequence[Option] | None = None,
        ttl_s: int | None = None,
        on_lapse: LapsePolicy | None = None,
        wait_s: float = WAIT_S,
    ) -> AnyOutcome:
        """May I spend at most this? `Held` is the only permission; whatever else comes back says why not.

        Give `amounts` or, for several ways to make the call, `options` (integers of the smallest part), best first.
        """
        if options is None:
            options = [Option(await self.amounts(amounts or {}))]
        ask = Hold(
            id=id or uuid.uuid4().hex,
            options=list(options),
            by=self.by(wait_s),
            labels=dict(labels or {}),
            ttl_s=ttl_s,
            on_lapse=on_lapse,
        )
        return _first((await self.ask(ask, wait_s=wait_s)).outcome)

    async def settle(
        self,
        hold: str,
        amounts: Said,
        *,
        final: bool = True,
        estimated: bool = False,
        held_at: int | None = None,
        labels: Mapping[str, str] | None = None,
        wait_s: float = WAIT_S,
    ) -> AnyOutcome:
        """The call cost this; with `final=False`, this much so far. Never refused, safe to repeat."""
        ask = Settle(
            hold=hold,
            amounts=await self.amounts(amounts),
            final=final,
            estimated=estimated,
            held_at=held_at,
            labels=dict(labels or {}),
        )
        return (await self.ask(ask, wait_s=wait_s)).outcome

    async def release(self, hold: str, *, wait_s: float = WAIT_S) -> AnyOutcome:
        """The call was not made: give everything back that was not reported as progress."""
        return (await self.ask(Settle(hold=hold, release=True), wait_s=wait_s)).outcome

    async def renew(
        self, hold: str, n: int, *, ttl_s: int | None = None, amounts: Said | None = None, wait_s: float = WAIT_S
    ) -> AnyOutcome:
        """Hold on longer; `n` counts 1, 2, ...; `amounts` is the new total grant."""
        total = await self.amounts(amounts) if amounts else {}
        return _first((await self.ask(Renew(hold=hold, n=n, ttl_s=ttl_s, amounts=total), wait_s=wait_s)).outcome)

    async def observe(self, ask: Observe, *, wait_s: float = WAIT_S) -> AnyOutcome:
        """Report the provider's own figure."""
        return (await self.ask(ask, wait_s=wait_s)).outcome

    async def adjust(self, ask: Adjust, *, wait_s: float = WAIT_S) -> AnyOutcome:
        """Correct what was settled, on the record."""
        return (await self.ask(ask, wait_s=wait_s)).outcome

    async def freeze(self, scope: str, reason: str, *, until: int | None = None, by_whom: str = "") -> AnyOutcome:
        """Refuse new holds in a scope: `all`, a budget's name, or `label=value`."""
        return (await self.ask(Freeze(uuid.uuid4().hex, scope, reason, by_whom, until))).outcome

    async def thaw(self, scope: str, reason: str = "", *, by_whom: str = "") -> AnyOutcome:
        return (await self.ask(Thaw(uuid.uuid4().hex, scope, reason, by_whom))).outcome

    async def revoke(self, label: str, value: str, reason: str, *, by_whom: str = "") -> AnyOutcome:
        """Refuse new holds that carry this label."""
        return (await self.ask(Revoke(uuid.uuid4().hex, label, value, reason, by_whom))).outcome

    async def restore(self, label: str, value: str, reason: str = "", *, by_whom: str = "") -> AnyOutcome:
        return (await self.ask(Restore(uuid.uuid4().hex, label, value, reason, by_whom))).outcome

    @asynccontextmanager
    async def holding(
        self,
        amounts: Said | None = None,
        *,
        id: str | None = None,
        labels: Mapping[str, str] | None = None,
        options: Sequence[Option] | None = None,
        ttl_s: int | None = None,
        on_lapse: LapsePolicy | None = None,
        on_error: OnError = "charge",
        wait_s: float = WAIT_S,
    ) -> AsyncIterator[Holding]:
        """Hold for the length of a block and settle at its end. Raises `Exhausted` or another `Refused` if not held.

        Say what it cost with `hold.cost(...)`, or that it never happened with `hold.release()`. A block that says
        neither, or fails before it could, is settled at the larger of grant and progress, as an estimate: the call may
        have happened. `on_error`: what an error of the block means, if it had said neither; see `engine.holding`.
        With `options`, best first, `hold.option` says which was granted.
        """
        outcome = await self.hold(
            amounts, id=id, labels=labels, options=options, ttl_s=ttl_s, on_lapse=on_lapse, wait_s=wait_s
        )
        if not isinstance(outcome, Held):
            raise self._refusal(outcome)
        hold = Holding(self, outcome)
        try:
            yield hold
        except BaseException as error:
            hold.failed(error, on_error)
            raise
        finally:
            with suppress(NoAnswer):  # it is tried on; the block's own error, if any, is what the caller must hear
                await self._asker.ask([hold.ending()], wait_s=wait_s)

    def guarded(
        self,
        worst: Worst,
        *,
        cost: Cost,
        labels: Labels | None = None,
        ttl_s: int | None = None,
        on_error: OnError = "charge",
        wait_s: float = WAIT_S,
    ) -> Callable[[Guarded], Guarded]:
        """Decorate an `async def` that makes one call: each time it is held, called, settled. See `engine.guarding`."""
        terms = Terms(worst, cost, labels)
        return guarded(terms, partial(self.holding, ttl_s=ttl_s, on_error=on_error, wait_s=wait_s))

    def _refusal(self, outcome: AnyOutcome) -> Refused:
        if not isinstance(outcome, Exhausted):
            return Refused(outcome)
        fits = Decimal(outcome.fits).scaleb(-self._scales[outcome.unit])  # the ask has named the unit
        resets_at = None if outcome.resets_at >= TOTAL.end else datetime.fromtimestamp(outcome.resets_at // NS, UTC)
        return errors.Exhausted(
            outcome, why=outcome.why, budget=outcome.budget, unit=outcome.unit, fits=fits, resets_at=resets_at
        )

    # --- the plan -----------------------------------------------------------------------------------------------------

    async def plan(self) -> Plan | None:
        """The plan in force; None if there is none yet or no projector answers."""
        return await self._read_plan(READ_WAIT_S)

    async def _read_plan(self, wait_s: float) -> Plan | None:
        plan = await self._read("read.plan", b"", Plan, wait_s=wait_s)
        if plan is not None:
            self._plan = plan
            self._scales |= plan.units
        return plan

    async def _plan_at_the_door(self) -> Plan | None:
        """The plan in force for a check that may also be left to the engine; not asked for again at once in vain."""
        if time.monotonic() < self._plan_again_at:
            return None
        plan = await self._read_plan(PLAN_WAIT_S)
        if plan is None:
            self._plan_again_at = time.monotonic() + PLAN_AGAIN_S
        return plan

    async def _check_or_keep(self, asks: Sequence[AnyAsk]) -> None:
        """Bad input never reaches the stream. What seems wrong is looked at again with the newest plan.

        What a caller settles who leaves meanwhile is not lost. Raises `BadAsk`.
        """
        if self._plan is not None and self._first_wrong(asks) is None:
            return
        try:
            await self._plan_at_the_door()
        except asyncio.CancelledError:
            self._asker.keep(asks)
            raise
        if (wrong := self._first_wrong(asks)) is not None:
            index, (field, why) = wrong
            raise BadAsk(field if len(asks) == 1 else f"asks[{index}].{field}", why)

    def _first_wrong(self, asks: Sequence[AnyAsk]) -> tuple[int, checks.Wrong] | None:
        """Which of them is wrong, by the plan as it is known here, and in what."""
        now = self.now()
        for index, ask in enumerate(asks):
            if (wrong := _wrong(ask, self._plan, self._scales, now)) is not None:
                return index, wrong
        return None

    async def amounts(self, said: Said) -> Amounts:
        """Amounts in units as integers of the smallest part. Raises `BadAsk` naming the unit."""
        if not said:
            raise BadAsk("amounts", "expected at least one amount")
        if any(unit not in self._scales for unit in said):
            await self.plan()
        return self.known_amounts(said)

    def known_amounts(self, said: Said) -> Amounts:
        """As `amounts`, of units that this client has met. Raises `BadAsk` naming the unit."""
        return {unit: self._amount(unit, amount) for unit, amount in said.items()}

    def _amount(self, unit: str, amount: str | int | Decimal) -> int:
        scale = self._scales.get(unit)
        if scale is None:
            raise BadAsk("amounts", f"unknown unit; this wallet knows {', '.join(sorted(self._scales))}")
        try:
            return written.parse(amount, unit=unit, scale=scale)
        except AmountError as error:
            raise BadAsk(f"amounts.{unit}", str(error)) from error


def _first(outcome: AnyOutcome) -> AnyOutcome:
    """Whoever asks again hears the first answer."""
    was = getattr(outcome, "was", None)
    return was if was is not None else outcome


def _by_was_off(outcome: AnyOutcome) -> bool:
    return isinstance(outcome, Late) or (isinstance(outcome, Invalid) and outcome.field == "by")


def _wrong(ask: AnyAsk, plan: Plan | None, scales: Mapping[str, int], now: int) -> checks.Wrong | None:
    """What the ask alone shows to be wrong, as far as this client can know."""
    try:
        match ask:
            case Hold():
                return checks.hold(ask, plan, now) if plan is not None else None
            case Settle():
                return checks.settle(ask, scales)
            case Renew():
                return checks.renew(ask, plan, scales) if plan is not None else None
            case Observe():
                return checks.observe(ask, now + CLOCK_SLACK_S * NS)
            case Adjust():
                return checks.adjust(ask)
            case Freeze() | Thaw() | Revoke() | Restore():
                return checks.switch(ask)
            case Loss():
                return checks.loss(ask)
            case Clock():
                return checks.clock(ask)
            case _:
                return None
    except (TypeError, AttributeError):  # of the wrong type: whoever encodes it says where
        return None
