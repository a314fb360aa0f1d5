"""Who is counted as one visitor: by the first address that no trusted proxy wrote."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from web.visitors import HOPS_MAX, Visitors

TRUSTED = ["10.0.0.0/8", "2001:db8:1::/48"]


def visit(peer: str, *headers: tuple[str, str]) -> web.Request:
    transport = Mock()
    transport.get_extra_info.side_effect = lambda name, default=None: (peer, 1) if name == "peername" else default
    return make_mocked_request("GET", "/", headers=CIMultiDict(headers), transport=transport)


def same(one: web.Request, other: web.Request) -> bool:
    visitors = Visitors(TRUSTED)
    return visitors.of(one) == visitors.of(other)


@pytest.mark.parametrize(
    ("peer", "headers", "is_really"),
    [
        ("192.0.2.1", [("X-Forwarded-For", "198.51.100.7")], "192.0.2.1"),
        ("10.1.1.1", [("X-Forwarded-For", "198.51.100.7")], "198.51.100.7"),
        ("10.1.1.1", [("X-Forwarded-For", "203.0.113.9, 198.51.100.7, 10.2.2.2")], "198.51.100.7"),
        ("10.1.1.1", [("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-For", "198.51.100.7")], "198.51.100.7"),
        ("10.1.1.1", [("X-Forwarded-For", "203.0.113.9, unknown")], "10.1.1.1"),
        ("10.1.1.1", [("X-Forwarded-For", "198.51.100.7:4711")], "198.51.100.7"),
        ("10.1.1.1", [("Forwarded", 'for=203.0.113.9, for="198.51.100.7:80";proto=https')], "198.51.100.7"),
        ("10.1.1.1", [("Forwarded", 'for="[2001:db8:9::7]:80"')], "2001:db8:9::7"),
        ("2001:db8:1::1", [("X-Forwarded-For", "198.51.100.7")], "198.51.100.7"),
        ("::ffff:10.1.1.1", [("X-Forwarded-For", "198.51.100.7")], "198.51.100.7"),
        ("10.1.1.1", [], "10.1.1.1"),
    ],
)
def test_the_first_that_no_trusted_proxy_wrote_is_the_visitor(
    peer: str, headers: list[tuple[str, str]], is_really: str
) -> None:
    assert same(visit(peer, *headers), visit(is_really))
    assert not same(visit(peer, *headers), visit("192.0.2.200"))


def test_a_household_is_one_visitor_and_its_neighbour_another() -> None:
    assert same(visit("2001:db8:7:1::1"), visit("2001:db8:7:1:ffff::2"))
    assert not same(visit("2001:db8:7:1::1"), visit("2001:db8:7:2::1"))


def test_a_long_chain_of_hops_is_read_only_so_far() -> None:
    chain = ", ".join(["198.51.100.7"] + ["10.0.0.1"] * HOPS_MAX)
    assert same(visit("10.1.1.1", ("X-Forwarded-For", chain)), visit("10.0.0.1"))


def test_a_hash_says_nothing_in_another_process() -> None:
    assert Visitors().of(visit("192.0.2.1")) != Visitors().of(visit("192.0.2.1"))
