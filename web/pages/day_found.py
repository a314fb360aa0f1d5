"""A day of the past with all that is known of it: what its page draws from. It writes no HTML."""

from __future__ import annotations

from datetime import date, timedelta

import msgspec
from aiohttp import web

from engine.core.documents import DayTotals, Detail, WalletDay
from engine.errors import BadAsk
from projector.audited import Audited
from projector.day_range import DayRange
from web.days import day_of, nothing_of
from web.desk import Desk
from web.moments import NS_PER_S
from web.pages.calendar import read_audits
from web.pages.past_words import DAY
from web.past import moment_of, range_of

_details = msgspec.json.Decoder(tuple[list[DayTotals], WalletDay | None, list[Detail]])
_calendar = msgspec.json.Decoder(list[DayTotals])


class Found(msgspec.Struct, frozen=True):
    """A day with all that is known of it. `at`: the moment that the address names; `wrong`: why it names none."""

    day: DayRange
    now: int
    totals: list[DayTotals]
    others: list[DayTotals]
    wallet_day: WalletDay | None
    details: dict[str, Detail]
    audit: Audited | None
    neighbours: tuple[str, str]
    at: int | None
    wrong: str

    @property
    def over(self) -> bool:
        return self.now >= self.day.end

    @property
    def last(self) -> int:
        """The last moment that can be looked at, a whole second."""
        return self.day.end - NS_PER_S if self.over else self.now // NS_PER_S * NS_PER_S

    @property
    def shown_at(self) -> int:
        """The moment that is shown at first: the one asked for, or that of the highest use."""
        if self.at is not None:
            return self.at
        peaks = [one.peak_at for one in self.totals if one.peak_at is not None and one.peak_at in self.day]
        return min(peaks[0] // NS_PER_S * NS_PER_S + NS_PER_S if peaks else self.day.start, self.last)


async def find(request: web.Request, desk: Desk) -> Found:
    """Raises `Problem` 404 where nothing is recorded."""
    name = day_of(request)
    day = await range_of(desk, name)
    await desk.board.catch_up()
    totals, wallet_day, details = _details.decode(await desk.purse.read("details", name.encode()))
    if not totals and wallet_day is None:
        raise nothing_of(name)
    audits = await read_audits(desk)
    now = desk.purse.now()
    at, wrong = _asked_for(request, day, now)
    return Found(
        day=day,
        now=now,
        totals=[one for one in totals if one.period == name],
        others=[one for one in totals if one.period != name],
        wallet_day=wallet_day,
        details={one.budget: one for one in details if one.period == name},
        audit=audits.get(name),
        neighbours=await _neighbours(desk, name),
        at=at,
        wrong=wrong,
    )


def _asked_for(request: web.Request, day: DayRange, now: int) -> tuple[int | None, str]:
    said = request.query.get("at")
    if not said:
        return None, ""
    try:
        return moment_of(day, said, now=now), ""
    except BadAsk as error:
        return None, DAY.at_least.format(why=error.why)


async def _neighbours(desk: Desk, name: str) -> tuple[str, str]:
    """The days on record next to this one, "" where there is none."""
    behind = (date.fromisoformat(name) + timedelta(days=2)).isoformat()
    days = {one.period for one in _calendar.decode(await desk.purse.read("calendar", behind.encode()))}
    earlier = max((day for day in days if day < name), default="")
    return earlier, max((day for day in days if day > name), default="")
