"""Made-up model calls on a small budget: a dozen callers who hold, pretend to call, and settle, until they are refused.

Sizes, costs and durations follow from the seed; only who comes first is the machine's. The books are kept from the
calls alone, never from what the wallet says of them, so that the two can be compared. No model is ever called.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from commonpurse.http import Answer, Api
from commonpurse.said import Said
from commonpurse.telling import Never, tell_all
from commonpurse.trace import Prices, Row
from engine.core.amounts import SCALES, format_amount
from engine.errors import NoAnswer, PurseError

BUDGET, UNIT, LIMIT = "demo", "usd", "0.05"
PLAN = f"""\
[budgets.{BUDGET}]
unit = "{UNIT}"
limit = "{LIMIT}"
per = "day"
public = "amounts"
note = "These calls are made up: no model is called, no money is spent."
"""

CALLERS = 12
PRICES = Prices.of(input_usd_per_mtok="0.15", output_usd_per_mtok="0.60", output_cap=256)
INPUT_TOKENS = (50, 350)
OUTPUT_TOKENS = (10, 130)  # of the cap: so a call costs about two fifths of what is held for it
CALL_S = (0.05, 0.4)
BUSY_PAUSE_S = 1.0  # a call that only others' holds are in the way of is asked again
SILENCE_PAUSE_S = 0.2
PATIENCE_S = 30.0


class Call(NamedTuple):
    """One pretended model call: the most it could cost, what it does cost (nano-dollars), and how long it takes."""

    id: str
    worst_nanos: int
    real_nanos: int
    takes_s: float


def made_up(seed: int, caller: int) -> Iterator[Call]:
    """The calls that one caller would make for ever: the same for the same seed."""
    dice = random.Random(f"{seed}/{caller}")  # noqa: S311  made up, not secret
    for number in count(1):
        tokens = Row(number, 0, dice.randint(*INPUT_TOKENS), dice.randint(*OUTPUT_TOKENS))
        worst, real = PRICES.worst_nanos(tokens), PRICES.real_nanos(tokens)
        yield Call(f"demo:{caller}:{number}", worst, real, dice.uniform(*CALL_S))


@dataclass(slots=True)
class Books:
    """The callers' own: calls that were made, what they really cost, and refusals by why. `refused_last` heard no."""

    made: int = 0
    spent_nanos: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    refused_last: Call | None = None


class Traffic:
    """All callers of one run."""

    def __init__(self, api: Api, *, seed: int) -> None:
        self.books = Books()
        self._api, self._seed = api, seed

    async def run(self) -> None:
        """Ends when every caller was refused because the budget is spent. Raises `PurseError`."""
        failed: Exception | None = None
        try:
            async with asyncio.TaskGroup() as callers:
                for caller in range(1, CALLERS + 1):
                    callers.create_task(self._call_until_refused(caller))
        except* PurseError as group:
            failed = group.exceptions[0]
        if failed is not None:
            raise failed

    async def look(self) -> Answer:
        """Ask for a refused call once more, alone, to see the whole answer."""
        call = self.books.refused_last
        assert call is not None, "the traffic has ended, so somebody was refused"
        fields = {name: value for name, value in _hold(call).items() if name != "ask"}
        return await self._api.post("/v1/holds", fields)

    async def _call_until_refused(self, caller: int) -> None:
        for call in made_up(self._seed, caller):
            if not await self._may(call):
                return
            await asyncio.sleep(call.takes_s)  # here a program would call its model
            await self._settle(call)

    async def _may(self, call: Call) -> bool:
        """Hold the worst case. False: the budget is spent."""
        while True:
            said = await self._insist(_hold(call))
            if said.outcome == "held":
                return True
            if said.outcome != "exhausted" or said.why not in {"busy", "spent"}:
                raise _unexpected(call, said)
            self.books.refused[said.why] += 1
            if said.why == "spent":
                self.books.refused_last = call
                return False
            await asyncio.sleep(BUSY_PAUSE_S)

    async def _settle(self, call: Call) -> None:
        """Say what it really cost. The books count it first: the money would be gone whatever the wallet said."""
        self.books.made += 1
        self.books.spent_nanos += call.real_nanos
        said = await self._insist({"ask": "settle", "hold": call.id, "amounts": _usd(call.real_nanos)})
        if said.outcome not in {"settled", "again"}:
            raise _unexpected(call, said)

    async def _insist(self, ask: Mapping[str, object]) -> Said:
        """Ask until somebody answers: the same ask twice counts once. Raises `NoAnswer` after `PATIENCE_S`."""
        gives_up_at = time.monotonic() + PATIENCE_S
        while True:
            [heard] = await tell_all(self._api, [ask], batch=False)
            if isinstance(heard, Said):
                return heard
            if isinstance(heard, Never):
                raise PurseError(heard.why)
            if time.monotonic() >= gives_up_at:
                raise NoAnswer(heard.why)
            await asyncio.sleep(max(heard.retry_after_s, SILENCE_PAUSE_S))


def usd(nanos: int) -> str:
    """Nano-dollars as people write them."""
    return format_amount(nanos, scale=SCALES[UNIT])


def _usd(nanos: int) -> dict[str, str]:
    return {UNIT: usd(nanos)}


def _hold(call: Call) -> dict[str, object]:
    return {"ask": "hold", "id": call.id, "amounts": _usd(call.worst_nanos)}


def _unexpected(call: Call, said: Said) -> PurseError:
    return PurseError(
        f"call {call.id}: the wallet said {said.outcome or 'nothing'}: {said.problem or 'no reason given'}"
    )
