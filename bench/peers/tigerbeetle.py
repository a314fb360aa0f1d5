"""TigerBeetle through its own Python client: a ledger made for exactly this, synced and checked before it answers.

A budget is an account that may not owe. A hold is two pending transfers out of it, one of the budget that all share and
one of the user's, linked: both or neither. A settlement posts both at what the call cost. Holds lapse there too; there
is no record of who spent what beside it, no calendar and no labels. Its server is a program of its own that no package
registry has: put `tigerbeetle` of the client's version on PATH and it is measured.
"""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from bench.child import child, free_port
from bench.contender import COST, HELD, LIMIT, TTL_S, USERS, Call, Client, Contender, batches, callers, pairs

LEDGER = CODE = 1
TREASURY, SPENT, SHARED, FIRST_USER = 1, 2, 3, 1_000  # accounts
EVENTS_MAX = 8_189  # of one message
HOLDS_MAX = EVENTS_MAX // 2
START_WAIT_S = 60.0
HOLD_PARTS, SETTLE_PARTS = (0, 1), (2, 3)  # of a call: the shared budget's transfer and the user's


class RefusedError(AssertionError):
    """TigerBeetle did not take what it must."""


class Ledger(Protocol):
    """What of its client is used."""

    async def create_accounts(self, accounts: list[Any]) -> list[Any]: ...
    async def create_transfers(self, transfers: list[Any]) -> list[Any]: ...
    async def lookup_accounts(self, accounts: list[int]) -> list[Any]: ...


class TigerBeetleClient:
    """One client for everybody: it batches by itself what its callers ask at the same time."""

    def __init__(self, ledger: Ledger, pids: Sequence[int]) -> None:
        import tigerbeetle

        self.pids = pids
        self._ledger, self._tb = ledger, tigerbeetle

    async def prepare(self) -> None:
        """Accounts, and in each budget its limit."""
        tb, none, capped = self._tb, self._tb.AccountFlags.NONE, self._tb.AccountFlags.DEBITS_MUST_NOT_EXCEED_CREDITS
        budgets = [SHARED, *range(FIRST_USER, FIRST_USER + USERS)]
        accounts = [tb.Account(id=id, ledger=LEDGER, code=CODE, flags=none) for id in (TREASURY, SPENT)]
        accounts += [tb.Account(id=id, ledger=LEDGER, code=CODE, flags=capped) for id in budgets]
        created = await self._ledger.create_accounts(accounts)
        if any(one.status != tb.CreateAccountStatus.CREATED for one in created) or len(created) != len(accounts):
            raise RefusedError(f"not all of {len(accounts)} accounts were made")
        await self._create([
            tb.Transfer(id=id, debit_account_id=TREASURY, credit_account_id=id, amount=LIMIT, ledger=LEDGER, code=CODE)
            for id in budgets
        ])  # fmt: skip

    async def hold(self, call: Call) -> None:
        await self._create(list(self._holds(call)))

    async def settle(self, call: Call) -> None:
        await self._create(list(self._settles(call)))

    async def hold_all(self, calls: Sequence[Call]) -> None:
        await self._create([transfer for call in calls for transfer in self._holds(call)])

    async def used(self) -> int:
        (shared,) = await self._ledger.lookup_accounts([SHARED])
        return int(shared.debits_pending + shared.debits_posted)

    def _holds(self, call: Call) -> Iterator[Any]:
        tb, flags = self._tb, self._tb.TransferFlags
        both = (flags.LINKED | flags.PENDING, flags.PENDING)
        for part, flag, budget in zip(HOLD_PARTS, both, (SHARED, account_of(call.user)), strict=True):
            yield tb.Transfer(
                id=id_of(call, part), debit_account_id=budget, credit_account_id=SPENT, amount=HELD, timeout=TTL_S,
                ledger=LEDGER, code=CODE, flags=flag,
            )  # fmt: skip

    def _settles(self, call: Call) -> Iterator[Any]:
        tb, flags = self._tb, self._tb.TransferFlags
        both = (flags.LINKED | flags.POST_PENDING_TRANSFER, flags.POST_PENDING_TRANSFER)
        for part, held, flag in zip(SETTLE_PARTS, HOLD_PARTS, both, strict=True):
            yield tb.Transfer(id=id_of(call, part), pending_id=id_of(call, held), amount=COST, flags=flag)

    async def _create(self, transfers: list[Any]) -> None:
        made = await self._ledger.create_transfers(transfers)
        wrong = [one.status.name for one in made if one.status != self._tb.CreateTransferStatus.CREATED]
        if wrong or len(made) != len(transfers):
            raise RefusedError(f"of {len(transfers)} transfers {len(made)} were answered, refused: {wrong[:3]}")


def account_of(user: str) -> int:
    """`u00012` has an account of its own."""
    return FIRST_USER + int(user[1:])


def id_of(call: Call, part: int) -> int:
    """In the order in which calls come, as its manual wants ids to be."""
    run, _, number = call.id.partition("-")
    return int(run, 16) << 72 | int(number) << 2 | part


@asynccontextmanager
async def _open(folder: Path) -> AsyncIterator[Client]:
    import tigerbeetle

    binary, data, port = shutil.which("tigerbeetle"), folder / "0_0.tigerbeetle", free_port()
    assert binary is not None, "missing() was asked"
    made = await asyncio.to_thread(
        subprocess.run, [binary, "format", "--cluster=0", "--replica=0", "--replica-count=1", str(data)],
        capture_output=True, text=True,
    )  # fmt: skip
    if made.returncode != 0:
        raise RuntimeError(f"tigerbeetle format ended with status {made.returncode}: {made.stderr.strip()[-500:]}")
    address = f"127.0.0.1:{port}"
    async with (
        child("tigerbeetle", [binary, "start", f"--addresses={address}", str(data)], folder=folder) as server,
        tigerbeetle.ClientAsync(cluster_id=0, replica_addresses=address) as ledger,
    ):
        client = TigerBeetleClient(ledger, (server.pid,))
        async with asyncio.timeout(START_WAIT_S):
            await client.prepare()
        yield client


def _missing() -> str | None:
    if shutil.which("tigerbeetle") is None:
        return "its server `tigerbeetle` is not on PATH, and no package registry has it"
    if importlib.util.find_spec("tigerbeetle") is None:
        return "the Python package tigerbeetle is not installed (pip install 'commonpurse[bench]')"
    return None


TIGERBEETLE = Contender(
    name="TigerBeetle",
    about="one replica, its Python client, two linked pending transfers a hold",
    networked=True,
    shapes=(callers(1), callers(16), callers(64), callers(256), callers(1024), pairs(256), batches(4, HOLDS_MAX)),
    open=_open,
    missing=_missing,
)
