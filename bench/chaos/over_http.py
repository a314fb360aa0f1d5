"""A caller over HTTP, of any of several web processes, as behind what balances their load: see `bench.chaos.caller`.

Where one does not answer it asks the next one the same. That is all a program needs to lose nothing: ids make asking
again safe.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence

import aiohttp
import msgspec

from bench.chaos.caller import drawn
from bench.chaos.deeds import UNIT, Deed, Heard
from engine.core.amounts import SCALES, format_amount, parse

PAUSE_S = 0.1
ONE_WAIT_S = 3.0  # that one web process has
HOLD_WAIT_S = 5.0


class _Receipt(msgspec.Struct, frozen=True):
    seq: int


class _Body(msgspec.Struct, frozen=True):
    outcome: str = ""
    receipt: _Receipt | None = None


class WebCaller:
    """Makes calls through the web processes at these addresses, and writes down what it did and heard."""

    def __init__(self, session: aiohttp.ClientSession, pages: Sequence[str], dice: random.Random) -> None:
        self._session, self._pages, self._dice = session, list(pages), dice
        self.tries = 0

    async def call(self, id: str) -> Deed:
        """Hold, and where it is held settle what it cost; a hold that nobody answered is given back.

        Of what was drawn it leaves out the patience: whoever asks several has one of its own.
        """
        meant = drawn(self._dice)
        began, before = time.monotonic(), self.tries
        ask = {"id": id, "amounts": _written(meant.amount), "labels": {"lane": meant.lane}, "wait_s": ONE_WAIT_S}
        heard = await self._until_decided("/v1/holds", ask, give_up_at=began + HOLD_WAIT_S)
        waited_s, anew = time.monotonic() - began, self.tries > before + 1
        deed = Deed(id, meant.lane, meant.amount, heard, waited_s, asked_anew=anew)
        if heard is None:
            await self._until_decided(f"/v1/holds/{id}/release", {})
            return deed
        if heard.outcome != "held":
            return deed
        began = time.monotonic()
        settled = await self._until_decided(f"/v1/holds/{id}/settle", {"amounts": _written(meant.cost)})
        return msgspec.structs.replace(deed, cost=meant.cost, settled=settled, settle_wait_s=time.monotonic() - began)

    async def _until_decided(
        self, path: str, body: Mapping[str, object], *, give_up_at: float = float("inf")
    ) -> Heard | None:
        """What was decided; None if nobody answered until then."""
        while time.monotonic() < give_up_at:
            self.tries += 1
            if (heard := await self._ask(self._pages[self.tries % len(self._pages)], path, body)) is not None:
                return heard
            await asyncio.sleep(PAUSE_S)
        return None

    async def _ask(self, page: str, path: str, body: Mapping[str, object]) -> Heard | None:
        try:
            async with self._session.post(f"{page}{path}", json=body) as answer:
                raw = await answer.read()
        except (aiohttp.ClientError, TimeoutError):
            return None
        said = msgspec.json.decode(raw, type=_Body)
        if said.receipt is None or said.outcome == "late":
            assert answer.status == 503, (answer.status, raw)
            return None
        return Heard(said.outcome, 0, said.receipt.seq)


async def settled_shown(session: aiohttp.ClientSession, page: str) -> dict[str, int] | None:
    """What `/v1/status` of this web process says is settled, budget by budget; None while it cannot say."""
    async with session.get(f"{page}/v1/status") as answer:
        if not answer.ok:
            return None
        budgets = (await answer.json())["budgets"]
    return {one["name"]: parse(one["settled"], unit=UNIT, scale=SCALES[UNIT]) for one in budgets}


def _written(amount: int) -> dict[str, str]:
    return {UNIT: format_amount(amount, scale=SCALES[UNIT])}
