"""SQLite in this very process (WAL, synchronous FULL): the simplest thing that is durable. One caller, no network."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

from bench.contender import COST, DAY, HELD, LIMIT, Call, Client, Contender, batches, callers

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE meters (budget TEXT, each TEXT, day TEXT, used INTEGER, PRIMARY KEY (budget, each, day)) WITHOUT ROWID;
CREATE TABLE holds (id TEXT PRIMARY KEY, user TEXT, held INTEGER, charged INTEGER) WITHOUT ROWID;
"""
TAKE = """
INSERT INTO meters VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET used = used + excluded.used WHERE used + excluded.used <= ?
"""
GIVE = "UPDATE meters SET used = used + ? WHERE (budget, each, day) IN (VALUES ('shared', '', ?), ('user', ?, ?))"


class RefusedError(AssertionError):
    """SQLite did not grant what it must."""


class SqliteClient:
    """A transaction a request."""

    pids: Sequence[int] = ()

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    async def hold(self, call: Call) -> None:
        await self.hold_all([call])

    async def settle(self, call: Call) -> None:
        run = self._database.execute
        run("BEGIN IMMEDIATE")
        settled = run("UPDATE holds SET charged = ? WHERE id = ? AND charged IS NULL", (COST, call.id))
        if settled.rowcount != 1:
            raise RefusedError(f"{call.id} was not settled")
        run(GIVE, (COST - HELD, DAY, call.user, DAY))
        run("COMMIT")
        await asyncio.sleep(0)

    async def hold_all(self, calls: Sequence[Call]) -> None:
        run = self._database.execute
        run("BEGIN IMMEDIATE")
        for call in calls:
            taken = run(TAKE, ("shared", "", DAY, HELD, LIMIT)).rowcount
            taken += run(TAKE, ("user", call.user, DAY, HELD, LIMIT)).rowcount
            if taken != 2:
                raise RefusedError(f"{call.id} was not held")
            run("INSERT INTO holds VALUES (?, ?, ?, NULL)", (call.id, call.user, HELD))
        run("COMMIT")
        await asyncio.sleep(0)  # so that whoever measures gets a turn

    async def used(self) -> int:
        (used,) = self._database.execute("SELECT used FROM meters WHERE budget = 'shared'").fetchone()
        return int(used)


@asynccontextmanager
async def _open(folder: Path) -> AsyncIterator[Client]:
    with closing(sqlite3.connect(folder / "wallet.db", isolation_level=None)) as database:
        database.executescript(SCHEMA)
        yield SqliteClient(database)


SQLITE = Contender(
    name="SQLite",
    about=f"{sqlite3.sqlite_version}, WAL, synchronous FULL, in the caller's own process",
    networked=False,
    shapes=(callers(1), batches(1, 100)),
    open=_open,
)
