"""Where calls go: `[upstreams.*]` of `purse.toml`, the keys from the environment, one session for all.

A table that names a key which is not there is an error at the start: a guard without its other half must not look like
one. Keys are never shown, logged or sent anywhere but to their own upstream. Redirects are not followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated
from urllib.parse import urlsplit

import aiohttp
import msgspec
from msgspec import Meta

from engine.errors import Misconfigured

PRICED_AS: Mapping[str, str] = {"openai": "openai", "anthropic": "anthropic", "workers-ai": "cloudflare"}
"""Every upstream there may be, and the provider whose prices it has unless its table says another."""

MAX_TOKENS_DEFAULT = 4_096
CONNECT_S = 10.0
IDLE_S = 600.0  # a model may think for minutes before its first byte
CONNECTIONS_MAX = 1_000
KEEP_ALIVE_S = 10.0  # shorter than any provider's: a connection that it closes while we write looks like a lost call

_Seconds = Annotated[float, Meta(gt=0, le=3600)]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[upstreams.NAME]` as written."""

    base_url: str
    key_env: str
    provider: str = ""
    default_max_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] = MAX_TOKENS_DEFAULT
    connect_s: _Seconds = CONNECT_S
    idle_s: _Seconds = IDLE_S
    cheaper: dict[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """One provider's address and our key there. `provider`: its name in the price book and in the label.

    `default_max_tokens` is put into calls that name no cap; `cheaper`: model -> the one to take when budgets get short.
    `connect_s` bounds getting a connection, `idle_s` the silence between two pieces of an answer.
    """

    name: str
    provider: str
    base_url: str
    key: str = field(repr=False)
    default_max_tokens: int = MAX_TOKENS_DEFAULT
    connect_s: float = CONNECT_S
    idle_s: float = IDLE_S
    cheaper: Mapping[str, str] = field(default_factory=dict)

    @property
    def timeout(self) -> aiohttp.ClientTimeout:
        return _timeout(self.connect_s, self.idle_s)


@cache
def _timeout(connect_s: float, idle_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=connect_s, sock_connect=connect_s, sock_read=idle_s)


def read_upstreams(tables: Mapping[str, object], environment: Mapping[str, str]) -> dict[str, Upstream]:
    """The upstreams by name. Raises `Misconfigured` naming the place and what is allowed there, never a key."""
    return {name: _upstream(name, table, environment) for name, table in tables.items()}


def _upstream(name: str, written: object, environment: Mapping[str, str]) -> Upstream:
    place = f"upstreams.{name[:32]}"
    if name not in PRICED_AS:
        raise Misconfigured(f"{place}: unknown; known here: {', '.join(PRICED_AS)}")
    try:
        table = msgspec.convert(written, _Table, strict=False)
    except msgspec.ValidationError as error:
        raise Misconfigured(f"{place}: {str(error).replace('`', '').replace('$.', '')}") from None
    address = urlsplit(table.base_url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise Misconfigured(f"{place}.base_url: expected an address that begins with https:// or http://")
    if address.username is not None or address.query or address.fragment:
        raise Misconfigured(f"{place}.base_url: expected no credentials, no query and no fragment in it")
    key = environment.get(table.key_env, "").strip()
    if not key:
        raise Misconfigured(f"{place}.key_env: the environment has no {table.key_env[:64]!r}, or it is empty")
    if not (key.isascii() and key.isprintable()):
        raise Misconfigured(
            f"{place}.key_env: the key in {table.key_env[:64]!r} has characters that no header can carry"
        )
    return Upstream(
        name=name, provider=table.provider or PRICED_AS[name], base_url=table.base_url.rstrip("/"), key=key,
        default_max_tokens=table.default_max_tokens, connect_s=table.connect_s, idle_s=table.idle_s,
        cheaper=table.cheaper,
    )  # fmt: skip


def open_session() -> aiohttp.ClientSession:
    """For every upstream. It keeps no cookies, heeds no proxy settings of the machine, sends only what it is told."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX, keepalive_timeout=KEEP_ALIVE_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "commonpurse", "Accept-Encoding": "identity"},
        trust_env=False,
    )
