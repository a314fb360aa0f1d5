"""Our nats-py on the real server: what is published leaves in the same step, and a lost connection heals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import nats.errors
import pytest_asyncio
from integration.rig import eventually
from nats.aio.msg import Msg

from engine.embedded import EmbeddedServer
from engine.nats_client import NatsClient

TURNS_MAX = 50  # of the event loop


@pytest_asyncio.fixture(loop_scope="session")
async def client(nats_server: EmbeddedServer) -> AsyncIterator[NatsClient]:
    client = NatsClient()
    await client.connect(nats_server.url, pending_size=0, reconnect_time_wait=0.01, max_reconnect_attempts=-1)  # type: ignore[arg-type]
    yield client
    await client.close()


async def heard_on(client: NatsClient, subject: str) -> list[bytes]:
    heard: list[bytes] = []

    async def hear(message: Msg) -> None:
        heard.append(message.data)

    await client.subscribe(subject, cb=hear)
    return heard


async def test_what_is_published_leaves_before_anything_else_runs(client: NatsClient) -> None:
    heard = await heard_on(client, "leaves")
    publishing = client.publish("leaves", b"x" * 300_000)
    try:
        publishing.send(None)
    except StopIteration:
        pass
    else:
        raise AssertionError("it waited for a turn of the event loop")
    assert client.pending_data_size == 0
    await eventually(lambda: heard == [b"x" * 300_000])


async def test_everything_arrives_in_the_order_in_which_it_was_published(client: NatsClient) -> None:
    heard = await heard_on(client, "order")
    sent = [b"%d" % number * (1 + number * 97 % 50_000) for number in range(200)]
    await asyncio.gather(*(client.publish("order", data) for data in sent))
    await eventually(lambda: len(heard) == len(sent))
    assert heard == sent


async def test_who_publishes_into_a_lost_connection_hears_no_strange_error_and_it_heals(client: NatsClient) -> None:
    heard = await heard_on(client, "heals")
    client._transport._io_writer.transport.abort()  # type: ignore[union-attr]
    for _ in range(TURNS_MAX):
        try:
            await client.publish("heals", b"lost, or too early")
        except nats.errors.Error:
            break
        await asyncio.sleep(0)
    else:
        raise AssertionError(f"nothing was noticed within {TURNS_MAX} turns")
    await eventually(lambda: client.is_connected)
    await client.publish("heals", b"again")
    await eventually(lambda: heard[-1:] == [b"again"])
