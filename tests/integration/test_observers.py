"""Observers on the real server: what a provider says reaches budget, status and page, and so does its silence."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import msgspec
import pytest
from integration.rig import WITHIN_S, audited, engine_on, eventually, process_of, projector_on, wallet_on
from providers.observed import ACCOUNT, BELOW, KEY, Reports, reports_at, status

from engine.client import Purse
from engine.core.documents import BudgetStatus, Reading, Status
from engine.core.messages import Exhausted, Held, Observed
from engine.core.plan import Budget, Plan
from engine.embedded import EmbeddedServer
from engine.journal import Journal
from projector.observers.days import start_s, utc_day
from projector.observers.fetch import open_session
from projector.observers.observer import Observer
from projector.observers.pace import Pace
from projector.observers.running import Observers, observing, source_of
from projector.observers.settings import ObserverSettings
from web import page
from web.status import document

SECOND = 1_000_000_000
NEURON = 1_000_000
PLAN = Plan({"neurons": Budget("neurons", 10_000 * NEURON, source="cloudflare", public="amounts")})
SPARE_S = 45  # until midnight: more than a test takes to say what "today" is


@pytest.fixture
async def reports() -> AsyncIterator[Reports]:
    """The provider, in a day that goes on for a while."""
    await eventually(lambda: time.time() % 86_400 < 86_400 - SPARE_S, within_s=2 * SPARE_S)
    async with reports_at(int(time.time())) as reports:
        yield reports


def settings(reports: Reports) -> ObserverSettings:
    return ObserverSettings(
        name="workers", source="cloudflare", budget="neurons", account=ACCOUNT, every_s=30,
        base_url=reports.url + BELOW["cloudflare"], key=KEY,
    )  # fmt: skip


async def hurried(_seconds: float) -> None:
    """A wait of thirty seconds, for those who look."""
    await asyncio.sleep(0.02)


@asynccontextmanager
async def observers_of(reports: Reports, server: EmbeddedServer, wallet: str) -> AsyncIterator[Observers]:
    """An observer that does not wait."""
    one = settings(reports)
    async with Purse.connect(server.url, wallet=wallet) as purse, open_session() as session:
        pace = Pace(one.every_s, lambda: 0.0)
        yield Observers([Observer(one, source_of(one, session), purse, turn=asyncio.Lock(), pace=pace, sleep=hurried)])


@dataclass
class Watched:
    """A wallet whose account is read."""

    purse: Purse
    journal: Journal

    async def budget(self) -> BudgetStatus:
        return (await self.status()).budgets[0]

    async def status(self) -> Status:
        return await eventually(self.purse.status)

    async def once(self, seen: Callable[[BudgetStatus], object]) -> BudgetStatus:
        """The budget, once it is so."""

        async def so() -> BudgetStatus | None:
            budget = await self.budget()
            return budget if seen(budget) else None

        return await eventually(so)


@asynccontextmanager
async def watched(
    reports: Reports, server: EmbeddedServer, wallet: str, *, projectors: int = 1
) -> AsyncIterator[Watched]:
    async with AsyncExitStack() as stack:
        journal = await stack.enter_async_context(wallet_on(server.url, wallet, plan=PLAN))
        await stack.enter_async_context(engine_on(server.url, wallet))
        for _ in range(projectors):
            observers = await stack.enter_async_context(observers_of(reports, server, wallet))
            await stack.enter_async_context(projector_on(server.url, wallet, observers=observers))
        purse = await stack.enter_async_context(Purse.connect(server.url, wallet=wallet))
        yield Watched(purse, journal)


def shown(status: Status) -> str:
    """The page."""
    return unescape(page.render(status, now=status.as_of, origin="http://purse.test"))


def own_calls(status: Status, *, later_s: int = 0) -> str:
    """What the page says of the wallet's own count, so long after the status; "" if nothing."""
    html = page.render(status, now=status.as_of + later_s * SECOND, origin="http://purse.test")
    found = re.search(r'data-at="own-calls"( hidden)?>([^<]*)<', html)
    assert found is not None
    assert bool(found[1]) == (not found[2])
    return unescape(found[2])


# --- what others spend ------------------------------------------------------------------------------------------------


async def test_a15_what_a_thief_spends_on_the_account_is_counted_and_the_next_call_refused(
    reports: Reports, nats_server: EmbeddedServer, wallet_name: str
) -> None:
    """Whatever limit the provider would have let it pass: ours counts what it says was spent."""
    async with watched(reports, nats_server, wallet_name) as wallet:
        assert isinstance(await wallet.purse.hold({"neurons": "100"}, id="ours"), Held)
        await wallet.purse.settle("ours", {"neurons": "100"})
        reports.spend("9950.1234561", whose="a thief")
        budget = await wallet.once(lambda budget: budget.extra)
        assert budget.observed is not None
        assert budget.observed.figure == 9_950_123_457, "rounded up to the smallest part"
        assert (budget.settled, budget.extra, budget.used) == (100 * NEURON, 9_850_123_457, 9_950_123_457)
        refused = await wallet.purse.hold({"neurons": "50"}, id="next")
        assert isinstance(refused, Exhausted)
        assert (refused.why, refused.fits) == ("spent", 10_000 * NEURON - 9_950_123_457)
        text = shown(await wallet.status())
        assert "99 % used." in text
        assert "9,850.123457" in text
        assert own_calls(await wallet.status()) == ""


async def test_f11_what_was_settled_by_the_documentation_is_raised_to_what_was_measured(
    reports: Reports, nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with watched(reports, nats_server, wallet_name) as wallet:
        await wallet.purse.hold({"neurons": "100"}, id="one")
        await wallet.purse.settle("one", {"neurons": "57.6"})
        reports.spend("172.8")
        budget = await wallet.once(lambda budget: budget.extra)
        assert budget.used == 172_800_000


async def test_a_figure_that_falls_lowers_nothing(
    reports: Reports, nats_server: EmbeddedServer, wallet_name: str
) -> None:
    reports.spend("500")
    async with watched(reports, nats_server, wallet_name) as wallet:
        await wallet.once(lambda budget: budget.used == 500 * NEURON)
        reports.less += 200

        async def said() -> bool:
            return (await audited(wallet.journal)).count(Observed) == 2

        await eventually(said)
        budget = await wallet.once(lambda budget: budget.reading and budget.reading.read_at)
        assert budget.used == 500 * NEURON


async def test_what_does_not_change_does_not_fill_the_stream_and_is_fresh_all_the_same(
    reports: Reports, nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with watched(reports, nats_server, wallet_name) as wallet:
        reports.spend("500")
        first = await wallet.once(lambda budget: budget.used == 500 * NEURON)
        observed = (await audited(wallet.journal)).count(Observed)
        asked = len(reports.asked)
        await eventually(lambda: len(reports.asked) >= asked + 5)
        assert (await audited(wallet.journal)).count(Observed) == observed
        later = await wallet.budget()
        assert later.observed == first.observed
        assert later.observed is not None
        assert later.reading is not None
        assert later.reading.read_at > later.observed.as_of


async def test_two_that_observe_do_no_harm(reports: Reports, nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with watched(reports, nats_server, wallet_name, projectors=2) as wallet:
        for amount in ("100", "200", "300"):
            reports.spend(amount)
            goal = sum(int(one.amount) for one in reports._spent) * NEURON
            await wallet.once(lambda budget, goal=goal: budget.used == goal)  # type: ignore[misc]
        record = await audited(wallet.journal)
        (meter,) = record.wallet.meters().values()
        assert meter == (0, 0, 600 * NEURON, 600 * NEURON)


async def test_the_day_that_has_ended_is_observed_as_itself(
    reports: Reports, nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name, plan=PLAN) as journal,
        engine_on(nats_server.url, wallet_name) as engine,
        projector_on(nats_server.url, wallet_name) as projector,
        observers_of(reports, nats_server, wallet_name) as observers,
    ):
        (observer,) = observers._observers.values()
        midnight = start_s(utc_day(await journal.now())) * SECOND
        await eventually(lambda: later(journal, midnight + 2 * SECOND))
        reports.spend("700", at_s=midnight // SECOND - 1)
        reports.now_s = midnight // SECOND + 1
        reports.spend("5")

        def just_after_midnight() -> Status:
            return msgspec.structs.replace(projector.service._status(), as_of=midnight + SECOND)

        await observer.look(just_after_midnight)
        meters = engine.service.wallet.meters()
        by_day = {period: extra for (_, _, period), (_, _, extra, _) in meters.items()}
        yesterday, today = (utc_day(at).isoformat() for at in (midnight - 1, midnight))
        assert by_day == {yesterday: 700 * NEURON, today: 5 * NEURON}


async def later(journal: Journal, moment: int) -> bool:
    return await journal.now() >= moment


async def test_observers_of_one_provider_wait_for_each_other_and_for_nobody_else(
    reports: Reports, nats_server: EmbeddedServer, wallet_name: str
) -> None:
    workers = settings(reports)
    three = [
        workers,
        dataclasses.replace(workers, name="more", budget="more"),
        dataclasses.replace(workers, name="bill", budget="bill", source="openai"),
    ]
    async with observing(three, nats_server.url, wallet_name) as observers:
        first, second, third = (observer._turn for observer in observers._observers.values())
        assert first is second
        assert first is not third


# --- silence ----------------------------------------------------------------------------------------------------------


async def test_while_the_account_cannot_be_read_status_and_page_say_so(
    reports: Reports, nats_server: EmbeddedServer, wallet_name: str
) -> None:
    reports.faults = [status(500)] * 1_000_000
    async with watched(reports, nats_server, wallet_name) as wallet:
        budget = await wallet.once(lambda budget: budget.reading and budget.reading.unreadable)
        assert budget.reading == Reading("cloudflare", 30, 0, "it answers with status 500")
        now = await wallet.status()
        assert _reading(now, "operator") == {
            "source": "cloudflare", "read_at": None, "every_s": 30, "stale": True, "unreadable": True,
            "why": "it answers with status 500",
        }  # fmt: skip
        assert "why" not in _reading(now, "public")
        assert own_calls(now) == "Counting its own calls since the period began: cloudflare cannot be read."
        assert isinstance(await wallet.purse.hold({"neurons": "100"}), Held), "it goes on by its own count"

        reports.faults = []
        reports.spend("40")
        await wallet.once(lambda budget: budget.extra and budget.reading and not budget.reading.unreadable)
        now = await wallet.status()
        assert (_reading(now, "public")["stale"], _reading(now, "public")["unreadable"]) == (False, False)
        reading = now.budgets[0].reading
        assert reading is not None
        old_s = (now.as_of - reading.read_at) // SECOND
        assert own_calls(now, later_s=89 - old_s) == ""
        assert own_calls(now, later_s=91 - old_s).endswith(": cloudflare has given no newer figure.")


def _reading(status: Status, audience: str) -> dict[str, object]:
    shown = document(status, audience="operator" if audience == "operator" else "public", live=True)
    (budget,) = json.loads(json.dumps(shown))["budgets"]
    reading: dict[str, object] = budget["reading"]
    return reading


async def test_it_goes_on_after_the_server_was_restarted(
    reports: Reports, own_server: EmbeddedServer, wallet_name: str
) -> None:
    async with watched(reports, own_server, wallet_name) as wallet:
        reports.spend("40")
        await wallet.once(lambda budget: budget.extra == 40 * NEURON)
        await own_server.restart()
        reports.spend("2")
        await wallet.once(lambda budget: budget.extra == 42 * NEURON)


# --- as a process -----------------------------------------------------------------------------------------------------


def config(folder: Path, reports: Reports, **changed: str) -> Path:
    table = {
        "source": "cloudflare", "budget": "neurons", "account": ACCOUNT, "key_env": "WORKERS_KEY",
        "base_url": reports.url + BELOW["cloudflare"],
    } | changed  # fmt: skip
    file = folder / "purse.toml"
    file.write_text(
        "[observers.workers]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items())
    )
    return file


async def test_a_projector_told_to_observe_does_and_its_log_has_no_key(
    reports: Reports, nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    reports.faults = [status(403)]
    reports.spend("123.5")
    environment = {
        "PURSE_NATS_URL": nats_server.url, "PURSE_WALLET": wallet_name, "WORKERS_KEY": KEY,
        "PURSE_CONFIG": str(config(tmp_path, reports)),
    }  # fmt: skip
    async with (
        wallet_on(nats_server.url, wallet_name, plan=PLAN),
        engine_on(nats_server.url, wallet_name),
        process_of(["-m", "projector"], **environment) as process,
        Purse.connect(nats_server.url, wallet=wallet_name) as purse,
    ):
        assert (await process.until("projector_starting"))["observers"] == ["workers"]
        unreadable = await process.until("source_unreadable")
        assert unreadable["why"] == "it does not let this key read the figure (status 403)"

        async def said() -> bool:
            status = await purse.status()
            return bool(status and status.budgets[0].reading and status.budgets[0].reading.unreadable)

        await eventually(said)
        process.signal(signal.SIGTERM)
        assert await process.wait() == 0
        assert KEY not in json.dumps(process.said)
    async with (
        process_of(["-m", "projector"], **environment) as process,
        Purse.connect(nats_server.url, wallet=wallet_name) as purse,
        engine_on(nats_server.url, wallet_name),
    ):
        assert (await process.until("observed"))["figure"] == 123_500_000
        process.signal(signal.SIGTERM)
        assert await process.wait() == 0


async def test_a_projector_told_to_observe_what_it_cannot_ends_with_2_and_names_the_place(
    reports: Reports, nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    file = config(tmp_path, reports, source="acme")
    environment = {"PURSE_NATS_URL": nats_server.url, "PURSE_WALLET": wallet_name, "PURSE_CONFIG": str(file)}
    async with process_of(["-m", "projector"], **environment) as process:
        assert await process.wait() == 2
        (said,) = process.events("misconfigured")
        assert said["why"].startswith(f"{file}: observers.workers.source: expected one of")


async def test_a_projector_without_observers_loads_nothing_that_asks_a_provider() -> None:
    code = "import sys, projector.__main__; sys.exit('projector.observers.fetch' in sys.modules)"
    async with process_of(["-c", code]) as process:
        async with asyncio.timeout(WITHIN_S):
            assert await process.wait() == 0
