"""Folded from zero, every document is the one that stands, byte for byte; and what is not is named and put right."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from recorded_stories import fold, projected, story

from engine.journal import Stored
from projector.days.bucket import documents
from projector.days.rebuild import Rebuilt, rebuild
from projector.days.shelf import Standing
from projector.projection import Projection
from projector.reading import CopySource, Take
from projector.replay import Replay

SEEDS = range(3)


class MemoryShelf:
    """Documents in memory. `meanwhile` is called before each reading: a projector that writes on."""

    def __init__(self, documents: dict[str, bytes], meanwhile: Callable[[], None] = lambda: None) -> None:
        self.standing = {key: Standing(document, 1) for key, document in documents.items()}
        self.meanwhile = meanwhile

    async def keys(self) -> list[str]:
        return list(self.standing)

    async def get(self, key: str) -> Standing | None:
        self.meanwhile()
        return self.standing.get(key)

    async def put(self, key: str, document: bytes | None, seen: Standing | None) -> bool:
        if self.standing.get(key) != seen:
            return False
        self.write(key, document)
        return True

    def write(self, key: str, document: bytes | None) -> None:
        if document is None:
            del self.standing[key]
        else:
            self.standing[key] = Standing(document, self.standing[key].revision + 1 if key in self.standing else 1)

    def documents(self) -> dict[str, bytes]:
        return {key: standing.document for key, standing in self.standing.items()}


class Growing(CopySource):
    """A stream of which more comes each time it is asked for its end."""

    def __init__(self, messages: list[Stored], *, at_first: int, step: int) -> None:
        super().__init__(messages)
        self.end, self.step = at_first, step

    async def last(self) -> int:
        self.end, end = min(self.end + self.step, await super().last()), self.end
        return end

    async def read(self, take: Take, *, after: int, upto: int | None) -> None:
        await super().read(take, after=after, upto=min(upto or self.end, self.end))


def everything(stream: list[Stored]) -> dict[str, bytes]:
    """The documents as a projector that never stopped has written them; what is final is in it too."""
    return documents(projected(stream))


async def rebuilt(stream: list[Stored], shelf: MemoryShelf, *, dry_run: bool = False) -> Rebuilt:
    return await rebuild(CopySource(stream), shelf, live=False, dry_run=dry_run)


@pytest.mark.parametrize("seed", SEEDS)
async def test_m18_what_was_written_as_it_happened_is_what_is_folded_from_zero(seed: int) -> None:
    stream = story(seed, steps=150)
    shelf = MemoryShelf(everything(stream))
    before = shelf.documents()
    found = await rebuilt(stream, shelf)
    assert (found.differed, found.rewritten, found.documents) == ({}, 0, len(before))
    assert shelf.documents() == before


@pytest.mark.parametrize("seed", SEEDS)
async def test_m18_stopped_and_restored_anywhere_it_writes_the_same_documents(seed: int) -> None:
    stream = story(seed, steps=150)
    projection, reading, written = Projection("main"), Replay(), dict[str, bytes]()
    for stored in stream:
        for answered in reading.take(stored):
            fold(projection, answered)
            if answered.stored.seq % 13 == 0:  # written, put down, killed, begun again
                written |= documents(projection)
                projection.details.final.clear()
                projection = Projection.restored(projection.wallet, projection.beside())
    written |= documents(projection)
    found = await rebuilt(stream, MemoryShelf(written), dry_run=True)
    assert found.differed == {}


async def test_what_differs_is_named_and_put_right() -> None:
    stream = story(1, steps=150)
    right = everything(stream)
    first, second, third = sorted(right)[:3]
    wrong = {**right, first: right[first][:-1] + b',"settled_after_seal":7}', "jev.1999-01-01": b'{"seq":3}'}
    wrong[second] = b"not a document"
    del wrong[third]
    shelf = MemoryShelf(wrong)
    expected = {first: "other", second: "other", third: "missing", "jev.1999-01-01": "unknown"}
    dry = await rebuilt(stream, shelf, dry_run=True)
    assert (dry.differed, dry.rewritten, shelf.documents()) == (expected, 0, wrong)
    found = await rebuilt(stream, shelf)
    assert (found.differed, found.rewritten, found.moved) == (expected, 4, 0)
    assert shelf.documents() == right
    assert (await rebuilt(stream, shelf)).differed == {}


async def test_what_was_right_and_was_not_brought_up_is_behind() -> None:
    stream = story(1, steps=150)
    early, right = everything(stream[: len(stream) // 2]), everything(stream)
    changed = {key for key, document in early.items() if right[key] != document}
    found = await rebuilt(stream, MemoryShelf({**right, **{key: early[key] for key in changed}}))
    assert found.differed == dict.fromkeys(changed, "behind")
    assert changed


async def test_beside_a_wallet_that_goes_on_each_document_is_compared_at_its_own_sequence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("projector.days.rebuild.AGAIN_S", 0.0)
    stream = story(2, steps=150)
    versions = [everything(stream[:upto]) for upto in range(len(stream) // 2, len(stream), 10)]
    shelf = MemoryShelf(versions.pop(0))

    def write_on() -> None:
        if versions:
            for key, document in versions.pop(0).items():
                shelf.write(key, document)
        else:
            shelf.standing |= {key: Standing(document, 99) for key, document in everything(stream).items()}

    shelf.meanwhile = write_on
    source = Growing(stream, at_first=len(stream) * 3 // 4, step=7)
    found = await rebuild(source, shelf, live=True, dry_run=True)
    assert found.differed == {}


async def test_what_changed_under_our_hands_is_let_be() -> None:
    stream = story(1, steps=150)
    right = everything(stream)
    key = sorted(right)[0]
    shelf = MemoryShelf(right | {key: b'{"seq":1}'})

    async def moved(key: str, document: bytes | None, seen: Standing | None) -> bool:
        return False

    shelf.put = moved  # type: ignore[method-assign]
    found = await rebuilt(stream, shelf)
    assert (found.rewritten, found.moved) == (0, 1)
    assert msgspec.json.decode(shelf.documents()[key]) == {"seq": 1}
