"""The peers, one module each. To add one, see `bench/README.md`."""

from bench.contender import Contender
from bench.peers import redis_lua, sqlite

PEERS: tuple[Contender, ...] = (redis_lua.A_CONNECTION_A_CALLER, redis_lua.PIPELINED, sqlite.SQLITE)

__all__ = ["PEERS"]
