"""From where a request comes, as a keyed hash of the address: who a visitor without a key is, and the origin of a key.

The address is looked at and let go. Visits are counted under a hash that is never written down, nor is its key, so it
tells nobody anything. An origin goes on the stream, where a key used from too many places must be seen by all: its
hash has another key that the web processes of one wallet share, and nobody else reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from socket import AF_INET, inet_pton
from typing import TypeAlias

from aiohttp import web

HOPS_MAX = 20
IPV6_BITS = 64  # what one household has
_FORWARDED_FOR = re.compile(r'for=(?:"([^"]*)"|([^;,\s]*))', re.IGNORECASE)

Address: TypeAlias = IPv4Address | IPv6Address


class Visitors:
    """`trusted_proxies`: networks whose word on who came through them is believed."""

    def __init__(self, trusted_proxies: Sequence[str] = ()) -> None:
        self._trusted: list[IPv4Network | IPv6Network] = [ip_network(one, strict=False) for one in trusted_proxies]
        self._key = os.urandom(32)

    def of(self, request: web.Request, secret: bytes | None = None) -> bytes:
        """The visitor behind this request. Whoever cannot be told apart is one visitor.

        `secret`: what all web processes share (at most 64 bytes); without it a hash means something here alone.
        """
        return blake2b(self._packed(request), key=secret or self._key, digest_size=16).digest()

    def origin(self, request: web.Request, secret: bytes) -> str:
        """What stands for the address of this request in every web process that knows the `secret`."""
        assert secret, "without one anybody could try all addresses"
        return blake2b(self._packed(request), key=secret, digest_size=8).hexdigest()

    def comes_by_https(self, request: web.Request) -> bool:
        """Whether the visitor's own connection is encrypted, as far as this server or a proxy of ours can say."""
        if request.secure:
            return True
        peer = _address_of(request.remote or "")
        said = request.headers.get("X-Forwarded-Proto", "")
        return peer is not None and self._trusts(peer) and said.rpartition(",")[2].strip().lower() == "https"

    def _packed(self, request: web.Request) -> bytes:
        address = self._address(request)
        if isinstance(address, IPv6Address):
            return address.packed[: IPV6_BITS // 8]
        return address.packed if address is not None else b""

    def _address(self, request: web.Request) -> Address | None:
        """From the peer outwards: the first that is no proxy of ours, or the last that can be read."""
        address = _address_of(request.remote or "")
        for said in _outwards(request) if self._trusted else ():
            if address is None or not self._trusts(address):
                break
            farther = _address_of(said)
            if farther is None:
                break
            address = farther
        return address

    def _trusts(self, address: Address) -> bool:
        return any(address.version == network.version and address in network for network in self._trusted)


def _outwards(request: web.Request) -> Iterator[str]:
    """What proxies have written down, newest first. `Forwarded` is read where there is no `X-Forwarded-For`."""
    lines = request.headers.getall("X-Forwarded-For", [])
    if lines:
        hops = [hop.strip() for line in lines for hop in line.split(",")]
    else:
        found = _FORWARDED_FOR.findall(",".join(request.headers.getall("Forwarded", [])))
        hops = [quoted or plain for quoted, plain in found]
    return iter(hops[: -HOPS_MAX - 1 : -1])


def _address_of(text: str) -> Address | None:
    """An address with or without brackets and port; an IPv4 one that is written as IPv6 is itself."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return IPv4Address(inet_pton(AF_INET, text))  # what nearly all are, in a fifth of the time
    except (OSError, ValueError):
        pass
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
