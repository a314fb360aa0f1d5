"""`purse doctor`: is everything in order, and what can be done where it is not.

It looks and explains. Three things change anything, and only when they are asked for: accepting a loss and skipping
time, which append one ask to the stream each, and putting back a store that was set aside.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from commonpurse.aside import store_of
from commonpurse.broker import look_at_broker
from commonpurse.findings import Patient, Report, State
from commonpurse.record_server import server_of
from commonpurse.sealed_days import differing, in_words, wrong_in_words
from commonpurse.surroundings import look_around, look_at_port
from commonpurse.survey import Survey, Untold, loss_of, survey, witnesses
from engine.clock_check import CLOCK_AHEAD_S_MAX
from engine.core.messages import AnyAsk, ApplyPlan, AskMessage, Clock, Done, Loss, Planned
from engine.core.plan import Plan
from engine.core.tell import tell
from engine.errors import NoAnswer, PurseError, StreamRefused, Untrusted
from engine.journal import NO_STREAM, Journal, public_address
from engine.plan_file import DEFAULT_PLAN
from engine.plan_file import read as read_plan
from engine.stream_clock import written
from engine.witness import FOLDER, ROLES
from projector.seals.witness import Known, known, path_of

CLOCK_OFF_S_MAX = 60
APPEND_WAIT_S = 30.0
ENGINE_WAIT_S = 1.0
NS = 1_000_000_000


async def examine(
    patient: Patient, *, accept_loss: bool = False, skip_time: bool = False, by_whom: str = "", reason: str = ""
) -> Report:
    """Look at everything; with `accept_loss`, append the loss that covers what is lost, and say so.

    With `skip_time`, append the clock that covers the stamps that are ahead of this machine's clock.
    """
    report = Report()
    look_around(patient, report, os.environ)
    if patient.nats is None and not store_of(patient.data).is_dir():
        report.add("stream", f"There is no store in {patient.data} yet: `purse up` makes it.", state="problem")
        return report
    try:
        async with _server(patient, report) as url, Journal.connect(url, wallet=patient.wallet) as journal:
            if accept_loss:
                await journal.ensure_stream()
            witnessed = known(path_of(patient.data, patient.wallet))  # first: it may grow while the stream is read
            await journal.check_stream()
            report.add("settings", "The stream is set as this release relies on.")
            await look_at_broker(journal, report)
            found = await survey(journal, patient.data)
            _explain(found, report)
            _look_at_clock(found, patient.now(), report)
            _look_at_witnesses(patient, report)
            _look_at_seals(found, witnessed, report)
            if accept_loss:
                await _accept(journal, found, patient, report, by_whom=by_whom, reason=reason)
            if skip_time:
                await _skip(journal, found, patient, report, by_whom=by_whom, reason=reason)
    except Untrusted as error:
        report.add("stream", str(error), state="untrusted")
    except PurseError as error:
        report.add("stream", str(error), state="problem")
        _miss_the_whole_stream(patient, error, report)
    return report


@asynccontextmanager
async def _server(patient: Patient, report: Report) -> AsyncIterator[str]:
    """The server that runs, or one of our own on the data folder for as long as we look."""
    async with server_of(patient.data, wallet=patient.wallet, nats=patient.nats) as found:
        if found.kind == "running":
            report.add("server", f"`purse up` runs on {patient.data}.")
        elif found.kind == "started":
            report.add("server", "Nothing runs here now; a server was started to look, on this machine only.")
            look_at_port(patient, report, os.environ)
        else:
            report.add("server", f"A NATS server is looked at: {public_address(found.url)}.")
        yield found.url


# --- looking ----------------------------------------------------------------------------------------------------------


def _look_at_clock(found: Survey, now: int, report: Report) -> None:
    off_s = (found.now - now) // NS
    if abs(off_s) > CLOCK_OFF_S_MAX:
        report.add("clock", f"The server's clock and this machine's differ by {off_s:+,} s.", state="problem")
    else:
        report.add("clock", "The server's clock and this machine's agree.")
    ahead = _stops_at(found, now)
    if ahead:
        report.add("time", _explained(ahead, now), state="untrusted")
    told_ahead_s = (found.told_at - now) // NS
    if told_ahead_s > CLOCK_AHEAD_S_MAX:
        report.add("time", _told_ahead(found, now), state="problem")
    elif not ahead and max(told_ahead_s, (found.wallet.at - now) // NS) > CLOCK_OFF_S_MAX:
        ahead_s = (found.wallet.at - now) // NS
        report.add("time", f"The newest message is from {ahead_s:,} s in the future.", state="problem")


def _stops_at(found: Survey, now: int) -> list[Untold]:
    """Untold messages whose own stamps have not come by this machine's clock, if an engine would stop at any."""
    ahead = [untold for untold in found.untold if untold.at >= untold.ts > now]
    return ahead if any(untold.ts > now + CLOCK_AHEAD_S_MAX * NS for untold in ahead) else []


def _explained(ahead: list[Untold], now: int) -> str:
    latest = max(untold.ts for untold in ahead)
    return (
        f"{len(ahead):,} messages from sequence {ahead[0].seq:,} to {ahead[-1].seq:,} wait to be told and bear stamps "
        f"from {written(min(untold.ts for untold in ahead))} to {written(latest)}, up to {(latest - now) // NS:,} s "
        f"ahead of this machine's clock, which says {written(now)}. The engine stops there: budgets would reset and "
        "holds lapse too early. If this machine's clock is behind, set it right and start again. If the server's was "
        "ahead and is right now, `purse doctor --skip-time` says so on the record: they are then decided at the moment "
        "of the message before them, so nothing lapses and no budget resets by those stamps."
    )


def _told_ahead(found: Survey, now: int) -> str:
    return (
        f"What was told last stands at {written(found.told_at)}, {(found.told_at - now) // NS:,} s ahead of this "
        "machine's clock. Told is told: time stands still there, and the engine goes on once this machine's clock says "
        f"{written(found.told_at - CLOCK_AHEAD_S_MAX * NS)}."
    )


def _look_at_witnesses(patient: Patient, report: Report) -> None:
    for role in ROLES:
        path = patient.data / FOLDER / f"{patient.wallet}-{role}.json"
        if not path.exists():
            report.add("witness", f"The {role} has written none yet.")
    readable = len(witnesses(patient.data, patient.wallet))
    there = sum((patient.data / FOLDER / f"{patient.wallet}-{role}.json").exists() for role in ROLES)
    if readable < there:
        report.add("witness", "A witness is damaged; it is written anew while the wallet runs.", state="problem")


def _look_at_seals(found: Survey, witnessed: Known, report: Report) -> None:
    if witnessed.damaged:
        says = (
            f"{witnessed.damaged:,} lines of the witness of seals cannot be read: somebody changed it, or the disk did."
        )
        report.add("seals", says, state="problem")
    if found.broken or found.contradictions:
        return report.add("seals", "Not compared: the stream comes first.")
    differ = differing(found.seals, witnessed)
    if not differ:
        return report.add("seals", in_words(found.seals, witnessed))
    state: State = "problem" if found.accepted else "untrusted"
    return report.add("seals", wrong_in_words(differ, lost=found.accepted), state=state)


def _miss_the_whole_stream(patient: Patient, error: PurseError, report: Report) -> None:
    """There is none; that is bad news only where somebody has seen one."""
    seen = max((seen.seq for seen in witnesses(patient.data, patient.wallet)), default=0)
    if seen and isinstance(error, StreamRefused) and error.code == NO_STREAM:
        report.lost.append((1, seen))
        report.add("stream", f"It was there up to sequence {seen:,}: all of it is lost. {_WAYS_OUT}", state="untrusted")


def _explain(found: Survey, report: Report) -> None:
    if found.later:
        report.add("stream", f"{found.broken}.", state="untrusted")
    elif found.broken:
        report.add(
            "stream",
            f"{found.broken}. What stands there was changed or is not from this wallet: no loss can cover that. "
            "Put back a store that was set aside (`purse doctor --restore-aside`) or a backup of your own.",
            state="untrusted",
        )
    for gone in found.contradictions:
        report.lost.append((gone.first, gone.last))
        report.add("stream", f"{gone.why}.", state="untrusted")
    if found.contradictions:
        report.add("stream", _WAYS_OUT, state="untrusted")
    elif not found.broken:
        report.add("stream", f"Whole from its beginning to sequence {found.last:,}, as everybody has seen it.")
    if found.foreign:
        says = (
            f"{found.foreign:,} answers of the NATS server lie among what engines tell: somebody who may ask said "
            "where. They count for nothing; look at who has the user `client`."
        )
        report.add("foreign", says, state="warning")


_WAYS_OUT = (
    "Asks and tolds that were acknowledged are gone, so what is left says less was spent than was. The engine decides "
    "nothing until you choose: (1) put back a copy that still has them, `purse doctor --restore-aside`, or a backup of "
    "your own; (2) go on without them, `purse doctor --accept-loss`: budgets then count at least what the projector's "
    "documents still know, those nobody knows enough of are frozen until they reset, and calls that were open are "
    "charged when they settle."
)


# --- accepting --------------------------------------------------------------------------------------------------------


async def _accept(
    journal: Journal, found: Survey, patient: Patient, report: Report, *, by_whom: str, reason: str
) -> None:
    if not found.contradictions:
        return report.add("loss", "Nothing is lost: there is nothing to accept.")
    if found.broken:
        return report.add("loss", "A loss would not help here; nothing was appended.", state="untrusted")
    asks: list[AnyAsk] = []
    if found.wallet.plan is None:  # it is lost as well, and before a plan nothing can be said of any budget
        asks.append(ApplyPlan(f"doctor:{secrets.token_hex(8)}", _plan_of(patient), "", by_whom))
    told = tell(found.wallet, seq=found.last + 1, ts=found.now, asks=asks).out
    asks.append(loss := loss_of(found, by_whom=by_whom, reason=reason))
    told += tell(found.wallet, seq=found.last + 2, ts=found.now, asks=[loss]).out
    if not all(isinstance(outcome, Planned | Done) for outcome in told):
        return report.add("loss", f"It would be refused ({told}); nothing was appended.", state="untrusted")
    try:
        await journal.append("admin", msgspec.json.encode(AskMessage(asks=asks)), wait_s=APPEND_WAIT_S)
    except (NoAnswer, StreamRefused) as error:
        return report.add("loss", f"The stream did not take it: {error}", state="untrusted")
    report.loss = loss
    report.findings = [finding for finding in report.findings if finding.state != "untrusted"]
    report.add("loss", _accepted(loss))
    return None


def _plan_of(patient: Patient) -> Plan:
    """The operator's plan, else the one that comes with us. Raises `Misconfigured`."""
    written = read_plan(patient.config).plan if patient.config is not None else None
    return written or DEFAULT_PLAN


def _accepted(loss: Loss) -> str:
    known = ", ".join(f"{use.budget} ({use.period})" for use in loss.used) or "none"
    frozen = ", ".join(loss.freeze) or "none"
    return (
        f"The loss of {loss.from_seq:,} to {loss.to_seq:,} is on the record as {loss.id}. Counted at what is still "
        f"known: {known}. Frozen until they reset (or `purse thaw`): {frozen}. Start the wallet again with `purse up`."
    )


# --- skipping time ----------------------------------------------------------------------------------------------------


async def _skip(
    journal: Journal, found: Survey, patient: Patient, report: Report, *, by_whom: str, reason: str
) -> None:
    now = patient.now()
    ahead = _stops_at(found, now)
    if not ahead:
        return report.add("skip", "No stamp that waits to be told is so far ahead: there is nothing to skip.")
    if not found.trusted:
        return report.add("skip", "What is lost comes first; nothing was appended.", state="untrusted")
    if abs(found.now - now) > CLOCK_OFF_S_MAX * NS:
        says = "The two clocks still differ: set the wrong one right first. Nothing was appended."
        return report.add("skip", says, state="untrusted")
    if await _engine_runs(journal):
        says = "An engine runs and may tell them by their stamps: stop the wallet first. Nothing was appended."
        return report.add("skip", says, state="untrusted")
    stamps = [untold.ts for untold in ahead]
    clock = Clock(f"clock:{secrets.token_hex(8)}", min(stamps), max(stamps) + 1, reason, by_whom)
    try:
        await journal.append("admin", msgspec.json.encode(AskMessage(asks=[clock])), wait_s=APPEND_WAIT_S)
    except (NoAnswer, StreamRefused) as error:
        return report.add("skip", f"The stream did not take it: {error}", state="untrusted")
    report.clock = clock
    report.findings = [finding for finding in report.findings if finding.state != "untrusted"]
    report.add(
        "skip",
        f"The stamps from {written(clock.start)} to {written(clock.end)} of {len(ahead):,} untold messages are "
        f"skipped, on the record as {clock.id}. Start the wallet again with `purse up`.",
    )
    return None


async def _engine_runs(journal: Journal) -> bool:
    try:
        await journal.request(journal.names.subject("ready"), wait_s=ENGINE_WAIT_S)
    except NoAnswer:
        return False
    return True
