"""What a key looks like, what is kept of it, and what a web process knows of the keys."""

from __future__ import annotations

import asyncio
import re

import msgspec
import pytest
from desk_client import open_desk
from fake_purse import NOON, NS, FakeBucket, Kept
from integration.rig import eventually

from engine.errors import NoAnswer
from web import keyring
from web.keyring import Keyring, TooManyKeys
from web.keys import Key, hash_of, is_ours, make_key, short_id_of


def key_of(text: str, **more: object) -> Key:
    id = short_id_of(text)
    assert id is not None
    return Key(
        **{
            "id": id,
            "hash": hash_of(text),
            "role": "spend",
            "namespace": id,
            "created_at": NOON,
            "made_by": "a",
            **more,
        }
    )  # type: ignore[arg-type]


# --- its shape --------------------------------------------------------------------------------------------------------


def test_a_key_has_a_fixed_shape_for_secret_scanners() -> None:
    for _ in range(100):
        id, key = make_key()
        assert re.fullmatch(r"cp_[a-z2-9]{10}_[A-Za-z0-9]{46}", key)
        assert (short_id_of(key), is_ours(key)) == (id, True)


def test_two_keys_share_nothing() -> None:
    made = [make_key() for _ in range(1_000)]
    assert len({id for id, _ in made}) == len({key[14:] for _, key in made}) == 1_000


def test_every_mistyped_character_is_told_from_an_unknown_key_without_asking() -> None:
    _, key = make_key()
    for place, was in enumerate(key):
        wrong = key[:place] + ("a" if was != "a" else "b") + key[place + 1 :]
        assert short_id_of(wrong) is None
    assert short_id_of(key[:-1]) is short_id_of(key + "a") is short_id_of("") is None


def test_what_is_kept_opens_for_the_key_alone() -> None:
    _, text = make_key()
    key = key_of(text)
    assert key.opens(text)
    assert not key.opens(text[:-1])
    assert not key.opens("\N{SNOWMAN}\udcff")
    assert text not in msgspec.json.encode(key).decode()


def test_a_key_expires_at_its_moment_and_a_revoked_one_has_ended() -> None:
    key = key_of(make_key()[1], expires_at=NOON + NS)
    assert (key.ended(NOON), key.ended(NOON + NS - 1), key.ended(NOON + NS)) == (None, None, "expired")
    assert msgspec.structs.replace(key, revoked_at=NOON).ended(NOON) == "revoked"


def test_a_kept_key_reads_the_same_for_ever() -> None:
    golden = (
        b'{"id":"abcdefghij","hash":"00","role":"spend","namespace":"abcdefghij","created_at":1,"made_by":"admin",'
        b'"user":"alice","cohort":"premium","labels":{"team":"x"},"names":["user"],"expires_at":2,"replaces":"k",'
        b'"note":"n","revoked_at":3,"revoked_by":"admin","reason":"r","later":"ignored"}'
    )
    key = Key(
        id="abcdefghij", hash="00", role="spend", namespace="abcdefghij", created_at=1, made_by="admin", user="alice",
        cohort="premium", labels={"team": "x"}, names=("user",), expires_at=2, replaces="k", note="n", revoked_at=3,
        revoked_by="admin", reason="r",
    )  # fmt: skip
    assert msgspec.json.decode(golden, type=Key) == key
    assert msgspec.json.encode(key) == golden.replace(b',"later":"ignored"', b"")


# --- the ring ---------------------------------------------------------------------------------------------------------


async def test_two_rings_on_one_bucket_have_the_same_keys_and_one_secret() -> None:
    bucket = FakeBucket()
    one, other = Keyring(bucket), Keyring(bucket)
    first, second = key_of(make_key()[1]), key_of(make_key()[1])
    await asyncio.gather(one.add(first), other.add(second))
    assert await one.find(second.id) == second
    assert await other.find(first.id) == first
    assert one.origin_secret == other.origin_secret
    assert len(one.origin_secret) == 64


async def test_a_running_ring_hears_of_a_revocation_elsewhere() -> None:
    bucket = FakeBucket()
    one, other = Keyring(bucket), Keyring(bucket)
    key = key_of(make_key()[1])
    await one.add(key)
    assert await other.find(key.id) == key
    running = asyncio.create_task(other.run())
    await one.revoke(key.id, at=NOON, by_whom="admin", reason="lost")

    async def heard() -> bool:
        found = await other.find(key.id)
        return found is not None and found.ended(NOON) == "revoked"

    await eventually(heard)
    running.cancel()


async def test_who_revokes_second_changes_nothing() -> None:
    bucket = FakeBucket()
    one, other = Keyring(bucket), Keyring(bucket)
    key = key_of(make_key()[1])
    await one.add(key)
    await one.revoke(key.id, at=NOON, by_whom="ann", reason="lost")
    again = await other.revoke(key.id, at=NOON + 1, by_whom="bob", reason="found")
    assert again is not None
    assert (again.revoked_at, again.revoked_by, again.reason) == (NOON, "ann", "lost")
    assert await other.revoke("zzzzzzzzzz", at=NOON, by_whom="bob", reason="") is None


async def test_while_the_bucket_is_silent_known_keys_go_on_and_unknown_ones_are_nobodys_guess() -> None:
    bucket = FakeBucket()
    ring = Keyring(bucket)
    key = key_of(make_key()[1])
    await ring.add(key)
    bucket.error = NoAnswer("away")
    assert await ring.find(key.id) == key
    with pytest.raises(NoAnswer):
        await ring.find(make_key()[0])


async def test_all_who_wait_for_a_silent_bucket_wait_for_one_answer() -> None:
    class Slow(FakeBucket):
        reads = 0

        async def next_after(self, seq: int) -> Kept | None:
            Slow.reads += 1
            await asyncio.sleep(0)
            raise NoAnswer("away")

    ring = Keyring(Slow())
    asked = [ring.find(make_key()[0]) for _ in range(1_000)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(answer, NoAnswer) for answer in answers)
    assert Slow.reads <= 2


async def test_what_cannot_be_read_opens_nothing_and_stops_nothing() -> None:
    bucket = FakeBucket()
    ring = Keyring(bucket)
    await bucket.put("abcdefghij", b'{"role":"emperor"}', after=0)
    key = key_of(make_key()[1])
    await ring.add(key)
    assert await ring.find("abcdefghij") is None
    assert await ring.find(key.id) == key


async def test_there_are_only_so_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "KEYS_MAX", 2)
    ring = Keyring(FakeBucket())
    for _ in range(2):
        await ring.add(key_of(make_key()[1]))
    with pytest.raises(TooManyKeys):
        await ring.add(key_of(make_key()[1]))
    async with open_desk() as desk:
        answers = [await desk.post("/v1/keys", {"role": "observe"}) for _ in range(3)]
    assert [answer.status for answer in answers] == [201, 201, 409]
