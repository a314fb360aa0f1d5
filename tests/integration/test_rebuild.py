"""`purse rebuild` and the stream in pieces, on the real server: beside a running wallet, and after it was stopped."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from integration import rig
from integration.rig import append_raw, engine_on, eventually, process_of, projector_on, wallet_on

from engine.client import Purse
from engine.core.documents import Detail, Span
from engine.embedded import EmbeddedServer, embedded_nats
from engine.journal import Journal
from projector.days.bucket import bucket_name, is_totals
from projector.days.decisions import Decision, Decisions
from projector.days.rebuild import rebuild as rebuild_documents
from projector.days.shelf import BucketShelf
from projector.reading import StreamSource

WALLET = "main"


async def rebuild(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and what it printed as JSON."""
    async with process_of(["-m", "commonpurse", "rebuild", *arguments, "--json"]) as process:
        said = await process.output()
        return await process.wait(), json.loads(said) if said else {}


@asynccontextmanager
async def traffic(client: Purse) -> AsyncIterator[None]:
    """Calls, one after another, for as long as the block runs."""

    async def go_on() -> None:
        for number in itertools.count():
            labels = {"user": f"u{number % 5}", "model": f"m{number % 3}"}
            await client.hold({"usd": "0.001"}, id=f"c{number}", labels=labels)
            if number % 7:
                await client.settle(f"c{number}", {"usd": "0.0004"})
            if number % 11 == 0:
                await client.settle(f"c{number}", {"usd": "0.0005"})  # a correction, or a conflict
            await client.settle(f"stray{number}", {"usd": "0.0001"})

    running = asyncio.create_task(go_on())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled(), running


async def test_m18_a_projector_killed_under_traffic_leaves_what_is_folded_from_zero(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path, wallet=WALLET) as server:
        async with (
            wallet_on(server.url, WALLET) as journal,
            engine_on(server.url, WALLET),
            Purse.connect(server.url, wallet=WALLET) as client,
            traffic(client),
        ):
            for ended in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
                async with projector(server, tmp_path) as process:
                    told = await journal.last_seq()
                    await eventually(lambda told=told: written_upto(journal, told + 40))  # type: ignore[misc]
                    process.signal(ended)
            async with projector(server, tmp_path) as process:
                code, running = await rebuild("--dry-run", "--data", str(tmp_path))
                assert (code, running["differed"]) == (0, {})
                process.signal(signal.SIGTERM)
                await process.wait()
        upto = await check_behind(server)
    code, stopped = await rebuild("--dry-run", "--data", str(tmp_path))
    assert (code, stopped["differed"], stopped["upto"]) == (0, {}, upto)


@asynccontextmanager
async def projector(server: EmbeddedServer, data: Path) -> AsyncIterator[rig.Process]:
    environment = {"PURSE_NATS_URL": server.url, "PURSE_WALLET": WALLET, "PURSE_DATA": str(data)}
    async with process_of(["-m", "projector"], **environment) as process:
        await process.until("caught_up")
        yield process


async def written_upto(journal: Journal, seq: int) -> bool:
    """Whether any document is folded so far."""
    documents = await standing(journal)
    return any(msgspec.json.decode(document)["seq"] > seq for document in documents.values())


async def standing(journal: Journal) -> dict[str, bytes]:
    shelf = BucketShelf(journal)
    found = {key: await shelf.get(key) for key in await shelf.keys()}
    return {key: one.document for key, one in found.items() if one is not None}


async def check_behind(server: EmbeddedServer) -> int:
    """The last projector is gone, and wrote what it had folded; what came since is behind, and is put right."""
    async with Journal.connect(server.url, wallet=WALLET) as journal:
        source, shelf = StreamSource(journal), BucketShelf(journal)
        found = await rebuild_documents(source, shelf, live=False, dry_run=False)
        assert set(found.differed.values()) <= {"behind"}
        right = await standing(journal)
        wrong, lost = (next(key for key in right if is_totals(key) == small) for small in (True, False))
        await journal.keep(bucket_name(WALLET), wrong, right[wrong][:-1] + b',"wasted":1}', wait_s=rig.WITHIN_S)
        assert await shelf.put(lost, None, await shelf.get(lost))
        assert await shelf.put("nobody.2026", b"{}", None)
        found = await rebuild_documents(source, shelf, live=False, dry_run=False)
        assert found.differed == {wrong: "other", lost: "missing", "nobody.2026": "unknown"}
        assert (found.rewritten, found.moved, await standing(journal)) == (3, 0, right)
        return found.upto


async def test_every_decision_can_be_read_and_who_leaves_stops_it(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name),
        projector_on(nats_server.url, wallet_name) as started,
        Purse.connect(nats_server.url, wallet=wallet_name) as client,
    ):
        for number in range(150):  # more than are read ahead
            await append_raw(journal, b'{"asks":[]}')
            if number % 50 == 0:
                await client.hold({"usd": "0.01"}, id=f"c{number}")
        await client.hold({"usd": "0.01"}, id="last", labels={"model": "m1"})
        projection = started.service.projection
        await eventually(lambda: projection.life("last") is not None)
        span = projection.span(projection.wallet.day)
        assert span is not None
        assert [one.id for one in await decided(client, span)][1:] == ["c0", "c50", "c100", "last"]
        async with aclosing(client.read_stream(after=0)) as messages:
            assert (await anext(messages)).seq == 1
        detail = await details_of(client, "total")
        assert [(spent.value, spent.holds) for spent in detail.breakdowns[0].top] == [(None, 3), ("m1", 1)]


async def decided(client: Purse, span: Span) -> list[Decision]:
    decisions, found = Decisions(span, after=0), list[Decision]()
    async with aclosing(client.read_stream(after=decisions.after)) as messages:
        async for stored in messages:
            found += [one for _, made in decisions.take(stored) for one in made]
            if decisions.done:
                break
    return found


async def details_of(client: Purse, day: str) -> Detail:
    _, _, details = msgspec.json.decode(await client.read("details", day.encode()))
    return msgspec.convert(details[0], Detail)
