"""Redis with the usual Lua script, every write synced before it is answered (`appendfsync always`).

Measured twice: the way most programs use it, a connection a caller; and with the calls that wait together in one
pipeline, as clients with automatic pipelining do. The second is to Redis what coalescing is to us, so both stand there.
It does less than we do: no record of who spent what, no periods, labels, lapses or remembered refusals.
"""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.child import Child, child, free_port
from bench.contender import COST, DAY, HELD, LIMIT, TTL_S, Call, Client, Contender, batches, callers, pairs

START_WAIT_S = 10.0
POLL_S = 0.02
CONNECTIONS_MAX = 1_024
PIPELINES_IN_FLIGHT_MAX = 3  # as many as our own client has appends in flight
PIPELINE_CALLS_MAX = 1_024

SHARED = f"used:shared:{DAY}"

# KEYS: the shared budget. ARGV: amount, limit, seconds, day, then (id, user) of each hold.
# Answers for each: 1 held, 0 refused, -1 an id that was seen before.
HOLD = """
local amount, limit, answers = tonumber(ARGV[1]), tonumber(ARGV[2]), {}
for i = 5, #ARGV, 2 do
  local hold, mine = 'hold:' .. ARGV[i], 'used:' .. ARGV[i + 1] .. ':' .. ARGV[4]
  local answer = 1
  if tonumber(redis.call('GET', KEYS[1]) or '0') + amount > limit
     or tonumber(redis.call('GET', mine) or '0') + amount > limit then
    answer = 0
  elseif not redis.call('SET', hold, amount, 'NX', 'EX', ARGV[3]) then
    answer = -1
  else
    redis.call('INCRBY', KEYS[1], amount)
    redis.call('INCRBY', mine, amount)
  end
  answers[#answers + 1] = answer
end
return answers
"""

# KEYS: the shared budget, the user's, the hold. ARGV: cost. What is left of the hold remembers that it was settled.
SETTLE = """
local held = tonumber(redis.call('GET', KEYS[3]) or '-1')
if held < 0 then return 0 end
redis.call('INCRBY', KEYS[1], ARGV[1] - held)
redis.call('INCRBY', KEYS[2], ARGV[1] - held)
redis.call('SET', KEYS[3], -1, 'KEEPTTL')
return 1
"""


class RefusedError(AssertionError):
    """Redis did not grant what it must."""


class RedisClient:
    """A connection a caller, from a pool."""

    def __init__(self, redis: Any, server: Child, *, hold: str, settle: str) -> None:
        self.pids = (server.pid,)
        self._redis, self._hold, self._settle = redis, hold, settle

    async def hold(self, call: Call) -> None:
        await self.hold_all([call])

    async def settle(self, call: Call) -> None:
        if await self._run(self._settle, 3, SHARED, f"used:{call.user}:{DAY}", f"hold:{call.id}", COST) != 1:
            raise RefusedError(f"{call.id} was not settled")

    async def hold_all(self, calls: Sequence[Call]) -> None:
        ids = [word for call in calls for word in call]
        answers = await self._run(self._hold, 1, SHARED, HELD, LIMIT, TTL_S, DAY, *ids)
        if answers != [1] * len(calls):
            raise RefusedError(f"not all of {len(calls)} were held: {answers}")

    async def used(self) -> int:
        return int(await self._redis.get(SHARED))

    async def _run(self, script: str, keys: int, *words: str | int) -> Any:
        return await self._redis.evalsha(script, keys, *words)


class PipelinedClient(RedisClient):
    """What waits while the last pipelines are under way goes out in the next one."""

    def __init__(self, redis: Any, server: Child, *, hold: str, settle: str) -> None:
        super().__init__(redis, server, hold=hold, settle=settle)
        self._waiting: deque[tuple[tuple[str | int, ...], asyncio.Future[Any]]] = deque()
        self._in_flight = 0
        self._flushing = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def _run(self, script: str, keys: int, *words: str | int) -> Any:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting.append(((script, keys, *words), answer))
        if not self._flushing:
            self._flushing = True
            loop.call_soon(self._flush)
        return await answer

    def _flush(self) -> None:
        self._flushing = False
        while self._waiting and self._in_flight < PIPELINES_IN_FLIGHT_MAX:
            taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), PIPELINE_CALLS_MAX))]
            self._in_flight += 1
            task = asyncio.get_running_loop().create_task(self._send(taken))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, taken: Sequence[tuple[tuple[str | int, ...], asyncio.Future[Any]]]) -> None:
        try:
            pipeline = self._redis.pipeline(transaction=False)
            for words, _ in taken:
                pipeline.evalsha(*words)
            answers = await pipeline.execute()
            for (_, answer), result in zip(taken, answers, strict=True):
                if not answer.done():
                    answer.set_result(result)
        except Exception as error:  # goes to everyone who waits for this pipeline, none of it is swallowed
            for _, answer in taken:
                if not answer.done():
                    answer.set_exception(error)
        finally:
            self._in_flight -= 1
            self._flush()


@asynccontextmanager
async def _open(folder: Path, kind: type[RedisClient]) -> AsyncIterator[Client]:
    from redis.asyncio import BlockingConnectionPool, Redis

    port = free_port()
    async with child("redis", _command(folder, port), folder=folder) as server:
        pool = BlockingConnectionPool(
            host="127.0.0.1", port=port, max_connections=CONNECTIONS_MAX, decode_responses=True, timeout=None
        )
        async with Redis(connection_pool=pool) as redis:
            await _ready(redis, server)
            yield kind(redis, server, hold=await redis.script_load(HOLD), settle=await redis.script_load(SETTLE))
            await pool.disconnect()


def _command(folder: Path, port: int) -> list[str]:
    binary = shutil.which("redis-server")
    assert binary is not None, "missing() was asked"
    settings = {
        "bind": "127.0.0.1",
        "port": str(port),
        "dir": str(folder),
        "daemonize": "no",
        "appendonly": "yes",
        "appendfsync": "always",
        "auto-aof-rewrite-percentage": "0",  # no rewrite in the background while it is measured
        "save": "",
        "tcp-backlog": "1024",  # all callers connect at once
    }
    return [binary, *(word for name, value in settings.items() for word in (f"--{name}", value))]


async def _ready(redis: Any, server: Child) -> None:
    from redis.exceptions import ConnectionError as NotYet

    async with asyncio.timeout(START_WAIT_S):
        while True:
            server.check()
            try:
                await redis.ping()
            except NotYet:
                await asyncio.sleep(POLL_S)
            else:
                return


def _missing() -> str | None:
    if shutil.which("redis-server") is None:
        return "redis-server is not on PATH (on Debian: apt install redis-server)"
    if importlib.util.find_spec("redis") is None:
        return "the Python package redis is not installed"
    return None


def _opener(kind: type[RedisClient], folder: Path) -> AbstractAsyncContextManager[Client]:
    return _open(folder, kind)


_PARSER = "hiredis" if importlib.util.find_spec("hiredis") is not None else "pure Python parser"
_CALLERS = (callers(16), callers(64), callers(256), callers(1024), pairs(256))

A_CONNECTION_A_CALLER = Contender(
    name="Redis",
    about=f"appendfsync always, Lua by EVALSHA, redis-py ({_PARSER}), a connection a caller",
    networked=True,
    shapes=(callers(1), *_CALLERS, batches(8, 100)),
    open=partial(_opener, RedisClient),
    missing=_missing,
)
PIPELINED = Contender(
    name="Redis, pipelined",
    about="the same, calls that wait together share a pipeline",
    networked=True,
    shapes=_CALLERS,
    open=partial(_opener, PipelinedClient),
    missing=_missing,
)
