"""Turns what people send into asks: decimal strings into integers, times into nanoseconds, ids and labels checked.

Everything wrong is found here, before anything reaches the stream, and named by its JSON path (`asks[2].amounts.usd`).
Nothing here decides whether an ask is granted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar, assert_never
from uuid import uuid4

from engine.core import checks, limits, periods
from engine.core.amounts import AmountError, parse
from engine.core.messages import (
    Adjust,
    Amounts,
    AnyAsk,
    Freeze,
    Hold,
    Observe,
    Option,
    Renew,
    Restore,
    Revoke,
    Settle,
    Thaw,
)  # fmt: skip
from engine.core.plan import Budget
from engine.errors import BadAsk
from web import requests as said
from web.auth import Caller
from web.bodies import shown
from web.known import Terms
from web.moments import NS_PER_S, parse_moment

AS_OF_BACK_S = 1
"""A figure without its time is from a second ago: our estimate of stream time may be a little ahead of it."""

Switch = TypeVar("Switch", Thaw, Revoke, Restore)

ADJUST_NEEDS_ID = "an adjustment needs an id, in the body or as Idempotency-Key: made twice it would count twice"

_ID = re.compile(rf"[A-Za-z0-9._:-]{{1,{limits.CALLER_ID_CHARS_MAX}}}", re.ASCII)
_STREAM_ID = re.compile(rf"[A-Za-z0-9._:/-]{{1,{limits.ID_CHARS_MAX}}}", re.ASCII)


def check_id(id: str, *, field: str, caller: Caller) -> str:
    """An id that a caller chose, as it is called on the stream. It has no "/", which sets namespaces apart there."""
    if not _ID.fullmatch(id):
        raise BadAsk(field, f"an id is 1 to {limits.CALLER_ID_CHARS_MAX} of A-Z a-z 0-9 . _ : -")
    return caller.on_stream(id)


def check_hold(id: str, *, field: str, caller: Caller) -> str:
    """As `check_id`, of a hold that is there; whoever sees those of all keys names them as on the stream."""
    if not caller.sees_all:
        return check_id(id, field=field, caller=caller)
    if not _STREAM_ID.fullmatch(id):
        raise BadAsk(field, f"an id on the stream is 1 to {limits.ID_CHARS_MAX} of A-Z a-z 0-9 . _ : / -")
    return id


def fresh_id(caller: Caller) -> str:
    """For a caller that brings none. It cannot ask again, but no two of them meet."""
    return caller.on_stream(uuid4().hex)


@dataclass(slots=True)  # one a request: a frozen one takes three times as long to make
class Reader:
    """Reads bodies for one caller under known units. `path`: where in the body it stands; `now`: stream time (ns)."""

    terms: Terms
    caller: Caller
    now: int
    path: str = ""

    # --- spending -----------------------------------------------------------------------------------------------------

    def hold(self, body: said.HoldBody, *, id: str, by: int) -> Hold:
        if (body.amounts is None) == (body.options is None):
            raise BadAsk(f"{self.path}amounts", "send either amounts or options")
        if body.options is None:
            options = [Option(self._needed(body.amounts or {}, "amounts"))]
        else:
            options = [self._option(option, f"options[{index}].") for index, option in enumerate(body.options)]
        return Hold(
            id=id, options=options, by=by, labels=self._claimed(body.labels), ttl_s=body.ttl_s, on_lapse=body.on_lapse
        )

    def settle(self, body: said.SettleBody, *, hold: str, id: str) -> Settle:
        held_at = None if body.held_at is None else parse_moment(body.held_at, field=f"{self.path}held_at")
        return Settle(
            hold=hold, amounts=self._needed(body.amounts, "amounts"), final=body.final, estimated=body.estimated,
            held_at=held_at, labels=self._claimed(body.labels, "origin"), id=id,
        )  # fmt: skip

    def renew(self, body: said.RenewBody, *, hold: str) -> Renew:
        return Renew(hold=hold, n=body.n, ttl_s=body.ttl_s, amounts=self._amounts(body.amounts, "amounts"))

    def _option(self, body: said.OptionBody, place: str) -> Option:
        amounts = self._needed(body.amounts, f"{place}amounts")
        least = self._amounts(body.least, f"{place}least")
        for unit, amount in least.items():
            if amount > amounts.get(unit, -1):
                raise BadAsk(f"{self.path}{place}least.{unit}", "expected at most the option's amount of that unit")
        return Option(amounts=amounts, least=least, grade=body.grade, name=body.name)

    def _needed(self, written: said.Amounts, field: str) -> Amounts:
        if not written:
            raise BadAsk(f"{self.path}{field}", 'name at least one amount; zero must be said: {"usd": "0"}')
        return self._amounts(written, field)

    def _amounts(self, written: said.Amounts, field: str) -> Amounts:
        if len(written) > limits.ASK_UNITS_MAX:
            raise BadAsk(f"{self.path}{field}", f"at most {limits.ASK_UNITS_MAX} units")
        return {unit: self._amount(value, unit, f"{self.path}{field}.{shown(unit)}") for unit, value in written.items()}

    def _amount(self, value: object, unit: str, place: str, *, signed: bool = False) -> int:
        scale = self.terms.scale(unit, field=place)
        try:
            return parse(value, unit=unit, scale=scale, signed=signed)  # type: ignore[arg-type] # it refuses other types
        except AmountError as error:
            raise BadAsk(place, str(error)) from None

    def _claimed(self, written: said.Labels, *without: str) -> dict[str, str]:
        """What the body says, and what the caller's key says, which wins."""
        labels = self._labels(written)
        if not self.caller.labels:
            return labels
        claimed = {name: value for name, value in self.caller.claimed(labels).items() if name not in without}
        self._check(checks.labels(claimed))
        return claimed

    def _labels(self, written: said.Labels) -> dict[str, str]:
        if not written:
            return {}
        for name, value in written.items():
            if not isinstance(value, str):
                raise BadAsk(f"{self.path}labels.{shown(name)}", "expected a string")
            if name in self.caller.forbidden_labels:
                raise BadAsk(f"{self.path}labels.{name}", "this label comes from authentication, not from a caller")
        self._check(checks.labels(written))
        return written

    # --- operating ----------------------------------------------------------------------------------------------------

    def observe(self, body: said.ObservationBody, *, id: str) -> Observe:
        budget = self.terms.budget(body.budget, field=f"{self.path}budget")
        if body.source is None and budget.source is None:
            raise BadAsk(f"{self.path}source", "this budget has no source in the plan: its figure cannot be observed")
        as_of = self.now - AS_OF_BACK_S * NS_PER_S
        return Observe(
            id=id,
            budget=body.budget,
            period=self._period(body.period, budget),
            figure=self._amount(body.figure, budget.unit, f"{self.path}figure"),
            as_of=as_of if body.as_of is None else parse_moment(body.as_of, field=f"{self.path}as_of"),
            source=body.source or budget.source or "",
            each=body.each,
        )

    def adjust(self, body: said.AdjustmentBody, *, id: str) -> Adjust:
        budget = self.terms.budget(body.budget, field=f"{self.path}budget")
        ask = Adjust(
            id=id, budget=body.budget, period=self._period(body.period, budget),
            amount=self._amount(body.amount, budget.unit, f"{self.path}amount", signed=True), reason=body.reason,
            by_whom=self.caller.name, each=body.each,
            hold=None if body.hold is None else self._hold(body.hold),
        )  # fmt: skip
        self._check(checks.adjust(ask))
        return ask

    def _period(self, name: str | None, budget: Budget) -> str:
        if name is None:
            return periods.period_at(self.now, per=budget.per, zone=budget.zone).name
        try:
            return periods.period_named(name, per=budget.per, zone=budget.zone).name
        except periods.PeriodError as error:
            raise BadAsk(f"{self.path}period", str(error)) from None

    def freeze(self, body: said.FreezeBody, *, id: str) -> Freeze:
        until = None if body.until is None else parse_moment(body.until, field=f"{self.path}until")
        if until is not None and until <= self.now:
            raise BadAsk(f"{self.path}until", "expected a time in the future")
        ask = Freeze(id=id, scope=body.scope, reason=body.reason, by_whom=self.caller.name, until=until)
        budgets = self.terms.plan.budgets if self.terms.plan is not None else ()
        self._check(checks.switch(ask) or checks.scope(ask.scope, budgets))
        return ask

    def thaw(self, body: said.ThawBody, *, id: str) -> Thaw:
        """A scope may be frozen that the plan has no more: only the wallet knows it."""
        return self._switch(Thaw(id=id, scope=body.scope, reason=body.reason, by_whom=self.caller.name))

    def revoke(self, body: said.RevokeBody, *, id: str) -> Revoke:
        return self._switch(
            Revoke(id=id, label=body.label, value=body.value, reason=body.reason, by_whom=self.caller.name)
        )

    def restore(self, body: said.RestoreBody, *, id: str) -> Restore:
        return self._switch(
            Restore(id=id, label=body.label, value=body.value, reason=body.reason, by_whom=self.caller.name)
        )

    def _switch(self, ask: Switch) -> Switch:
        self._check(checks.switch(ask))
        return ask

    # --- batches ------------------------------------------------------------------------------------------------------

    def item(self, body: said.BatchItem, *, by: int) -> AnyAsk:
        """One ask of a batch."""
        match body:
            case said.BatchHold():
                return self.hold(body, id=self._id(body.id), by=by)
            case said.BatchSettle():
                id = "" if body.id is None else self._id(body.id)
                return self.settle(body, hold=self._hold(body.hold), id=id)
            case said.BatchRelease():
                return Settle(hold=self._hold(body.hold), release=True)
            case said.BatchRenew():
                return self.renew(body, hold=self._hold(body.hold))
            case said.BatchObserve():
                return self.observe(body, id=self._id(body.id))
            case said.BatchAdjust():
                return self.adjust(body, id=self._id(body.id, required=True))
            case said.BatchFreeze():
                return self.freeze(body, id=self._id(body.id))
            case said.BatchThaw():
                return self.thaw(body, id=self._id(body.id))
            case said.BatchRevoke():
                return self.revoke(body, id=self._id(body.id))
            case said.BatchRestore():
                return self.restore(body, id=self._id(body.id))
            case _:
                assert_never(body)

    def _hold(self, id: str) -> str:
        return check_hold(id, field=f"{self.path}hold", caller=self.caller)

    def _id(self, id: str | None, *, required: bool = False) -> str:
        if id is not None:
            return check_id(id, field=f"{self.path}id", caller=self.caller)
        if required:
            raise BadAsk(f"{self.path}id", ADJUST_NEEDS_ID)
        return fresh_id(self.caller)

    def _check(self, wrong: checks.Wrong | None) -> None:
        if wrong is not None:
            field, why = wrong
            raise BadAsk(f"{self.path}{field}", why)
