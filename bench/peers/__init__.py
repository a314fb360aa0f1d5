"""The peers, one module each. To add one, see `bench/README.md`."""

from bench.contender import Contender
from bench.peers import postgres, redis_lua, sqlite, tigerbeetle

PEERS: tuple[Contender, ...] = (
    redis_lua.A_CONNECTION_A_CALLER, redis_lua.PIPELINED, postgres.POSTGRESQL, tigerbeetle.TIGERBEETLE, sqlite.SQLITE,
)  # fmt: skip

__all__ = ["PEERS"]
