"""What anybody may know of a wallet: what the projector and the engine that speaks answer, and the stream itself.

Nothing here reaches the stream and nothing decides, but for visits, which an engine counts on no record.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TypeVar

import msgspec
from nats.aio.msg import Msg

from engine.bucket import Bucket
from engine.core.documents import EngineFigures, Life, ProjectorFigures, Status, TriedTarget
from engine.core.messages import Counted, Visit
from engine.errors import NoAnswer
from engine.journal import Journal, Stored
from engine.pieces import messages
from engine.read_record import Look, ReadRecord
from engine.visit_secret import VisitSecret

READ_WAIT_S = 2.0
TEST_WAIT_S = 20.0  # a target may take 15 s to answer

Document = TypeVar("Document")

_counted = msgspec.json.Decoder(Counted)


class Reader:
    """The reading half of `Purse`."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._visit_secret = VisitSecret(journal)

    async def status(self) -> Status | None:
        """The wallet as the projector sees it now; None if no projector answers."""
        return await self._read("read.status", b"", Status)

    async def engine_figures(self) -> EngineFigures | None:
        """What the engine that speaks counts of its own work; None if it does not answer."""
        return await self._read("figures", b"", EngineFigures)

    async def projector_figures(self) -> ProjectorFigures | None:
        """What was decided since the wallet began, by outcome; None if no projector answers."""
        return await self._read("read.figures", b"", ProjectorFigures)

    async def life(self, id: str) -> Life | None:
        """One call; None if the wallet does not remember it. Raises `NoAnswer` if no projector answers."""
        answer = await self._request("read.life", id.encode())
        return msgspec.json.decode(answer, type=Life | None)

    async def ready(self) -> bool:
        """Whether an engine that has finished its replay answers."""
        try:
            await self._request("ready", b"")
        except NoAnswer:
            return False
        return True

    async def visit(self, visit: Visit, *, wait_s: float) -> Counted | None:
        """Have a visit counted, on no record. None if no engine answers in time: then the caller counts for itself."""
        try:
            return _counted.decode(await self._request("visit", msgspec.json.encode(visit), wait_s=wait_s))
        except (NoAnswer, msgspec.DecodeError):
            return None

    async def visit_secret(self) -> bytes | None:
        """What all web processes of the wallet hash addresses with; None while it cannot be had."""
        return await self._visit_secret.get()

    async def follow_status(self) -> AsyncGenerator[Status, None]:
        """Live statuses. Latest wins: a slow reader misses the ones between, never the newest."""
        newest: asyncio.Queue[Status] = asyncio.Queue(maxsize=1)

        async def take(message: Msg) -> None:
            if newest.full():
                newest.get_nowait()
            newest.put_nowait(msgspec.json.decode(message.data, type=Status))

        subscription = await self.journal.client.subscribe(self.journal.names.subject("live"), cb=take)
        try:
            while True:
                yield await newest.get()
        finally:
            if self.journal.client.is_connected:
                await subscription.unsubscribe()

    def read_stream(self, *, after: int) -> AsyncGenerator[Stored, None]:
        """The stream behind sequence `after`, in pieces: see `engine.pieces`."""
        return messages(self.journal, after=after)

    async def read(self, word: str, payload: bytes = b"") -> bytes:
        """A projector's answer to `read.<word>`, as it came. Raises `NoAnswer`."""
        return await self._request(f"read.{word}", payload)

    def bucket(self, word: str) -> Bucket:
        """Documents of one kind that are kept beside the wallet's stream."""
        return Bucket(self.journal, word)

    async def note(self, look: Look) -> None:
        """Put on record who looked at what. Raises `NoAnswer`, `StreamRefused`: then nothing may be shown."""
        await ReadRecord(self.journal).note(look)

    async def test_alerts(self, target: str = "") -> list[TriedTarget]:
        """Have a test alert sent now to this target ("": to all). Empty if there is no such target.

        Raises `NoAnswer` if no projector here has targets.
        """
        answer = await self._request("alerts.test", target.encode(), wait_s=TEST_WAIT_S)
        return msgspec.json.decode(answer, type=list[TriedTarget])

    async def _read(
        self, word: str, payload: bytes, document: type[Document], *, wait_s: float = READ_WAIT_S
    ) -> Document | None:
        try:
            answer = await self._request(word, payload, wait_s=wait_s)
        except NoAnswer:
            return None
        return msgspec.json.decode(answer, type=document | None)

    async def _request(self, word: str, payload: bytes, *, wait_s: float = READ_WAIT_S) -> bytes:
        return await self.journal.request(self.journal.names.subject(word), payload, wait_s=wait_s)
