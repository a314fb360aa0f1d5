"""PostgreSQL with the usual settings, each commit on disk before it is answered (`fsync`, `synchronous_commit` on).

A hold is one call of a function, as one script is for Redis: two budget rows are taken by `UPDATE ... RETURNING` and
the hold's row is made, in a transaction of its own. The row that all share is locked until the commit is on disk,
so commits follow each other: that is what a shared budget costs there. A batch by hand pays for it once.
It keeps no record of who spent what, no calendar, no labels, no lapses, no repeated refusals.
"""

from __future__ import annotations

import asyncio
import getpass
import importlib.util
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.child import Child, child, free_port
from bench.contender import COST, DAY, HELD, LIMIT, USERS, Call, Client, Contender, batches, callers, pairs
from bench.proxy.processes import below

SOMEBODY = "nobody"  # it refuses to run as root
DEBIAN = Path("/usr/lib/postgresql")  # where Debian keeps what is not on PATH
CONNECTIONS_MAX = 256
START_WAIT_S = 60.0
POLL_S = 0.05

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": str(CONNECTIONS_MAX + 8),
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
}

SCHEMA = """
CREATE TABLE meters (
  budget text, each text, day text, cap bigint NOT NULL, used bigint NOT NULL, PRIMARY KEY (budget, each, day)
) WITH (fillfactor = 50);
CREATE TABLE holds (id text PRIMARY KEY, who text NOT NULL, held bigint NOT NULL, charged bigint);

CREATE FUNCTION take(the_budget text, the_each text, the_day text, amount bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE now_used bigint;
BEGIN
  UPDATE meters SET used = used + amount
    WHERE budget = the_budget AND each = the_each AND day = the_day AND used + amount <= cap
    RETURNING used INTO now_used;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'refused: %', the_budget;
  END IF;
  RETURN now_used;
END $$;

CREATE FUNCTION hold(the_id text, the_user text, the_day text, amount bigint) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  PERFORM take('shared', '', the_day, amount);
  PERFORM take('user', the_user, the_day, amount);
  INSERT INTO holds VALUES (the_id, the_user, amount, NULL);
  RETURN 1;
END $$;

CREATE FUNCTION settle(the_id text, the_day text, cost bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE found holds;
BEGIN
  UPDATE holds SET charged = cost WHERE id = the_id AND charged IS NULL RETURNING * INTO found;
  IF found.id IS NULL THEN
    RETURN 0;
  END IF;
  UPDATE meters SET used = used + cost - found.held WHERE budget = 'shared' AND each = '' AND day = the_day;
  UPDATE meters SET used = used + cost - found.held WHERE budget = 'user' AND each = found.who AND day = the_day;
  RETURN 1;
END $$;
"""
METERS = """
INSERT INTO meters SELECT 'shared', '', $1::text, $2::bigint, 0
UNION ALL SELECT 'user', 'u' || lpad(n::text, 5, '0'), $1, $2, 0 FROM generate_series(0, $3::integer - 1) AS n
"""
HOLD = "SELECT hold($1, $2, $3, $4)"
HOLD_ALL = "SELECT sum(hold(id, who, $3, $4)) FROM unnest($1::text[], $2::text[]) AS asked(id, who)"
SETTLE = "SELECT settle($1, $2, $3)"
USED = "SELECT used FROM meters WHERE budget = 'shared'"


class RefusedError(AssertionError):
    """PostgreSQL did not grant what it must."""


class PostgresClient:
    """A connection a caller. The one that was used last is used next."""

    def __init__(self, url: str, server: Child) -> None:
        self._url, self._server = url, server
        self._idle: list[Any] = []
        self._open: list[Any] = []
        self._gate = asyncio.Semaphore(CONNECTIONS_MAX)

    @property
    def pids(self) -> Sequence[int]:
        """The server and a process a connection, as they are now."""
        return list(below(self._server.pid))

    async def hold(self, call: Call) -> None:
        if await self._value(HOLD, call.id, call.user, DAY, HELD) != 1:
            raise RefusedError(f"{call.id} was not held")

    async def settle(self, call: Call) -> None:
        if await self._value(SETTLE, call.id, DAY, COST) != 1:
            raise RefusedError(f"{call.id} was not settled")

    async def hold_all(self, calls: Sequence[Call]) -> None:
        held = await self._value(HOLD_ALL, [call.id for call in calls], [call.user for call in calls], DAY, HELD)
        if held != len(calls):
            raise RefusedError(f"not all of {len(calls)} were held: {held}")

    async def used(self) -> int:
        return int(await self._value(USED))

    async def run(self, statement: str, *values: object) -> None:
        """For what is done once."""
        async with self._lent() as connection:
            await connection.execute(statement, *values)

    async def close(self) -> None:
        for connection in self._open:
            await connection.close()

    async def _value(self, statement: str, *values: object) -> Any:
        async with self._lent() as connection:
            return await connection.fetchval(statement, *values)

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[Any]:
        async with self._gate:
            connection = self._idle.pop() if self._idle else await self._connection()
            yield connection
            self._idle.append(connection)

    async def _connection(self) -> Any:
        import asyncpg

        connection = await asyncpg.connect(self._url, timeout=START_WAIT_S)
        self._open.append(connection)
        return connection


@asynccontextmanager
async def _open(folder: Path) -> AsyncIterator[Client]:
    port, data = free_port(), folder / "postgres"
    await asyncio.to_thread(_make, folder, data)
    settings = {**SETTINGS, "port": str(port)}
    command = [*_as_somebody(), _program("postgres"), "-D", str(data)]
    command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    async with child("postgresql", command, folder=folder) as server:
        client = PostgresClient(f"postgresql://{_user()}@127.0.0.1:{port}/postgres", server)
        await _ready(client, server)
        await client.run(SCHEMA)
        await client.run(METERS, DAY, LIMIT, USERS)
        try:
            yield client
        finally:
            await client.close()


def _make(folder: Path, data: Path) -> None:
    """An empty cluster, of somebody's own if we are root."""
    data.mkdir(mode=0o700)
    if os.getuid() == 0:
        shutil.chown(data, user=SOMEBODY)
        for each in (folder, folder.parent):  # made for us alone; whoever serves must get through
            each.chmod(each.stat().st_mode | 0o011)
    command = [*_as_somebody(), _program("initdb"), "-D", str(data), "-U", _user(), "-A", "trust", "-E", "UTF8",
               "--no-locale", "--no-instructions"]  # fmt: skip
    made = subprocess.run(command, capture_output=True, text=True, cwd=data)
    if made.returncode != 0:
        raise RuntimeError(f"initdb ended with status {made.returncode}: {made.stderr.strip()[-500:]}")


def _as_somebody() -> list[str]:
    """What stands before a command that must not run as root. The leash is kept through the change of user."""
    if os.getuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    assert setpriv is not None, "missing() was asked"
    return [setpriv, f"--reuid={SOMEBODY}", f"--regid={_group()}", "--clear-groups", "--pdeathsig", "keep"]


def _group() -> str:
    import grp
    import pwd

    return grp.getgrgid(pwd.getpwnam(SOMEBODY).pw_gid).gr_name


def _user() -> str:
    return SOMEBODY if os.getuid() == 0 else getpass.getuser()


def _program(name: str) -> str:
    found = _found(name)
    assert found is not None, "missing() was asked"
    return found


def _found(name: str) -> str | None:
    newest_first = sorted(DEBIAN.glob(f"*/bin/{name}"), key=lambda path: path.parts[-3].zfill(4), reverse=True)
    return shutil.which(name) or next((str(path) for path in newest_first), None)


async def _ready(client: PostgresClient, server: Child) -> None:
    import asyncpg

    async with asyncio.timeout(START_WAIT_S):
        while True:
            server.check()
            try:
                await client.run("SELECT 1")
            except (OSError, asyncpg.CannotConnectNowError):
                await asyncio.sleep(POLL_S)
            else:
                return


def _missing() -> str | None:
    if _found("initdb") is None or _found("postgres") is None:
        return "initdb and postgres are not there (on Debian: apt install postgresql)"
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        return "it refuses to run as root, and setpriv is not on PATH (on Debian: apt install util-linux)"
    if importlib.util.find_spec("asyncpg") is None:
        return "the Python package asyncpg is not installed (pip install 'commonpurse[bench]')"
    return None


POSTGRESQL = Contender(
    name="PostgreSQL",
    about="synchronous_commit on, a function a hold (two rows updated, one made), asyncpg, a connection a caller",
    networked=True,
    shapes=(callers(1), callers(16), callers(64), callers(256), pairs(256), batches(8, 100)),
    open=_open,
    missing=_missing,
)
