"""A relay between a client and the real server: it can lose or repeat what the server says, or be cut.

It knows the protocol's frames, so that what it lets through is always whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias
from urllib.parse import urlsplit

Which: TypeAlias = Callable[[str, bytes], bool]
"""Picks messages to the client, by subject and payload."""


class Wire:
    """Give clients `url` instead of the server's."""

    def __init__(self, server_url: str) -> None:
        self._server = urlsplit(server_url)
        self._pumps: set[asyncio.Task[None]] = set()
        self._clients: set[asyncio.StreamWriter] = set()
        self._listener: asyncio.Server | None = None
        self.lose: Which = nothing
        self.repeat: Which = nothing
        self.lost = 0
        self.cuts = 0

    @property
    def url(self) -> str:
        assert self._listener is not None
        port = self._listener.sockets[0].getsockname()[1]
        return self._server._replace(netloc=f"{self._server.netloc.rpartition(':')[0]}:{port}").geturl()

    async def open(self) -> None:
        self._listener = await asyncio.start_server(self._connect, "127.0.0.1", 0)

    def cut(self) -> None:
        """End every connection, now."""
        self.cuts += 1
        for client in self._clients:
            client.transport.abort()

    def say(self, line: bytes) -> None:
        """Tell every client something, as if the server had said it."""
        for client in self._clients:
            client.write(line)

    async def close(self) -> None:
        assert self._listener is not None
        self._listener.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _connect(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(self._server.hostname, self._server.port)
        self._clients.add(to_client)
        upwards = asyncio.create_task(self._up(from_client, to_server))
        downwards = asyncio.create_task(self._down(from_server, to_client))
        self._pumps |= {upwards, downwards}
        await asyncio.wait([upwards, downwards], return_when=asyncio.FIRST_COMPLETED)
        for pump in (upwards, downwards):
            pump.cancel()
        await asyncio.gather(upwards, downwards, return_exceptions=True)
        self._pumps -= {upwards, downwards}
        self._clients.discard(to_client)
        for writer in (to_client, to_server):
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while said := await reader.read(65_536):
            writer.write(said)
            await writer.drain()

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            words = line.split()
            payload = b""
            if words and words[0] in (b"MSG", b"HMSG"):
                payload = await reader.readexactly(int(words[-1]) + 2)
                headers = int(words[-2]) if words[0] == b"HMSG" else 0
                if self.lose(words[1].decode(), payload[headers:-2]):
                    self.lost += 1
                    continue
                if self.repeat(words[1].decode(), payload[headers:-2]):
                    writer.write(line + payload)
            writer.write(line + payload)
            await writer.drain()


def nothing(_: str, __: bytes) -> bool:
    """No message at all."""
    return False


def acknowledgements(_: str, payload: bytes) -> bool:
    """What the stream says when it has stored a message."""
    return payload.startswith(b'{"stream":')


@asynccontextmanager
async def wire_to(server_url: str) -> AsyncIterator[Wire]:
    wire = Wire(server_url)
    await wire.open()
    try:
        yield wire
    finally:
        await wire.close()
