"""Gives a wallet its stream and its plan: for `purse up`, or, where every process is started by itself, as
`python -m commonpurse.first_plan`, which reads PURSE_NATS_URL, PURSE_WALLET, PURSE_DATA and PURSE_CONFIG and ends.

A plan is appended where there is none, and later only when the operator's file has changed. It never makes meters start
at zero: that is for `purse plan apply --yes`, where a person reads first what restarts.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import msgspec

from engine.client import Purse
from engine.core.messages import Again, AnyOutcome, ApplyPlan, Conflict, Invalid, Planned
from engine.core.plan import Plan, digest, restarts
from engine.errors import Misconfigured, NoAnswer
from engine.journal import Journal
from engine.plan_file import DEFAULT_PLAN, read
from engine.process import main

POLL_S = 0.05
ASK_WAIT_S = 30.0
CLUSTER_REPLICAS = 3
CONFLICTS_MAX = 100  # with `POLL_S` between: a projector that long behind is not coming

_plan_in_force = msgspec.json.Decoder(Plan | None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The plan to decide by. `file` is None for the one that comes with us, `fingerprint` that of the file's bytes."""

    plan: Plan
    file: Path | None = None
    fingerprint: str = ""


def wanted_plan(config: Path | None) -> Wanted:
    """What the operator's file wants; without a file, or without a plan in it, the default plan.

    Raises `Misconfigured` naming file and place.
    """
    found = read(config) if config is not None else None
    if config is None or found is None or found.plan is None:
        return Wanted(DEFAULT_PLAN)
    return Wanted(found.plan, config, blake2b(config.read_bytes(), digest_size=16).hexdigest())


async def make_stream(url: str, wallet: str) -> None:
    """Make the wallet's stream if there is none, before anything looks for it: three copies in a cluster of three.

    Raises `PurseError`.
    """
    async with Journal.connect(url, wallet=wallet, name="purse-up") as journal:
        nodes = len(journal.client.servers)  # the one we spoke to names the others
        await journal.ensure_stream(replicas=CLUSTER_REPLICAS if nodes >= CLUSTER_REPLICAS else 1)


async def prepare_wallet(url: str, wallet: str, wanted: Wanted, data: Path) -> None:
    """Wait for engine and projector, then see to it that the wallet has its plan.

    `data` remembers which file was applied last, so that a plan changed by other means stays until the file changes.
    Raises `Misconfigured` if the plan is refused or would make meters start at zero.
    """
    applied = data / f"plan-{wallet}.applied"
    async with Purse.connect(url, wallet=wallet) as purse:
        for _ in range(CONFLICTS_MAX):
            in_force = await _in_force(purse)
            if not _is_news(wanted, in_force, applied):
                return
            outcome = await _apply(purse, wanted, in_force)
            if not isinstance(outcome, Conflict):
                await asyncio.to_thread(_remember, applied, wanted.fingerprint)
                return
            await asyncio.sleep(POLL_S)  # the projector had not read that far
    raise NoAnswer("the plan in force cannot be read: the projector is behind")


async def _in_force(purse: Purse) -> Plan | None:
    """The plan in force, once an engine and a projector say so; that they come up is the supervisor's work."""
    while True:
        try:
            if await purse.ready():
                return _plan_in_force.decode(await purse.read("plan"))
        except NoAnswer:
            pass
        await asyncio.sleep(POLL_S)


def _is_news(wanted: Wanted, in_force: Plan | None, applied: Path) -> bool:
    if in_force is None:
        return True
    if wanted.file is None:
        return False
    return not applied.exists() or applied.read_text(encoding="ascii").strip() != wanted.fingerprint


async def _apply(purse: Purse, wanted: Wanted, in_force: Plan | None) -> AnyOutcome:
    """Ask for the plan. Raises `Misconfigured` unless it is in force afterwards or another was meanwhile."""
    if in_force is not None:
        _check_restarts(wanted, in_force)
    replaces = digest(in_force) if in_force is not None else ""
    # A new id each time: going back to an earlier plan is news, not a repetition.
    ask = ApplyPlan(id=f"up:{secrets.token_hex(8)}", plan=wanted.plan, replaces=replaces, by_whom="purse up")
    outcome = (await purse.ask(ask, wait_s=ASK_WAIT_S)).outcome
    if isinstance(outcome, Invalid):
        raise Misconfigured(f"{wanted.file or 'the default plan'}: {outcome.field}: {outcome.why}")
    assert isinstance(outcome, Planned | Again | Conflict), outcome
    return outcome


def _check_restarts(wanted: Wanted, in_force: Plan) -> None:
    restarting = [
        name
        for name, budget in wanted.plan.budgets.items()
        if name in in_force.budgets and restarts(in_force.budgets[name], budget)
    ]
    if restarting:
        raise Misconfigured(
            f"{wanted.file} would make these budgets start at zero: {', '.join(restarting)}. If that is meant, "
            f"start without --config and say `purse plan apply --yes {wanted.file}`"
        )


def _remember(applied: Path, fingerprint: str) -> None:
    if not fingerprint:
        return
    new = applied.with_suffix(".new")
    new.write_text(f"{fingerprint}\n", encoding="ascii")
    new.replace(applied)


async def serve() -> None:
    """Both, for a wallet whose engines and projector are being started elsewhere."""
    url = os.environ.get("PURSE_NATS_URL", "nats://127.0.0.1:4222")
    wallet = os.environ.get("PURSE_WALLET", "main")
    config = os.environ.get("PURSE_CONFIG")
    wanted = wanted_plan(Path(config) if config else None)
    await make_stream(url, wallet)
    await prepare_wallet(url, wallet, wanted, Path(os.environ.get("PURSE_DATA", ".")))


if __name__ == "__main__":
    main(serve)
