"""A budget of two dollars for all time, and more traffic than it can pay for: what the record itself proves of it.

The server is the test's own, so that the stream can be read beside `purse up` without asking anybody.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from running_purse import running_purse

from commonpurse.proof import prove
from engine.core.amounts import parse
from engine.core.chain import GENESIS
from engine.embedded import EmbeddedServer, embedded_nats
from engine.errors import NoAnswer, StreamRefused
from engine.journal import Journal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux")

ROWS = 2_000
CAP = 1_024
LIMIT = 2 * 10**9
PLAN = '[budgets.two]\nunit = "usd"\nlimit = "2.00"\nper = "total"\n'


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    async with embedded_nats(tmp_path / "server") as running:
        yield running


def write_trace(path: Path) -> int:
    """A trace of `ROWS` calls, none longer than the cap. What they cost together."""
    dice = random.Random(ROWS)
    tokens = [(dice.randint(4_000, 12_000), dice.randint(1, CAP)) for _ in range(ROWS)]
    lines = (f"2023-11-16 18:15:46.{n:07},{given},{made}" for n, (given, made) in enumerate(tokens))
    path.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *lines, ""]))
    return sum(given * 150 + made * 600 for given, made in tokens)


def usd(written: str) -> int:
    return parse(written, unit="usd", scale=9)


def test_two_dollars_are_never_exceeded_and_all_readers_say_the_same(server: EmbeddedServer, tmp_path: Path) -> None:
    trace, config = tmp_path / "trace.csv", tmp_path / "purse.toml"
    config.write_text(PLAN)
    assert write_trace(trace) > LIMIT * 5 // 4

    with running_purse(tmp_path / "data", "--config", str(config), "--nats", server.url) as wallet:
        driven = json.loads(wallet.ask("--json", "drive", str(trace), "--output-cap", str(CAP)).stdout)
        asked = json.loads(wallet.ask("--json", "hold", "--id", "look", "--amount", "usd=0").stdout)
        wallet.ask("release", "look")
        [shown] = json.loads(wallet.ask("--json", "status").stdout)["budgets"]
    proof = asyncio.run(prove(server.url))

    assert (driven["rows"], driven["exact"], driven["overruns"]) == (ROWS, True, 0)
    assert driven["refused"]["spent"] > 0
    assert driven["held"] + sum(driven["refused"].values()) == ROWS

    [meter] = proof.of("two")
    assert (proof.never_above, meter.above_at) == (True, None)
    assert LIMIT * 99 // 100 < meter.highest <= meter.limit == LIMIT

    assert (meter.held, meter.extra, proof.untold) == (0, 0, 0)
    assert usd(driven["settled"]) == meter.settled
    assert (usd(shown["settled"]), shown["held"], shown["extra"]) == (meter.settled, "0", "0")
    assert usd(asked["remaining"]["two"]) == LIMIT - meter.settled  # the engine's own word, before anybody folded it

    assert proof.outcomes["held"] == proof.outcomes["settled"] == driven["held"] + 1  # and the look
    assert proof.outcomes["spent"] + proof.outcomes.get("busy", 0) >= ROWS - driven["held"]
    assert proof.chain != GENESIS.hex()


async def test_a_wallet_in_which_nothing_happened_is_proved_too(server: EmbeddedServer) -> None:
    async with Journal.connect(server.url) as journal:
        await journal.ensure_stream()
    proof = await prove(server.url)
    assert (proof.messages, proof.meters, proof.never_above) == (0, [], True)


async def test_a_wallet_that_is_not_there_is_an_error(server: EmbeddedServer) -> None:
    with pytest.raises(StreamRefused, match="there is no stream PURSE_other"):
        await prove(server.url, "other")
    await server.stop()
    with pytest.raises(NoAnswer):
        await prove(server.url)
    await server.start()
