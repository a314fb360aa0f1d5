"""What the edge must know of the plan to read and write amounts: units with their scales, and each budget's unit.

A copy of what stands on the stream. It decides nothing: a stale copy can only make the edge ask for a newer one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from engine.core.amounts import format_amount
from engine.core.messages import Amounts
from engine.core.plan import Budget, Plan, digest
from engine.errors import BadAsk
from web.problems import no_plan
from web.purse import Purse

ASK_AGAIN_S = 1.0
"""How often a name that we do not know makes us ask for the plan: strangers must not be able to ask faster."""

Made = TypeVar("Made")

_plans: msgspec.json.Decoder[Plan | None] = msgspec.json.Decoder(Plan | None)


class UnknownName(BadAsk):
    """A unit or a budget that the plan we know does not have; a newer one may."""


class Terms:
    """Units and budgets of every plan this process has seen. Scales and units never change, so nothing goes stale."""

    def __init__(self) -> None:
        self.scales: dict[str, int] = {}
        self.budget_units: dict[str, str] = {}
        self.plan: Plan | None = None
        self.digest = ""

    def learn(self, plan: Plan) -> None:
        self.plan, self.digest = plan, digest(plan)
        self.scales |= plan.units
        self.budget_units |= {name: budget.unit for name, budget in plan.budgets.items()}

    def scale(self, unit: str, *, field: str) -> int:
        """The scale of a unit that a caller named."""
        scale = self.scales.get(unit)
        if scale is None:
            raise UnknownName(field, f"unknown unit; this wallet has {', '.join(sorted(self.scales))}")
        return scale

    def budget(self, name: str, *, field: str) -> Budget:
        """The budget of the plan in force that a caller named."""
        found = self.plan.budgets.get(name) if self.plan is not None else None
        if found is None:
            raise UnknownName(field, "there is no budget of that name in the plan")
        return found

    def written(self, amounts: Amounts) -> dict[str, str]:
        """Integers as decimal strings. A unit of some plan before this process began, unknown here, is left out."""
        scales = self.scales
        return {unit: format_amount(amount, scale=scales[unit]) for unit, amount in amounts.items() if unit in scales}

    def scale_of(self, budget: str) -> int | None:
        """The scale in which a budget's amounts are written, `None` for a budget of no plan that we have seen."""
        return self.scales.get(self.budget_units.get(budget, ""))


async def read_plan(purse: Purse) -> Plan | None:
    """The plan in force, None before the first. Raises `NoAnswer` if nobody knows."""
    return _plans.decode(await purse.read("plan"))


class Known:
    """Keeps `Terms` up to date through a purse."""

    def __init__(self, purse: Purse) -> None:
        self.terms = Terms()
        self._purse = purse
        self._lock = asyncio.Lock()
        self._asked_at = float("-inf")

    async def ready(self) -> Terms:
        """The terms, once there is a plan. Raises `Problem` 503 while there is none."""
        if self.terms.plan is None:
            await self.refresh()
        if self.terms.plan is None:
            raise no_plan()
        return self.terms

    async def refresh(self) -> None:
        """Ask for the plan in force. Those who come meanwhile wait for the same answer."""
        asked_at = self._asked_at
        async with self._lock:
            if self._asked_at != asked_at:
                return
            plan = await read_plan(self._purse)
            self._asked_at = time.monotonic()
            if plan is not None:
                self.terms.learn(plan)

    async def understand(self, read: Callable[[Terms], Made]) -> Made:
        """`read(terms)`; if it meets a name that we do not know, once more with the plan in force now."""
        terms = await self.ready()
        try:
            return read(terms)
        except UnknownName:
            if time.monotonic() - self._asked_at < ASK_AGAIN_S:
                raise
        await self.refresh()
        return read(self.terms)
