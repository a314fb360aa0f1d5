"""Alerts at a real receiver that fails and hangs, from two projectors of which one is killed; and the freeze."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from integration.rig import (
    CENT,
    DOLLAR,
    Process,
    append,
    audited,
    eventually,
    penny,
    process_of,
    running,
    serving,
    told,
)

from engine.client import Purse
from engine.core.documents import AlertShown
from engine.core.messages import Again, Done, Frozen, Held, Settled
from engine.embedded import EmbeddedServer
from engine.errors import NoAnswer
from engine.journal import Journal
from projector.alerts.freezing import Freezing
from projector.alerts.records import Record, Records
from projector.alerts.rules import Rules, Runaway
from projector.alerts.running import Alerting
from projector.alerts.seen import HOUR_NS
from projector.alerts.spending import Spending
from projector.alerts.target import Target, TargetSettings
from projector.delivery.parcel import Parcel
from projector.delivery.webhook import signature
from projector.service import Projector

SECRET = "of-both"
WITHIN_S = 120.0  # a claim of who was killed stands for 7 s, and a busy machine makes everything late
HALF = "alert:percent:jev:total:50"
IDS = {f"alert:percent:jev:total:{percent}" for percent in (50, 75, 90, 100)}
SENT = {id: {"ops": "sent", "chat": "sent"} for id in IDS}
CALLS, ABREAST = 100, 8


@dataclass(frozen=True)
class Arrival:
    """One POST as it came. `at`: this machine's clock, which is the server's too."""

    target: str
    id: str
    at: int


@dataclass
class Receiver:
    """Takes all but some of the first: these it answers with 500, or not in time."""

    url: str = ""
    came: list[Arrival] = field(default_factory=list)
    taken: list[Arrival] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    async def post(self, request: web.Request) -> web.Response:
        raw = await request.read()
        arrival = Arrival(request.path.strip("/"), request.headers["Purse-Id"], time.time_ns())
        self.came.append(arrival)
        parcel = Parcel(arrival.id, raw)
        if request.headers["Purse-Signature"] != signature(SECRET, parcel, int(request.headers["Purse-Timestamp"])):
            self.wrong.append(arrival.id)
        match len(self.came):
            case 1 | 5:
                return web.Response(status=500)
            case 3 | 7:
                await asyncio.sleep(3)  # longer than it may take: nobody hears this answer
        self.taken.append(arrival)
        return web.Response()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    found = Receiver()
    app = web.Application()
    app.router.add_post("/{target}", found.post)
    server = TestServer(app)
    await server.start_server()
    found.url = str(server.make_url("/"))
    yield found
    await server.close()


CONFIG = """
[alerts.targets.ops]
kind = "json"
url_env = "OPS_URL"
secret_env = "HOOK_SECRET"
timeout_s = 2

[alerts.targets.chat]
kind = "slack"
url_env = "CHAT_URL"
secret_env = "HOOK_SECRET"
timeout_s = 2
"""


def config_in(data: Path) -> Path:
    data.mkdir(exist_ok=True)
    config = data / "purse.toml"
    config.write_text(CONFIG)
    return config


@asynccontextmanager
async def projector_process(
    server: EmbeddedServer, wallet: str, receiver: Receiver, data: Path
) -> AsyncIterator[Process]:
    """`python -m projector` with both targets, caught up."""
    config = config_in(data)
    environment = {
        "PURSE_NATS_URL": server.url, "PURSE_WALLET": wallet, "PURSE_DATA": str(data), "PURSE_CONFIG": str(config),
        "OPS_URL": f"{receiver.url}ops", "CHAT_URL": f"{receiver.url}chat", "HOOK_SECRET": SECRET,
    }  # fmt: skip
    async with process_of(["-m", "projector"], **environment) as process:
        await process.until("caught_up")
        yield process


async def spend(purse: Purse, numbers: list[int]) -> None:
    """The calls of one caller, a cent each."""
    while numbers:
        id = f"call-{numbers.pop()}"
        await purse.hold({"usd": "0.01"}, id=id, wait_s=WITHIN_S)
        await purse.settle(id, {"usd": "0.01"}, wait_s=WITHIN_S)


async def shows(purse: Purse, wanted: dict[str, dict[str, str]]) -> bool:
    """Whether these are all alerts, and what became of each, by the word of whichever projector answers."""
    try:
        found = msgspec.json.decode(await purse.read("alerts"), type=list[AlertShown])
    except NoAnswer:
        return False
    return {alert.id: alert.deliveries for alert in found} == wanted


class _Message(msgspec.Struct, frozen=True):
    time: str


class _Got(msgspec.Struct, frozen=True):
    message: _Message


async def recorded_at(journal: Journal, id: str, target: str) -> int:
    """When the server stored the record that says that this was sent, ns."""
    records = Records(journal)
    record, place = await records.read(id, target)
    assert record is not None
    assert record.state == "sent"
    got = await journal.api(f"STREAM.MSG.GET.KV_PURSE_{journal.names.wallet}_alerts", {"seq": place}, _Got)
    whole, _, fraction = got.message.time.removesuffix("Z").partition(".")
    moment = time.strptime(f"{whole}Z", "%Y-%m-%dT%H:%M:%SZ")
    return (int(time.mktime(moment)) - time.timezone) * 10**9 + int(fraction.ljust(9, "0"))


async def test_each_threshold_arrives_at_each_target_from_two_projectors_although_one_is_killed_and_it_fails(
    nats_server: EmbeddedServer, wallet_name: str, receiver: Receiver, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        purse, journal = await enter(serving(nats_server, wallet_name))
        first = await enter(projector_process(nats_server, wallet_name, receiver, tmp_path / "one"))
        await enter(projector_process(nats_server, wallet_name, receiver, tmp_path / "two"))
        numbers = list(range(CALLS))
        async with asyncio.TaskGroup() as callers:
            for _ in range(ABREAST):
                callers.create_task(spend(purse, numbers))
            await eventually(lambda: receiver.came, within_s=WITHIN_S)
            first.signal(signal.SIGKILL)
        async with projector_process(nats_server, wallet_name, receiver, tmp_path / "one"):
            await eventually(lambda: shows(purse, SENT), within_s=WITHIN_S)
        assert not receiver.wrong
        assert {(one.target, one.id) for one in receiver.taken} == {(to, id) for to in ("ops", "chat") for id in IDS}
        for arrival in receiver.came:
            assert arrival.at < await recorded_at(journal, arrival.id, arrival.target), "it came after it was recorded"
        came = len(receiver.came)
    async with (
        projector_process(nats_server, wallet_name, receiver, tmp_path / "from-zero"),
        Purse.connect(nats_server.url, wallet=wallet_name) as purse,
    ):
        await eventually(lambda: shows(purse, SENT), within_s=WITHIN_S)
    assert len(receiver.came) == came, "a projector that begins from zero sends nothing anew"


# --- old alerts, tests ------------------------------------------------------------------------------------------------


class Kept:
    """A target that keeps what it gets."""

    def __init__(self) -> None:
        self.parcels: list[Parcel] = []

    async def carry(self, parcel: Parcel) -> None:
        self.parcels.append(parcel)


def target_of(carrier: Kept) -> Target:
    return Target(TargetSettings(name="ops", kind="json", url="", timeout_s=1), carrier)


@asynccontextmanager
async def alerting_projector(url: str, wallet: str, alerts: Alerting) -> AsyncIterator[Projector]:
    async with Journal.connect(url, wallet=wallet, name="projector") as journal:
        projector = Projector(journal, alerts=alerts)
        async with running(projector, projector.run(), journal) as started:
            await eventually(lambda: projector.caught_up.is_set() or started.task.done())
            yield projector


async def test_what_is_old_is_recorded_as_missed_and_not_sent(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projector.alerts.sending.AGE_S_MAX", -3600)  # as if all of it had been long ago
    kept = Kept()
    async with serving(nats_server, wallet_name) as (purse, journal):
        await append(journal, penny("a", 60 * CENT))
        await told(journal)
        async with alerting_projector(nats_server.url, wallet_name, Alerting(targets=[target_of(kept)])):
            await eventually(lambda: shows(purse, {HALF: {"ops": "missed"}}))
        assert kept.parcels == []
        monkeypatch.undo()
        async with alerting_projector(nats_server.url, wallet_name, Alerting(targets=[target_of(kept)])):
            await eventually(lambda: shows(purse, {HALF: {"ops": "missed"}}))
        assert kept.parcels == []


async def test_what_a_projector_claimed_that_died_is_sent_by_another_once_it_cannot_be_sending_any_more(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projector.alerts.sending.CLAIM_SPARE_S", 0)
    kept = Kept()
    async with serving(nats_server, wallet_name) as (purse, journal):
        records = Records(journal)
        await records.open()
        died = Record(HALF, "ops", "sending", "another", time.time_ns(), tries=1)
        assert await records.write(died, instead_of=0)
        assert await records.write(died, instead_of=0) is None
        await append(journal, penny("a", 60 * CENT))
        async with alerting_projector(nats_server.url, wallet_name, Alerting(targets=[target_of(kept)])):
            await eventually(lambda: shows(purse, {HALF: {"ops": "sending"}}))
            await eventually(lambda: shows(purse, {HALF: {"ops": "sent"}}))
        record, _ = await records.read(HALF, "ops")
        assert record is not None
        assert (record.tries, len(kept.parcels)) == (2, 1)


async def test_of_two_projectors_one_sends(nats_server: EmbeddedServer, wallet_name: str) -> None:
    kept = Kept()
    async with (
        serving(nats_server, wallet_name) as (purse, journal),
        alerting_projector(nats_server.url, wallet_name, Alerting(targets=[target_of(kept)])) as one,
        alerting_projector(nats_server.url, wallet_name, Alerting(targets=[target_of(kept)])) as other,
    ):
        for number in range(10):
            await append(journal, penny(f"h{number}", 10 * CENT))

        def all_sent() -> bool:
            found = [alert.deliveries["ops"] for each in (one, other) for alert in each.alerts.shown()]
            return found == ["sent"] * 8

        await eventually(all_sent)
        assert sorted(parcel.id for parcel in kept.parcels) == sorted(IDS)
        status = await purse.status()
        assert status is not None
        assert [alert.delivered for alert in status.alerts] == [True] * 4


async def test_a_test_alert_goes_to_the_targets_of_one_projector_at_once(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    kept = Kept()
    async with (
        serving(nats_server, wallet_name) as (purse, _),
        alerting_projector(nats_server.url, wallet_name, Alerting(targets=[target_of(kept)])),
        alerting_projector(nats_server.url, wallet_name, Alerting(targets=[target_of(kept)])),
    ):
        assert [(one.target, one.delivered) for one in await purse.test_alerts()] == [("ops", True)]
        assert await purse.test_alerts("nobody") == []
        assert len(kept.parcels) == 1
        status = await purse.status()
        assert status is not None
        assert status.alerts == []


# --- freezing ---------------------------------------------------------------------------------------------------------

RUNAWAY = Rules(runaways=(Runaway(budget="jev"),))


@asynccontextmanager
async def with_history(url: str, wallet: str) -> AsyncIterator[Alerting]:
    """Alerts of a projector that remembers a week in which nothing was spent."""
    async with Purse.connect(url, wallet=wallet) as purse:
        alerts = Alerting(RUNAWAY, freezing=Freezing(purse))
        week_ago = time.time_ns() // HOUR_NS - 7 * 24
        alerts.fold._spending["jev"] = Spending(first_hour=week_ago)
        yield alerts


async def test_two_projectors_freeze_a_runaway_once_and_not_again_after_a_thaw(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    url = nats_server.url
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        purse, journal = await enter(serving(nats_server, wallet_name))
        for _ in range(2):
            alerts = await enter(with_history(url, wallet_name))
            await enter(alerting_projector(url, wallet_name, alerts))
        await purse.hold({"usd": "0.20"}, id="a")
        await purse.settle("a", {"usd": "0.20"})

        async def frozen() -> bool:
            return isinstance(await purse.hold({"usd": "0.01"}), Frozen)

        await eventually(frozen)
        assert isinstance(await purse.thaw("jev", "looked at it"), Done)
        again = await enter(with_history(url, wallet_name))
        await enter(alerting_projector(url, wallet_name, again))

        async def asked_by_all() -> bool:
            asked = await freezes(journal)
            return len(asked) >= 2 and again._freezing is not None and bool(again._freezing._asked)

        await eventually(asked_by_all)
        asked = await freezes(journal)
        assert [type(outcome) for outcome in asked].count(Done) == 1
        assert all(isinstance(outcome, Done | Again) for outcome in asked)
        assert isinstance(await purse.hold({"usd": "0.01"}), Held)


async def freezes(journal: Journal) -> list[object]:
    """What was told of freezes by a rule."""
    found = await audited(journal)
    return [outcome for outcome in found.outcomes if getattr(outcome, "id", "").startswith("freeze:jev:")]


async def test_a_freeze_amid_a_thousand_calls_refuses_every_later_hold_and_lets_every_settle_land(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        cost = {"usd": "0.0001"}
        early = [f"early-{number}" for number in range(500)]
        late = [f"late-{number}" for number in range(500)]
        await asyncio.gather(*(purse.hold(cost, id=id, wait_s=WITHIN_S) for id in early))
        holds = [asyncio.create_task(purse.hold(cost, id=id, wait_s=WITHIN_S)) for id in late]
        settles = [asyncio.create_task(purse.settle(id, cost, wait_s=WITHIN_S)) for id in early[:250]]
        await asyncio.sleep(0)
        assert isinstance(await purse.freeze("all", "stop"), Done)
        after = await asyncio.gather(*(purse.hold(cost, id=f"after-{n}", wait_s=WITHIN_S) for n in range(50)))
        assert all(isinstance(outcome, Frozen) for outcome in after)
        held = [id for id, outcome in zip(late, await asyncio.gather(*holds), strict=True) if isinstance(outcome, Held)]
        settled = await asyncio.gather(
            *settles, *(purse.settle(id, cost, wait_s=WITHIN_S) for id in early[250:] + held)
        )
        assert all(isinstance(outcome, Settled) for outcome in settled)

        found = await told(journal)
        places = {outcome.id: seq for seq, entry in found.entries.items() for outcome in entry.out
                  if isinstance(outcome, Held)}  # fmt: skip
        (stopped,) = [seq for seq, entry in found.entries.items() for outcome in entry.out if isinstance(outcome, Done)]
        assert max(places.values()) < stopped
        assert places.keys() == {*early, *held}
        assert found.wallet.meters()["jev", None, "total"][:2] == (len(places) * DOLLAR // 10_000, 0)
        assert not found.wallet.open
