"""What an engine makes of tolds from long before its start: all of them proved, few decided a second time."""

from __future__ import annotations

import msgspec
import pytest
from integration.rig import CENT, WITHIN_S, append, audited, engine_on, record_of, told_up_to, wallet_on

from engine.core import chain
from engine.core.messages import Entry, Freeze, Held, Hold, Option, Settle, Told
from engine.core.tell import read, tell
from engine.core.wallet import Wallet
from engine.embedded import EmbeddedServer
from engine.errors import Untrusted
from engine.journal import Journal
from engine.replaying import DECIDED_AGAIN

SOON_NS = 60 * 10**9


async def old_record(journal: Journal, *, more_left: int) -> int:
    """A plan, a hold, its settlement, and tolds of them as an engine would write them, but of one figure.

    Behind them as many messages that nobody told as an engine decides again. Returns the last sequence.
    """
    at = (await record_of(journal))[0].ts
    await append(journal, Hold("h", [Option({"usd": 2 * CENT})], by=at + SOON_NS))
    await append(journal, Settle("h", {"usd": CENT}), Hold("i", [Option({"usd": 3 * CENT})], by=at + SOON_NS))
    record, wallet = await record_of(journal), Wallet(journal.names.wallet)
    entries: list[Entry] = []
    for stored in record:
        message = read(stored.data)
        assert message is not None
        entries.append(tell(wallet, seq=stored.seq, ts=stored.ts, asks=message.asks))
    held = entries[-1].out[1]
    assert isinstance(held, Held)
    line = held.budgets["jev"]
    lines = {"jev": msgspec.structs.replace(line, remaining=line.remaining + more_left)}
    out = [entries[-1].out[0], msgspec.structs.replace(held, budgets=lines)]
    entries[-1] = msgspec.structs.replace(entries[-1], out=out)
    told = Told(engine="another", upto=record[-1].seq, n=len(record), told=entries)
    body = msgspec.json.encode(told).removesuffix(b"}")
    linked = chain.link(chain.GENESIS, ((one.seq, one.ts, one.data) for one in record), body)
    await journal.append("told", chain.seal(body, linked), wait_s=WITHIN_S)
    last = 0
    for number in range(DECIDED_AGAIN):
        last = await append(journal, Freeze(f"f{number}", f"user=u{number}", "an incident"))
    return last


async def test_what_was_told_long_ago_is_taken_in_and_what_was_not_is_told(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal:
        last = await old_record(journal, more_left=0)
        async with engine_on(nats_server.url, wallet_name) as started:
            await told_up_to(started, last)
            found = await audited(journal)
            assert (found.count(Held), found.untold) == (2, 0)
            assert found.wallet.dump() == started.service.wallet.dump()
            assert len(started.service.wallet.frozen) == DECIDED_AGAIN
            assert {told.engine for told in found.tolds} == {"another", started.service.instance}


@pytest.mark.parametrize("more_left", [1, -1])
async def test_an_old_told_with_one_other_figure_stops_the_engine_before_it_speaks(
    nats_server: EmbeddedServer, wallet_name: str, more_left: int
) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal:
        last = await old_record(journal, more_left=more_left)
        async with engine_on(nats_server.url, wallet_name, ready=False) as started:
            error = await started.end()
        assert isinstance(error, Untrusted)
        assert "was told otherwise than this engine decides" in str(error)
        assert await journal.last_seq() == last
