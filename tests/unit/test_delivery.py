"""Delivery to somebody outside: signed, once noted never again, tried again until taken, and silent about secrets."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from integration.rig import eventually
from scripted_upstream import ScriptedUpstream, scripted_upstream
from structlog.testing import capture_logs

from engine.errors import Misconfigured
from projector.delivery import delivery, sent
from projector.delivery.delivery import BODY_BYTES_MAX, Delivery
from projector.delivery.parcel import NotTaken, Parcel
from projector.delivery.sent import Sent
from projector.delivery.webhook import Webhook
from projector.observers.fetch import open_session
from projector.observers.pace import Pace
from projector.secrets import secret_of, webhook_address

SECRET = "a-secret-nobody-may-see"


class Receiver:
    """Takes what it is told to take."""

    def __init__(self, *refuses: str) -> None:
        self.refuses = list(refuses)
        self.tried: list[str] = []

    async def carry(self, parcel: Parcel) -> None:
        self.tried.append(parcel.id)
        if parcel.id in self.refuses:
            self.refuses.remove(parcel.id)
            raise NotTaken("it is busy")


def parcel(id: str, body: bytes = b"{}") -> Parcel:
    return Parcel(id, body)


@asynccontextmanager
async def running(one: Delivery) -> AsyncIterator[None]:
    task = asyncio.create_task(one.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "again_s", lambda self, failures, *, retry_after_s=0.0: 0.0)


# --- the way ----------------------------------------------------------------------------------------------------------


async def test_what_is_not_taken_goes_behind_the_others_and_is_tried_again(tmp_path: Path) -> None:
    receiver = Receiver("a", "a")
    one = Delivery("somebody", receiver, Sent(tmp_path, "somebody"))
    assert [one.put(parcel(id)) for id in ("a", "b", "a")] == [True, True, True]
    async with running(one):
        await eventually(lambda: not one.waiting)
    assert receiver.tried == ["a", "b", "a", "a"]


async def test_what_was_noted_is_not_delivered_after_a_start_and_what_was_not_is(tmp_path: Path) -> None:
    first = Delivery("somebody", Receiver(), Sent(tmp_path, "somebody"))
    first.put(parcel("a"))
    async with running(first):
        await eventually(lambda: "a" in Sent(tmp_path, "somebody"))
    receiver = Receiver()
    second = Delivery("somebody", receiver, Sent(tmp_path, "somebody"))
    second.put(parcel("a"))
    second.put(parcel("b"))
    async with running(second):
        await eventually(lambda: not second.waiting)
    assert receiver.tried == ["b"]


def test_too_many_and_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "WAITING_MAX", 2)
    one = Delivery("somebody", Receiver(), Sent(None, "somebody"))
    assert not one.put(parcel("large", b"x" * (BODY_BYTES_MAX + 1)))
    assert [one.put(parcel(id)) for id in ("a", "b", "c", "a")] == [True, True, False, True]


def test_notes_are_whole_lines_bounded_and_stop_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent, "IDS_MAX", 4)
    file = tmp_path / sent.FOLDER / "x.ids"
    notes = Sent(tmp_path, "x")
    for id in "abcde":
        notes.note(id)
    assert file.read_text() == "d\ne\n"
    file.write_text("d\ne\ncut sho")
    again = Sent(tmp_path, "x")
    assert [id in again for id in ("d", "e", "cut sho")] == [True, True, False]
    again.note("f")
    assert "f" in Sent(tmp_path, "x")
    (tmp_path / "file").write_text("")
    with capture_logs() as logs:
        blocked = Sent(tmp_path / "file", "x")
        blocked.note("g")
    assert ("g" in blocked, [one["event"] for one in logs]) == (True, ["delivery_not_noted"])


# --- the webhook ------------------------------------------------------------------------------------------------------


@pytest.fixture
async def receiver() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream() as found:
        yield found


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as found:
        yield found


def webhook(session: aiohttp.ClientSession, url: str) -> Webhook:
    return Webhook(session, url=url, secret=SECRET, now=lambda: 1_796_083_200.9)


async def test_a_webhook_is_signed_over_id_time_and_body(
    receiver: ScriptedUpstream, session: aiohttp.ClientSession
) -> None:
    receiver.answers({}, status=204)
    await webhook(session, receiver.base_url + "/hook").carry(Parcel("seal:main:2026-11-30", b'{"told":12}'))
    got = receiver.last
    expected = hmac.new(SECRET.encode(), b'seal:main:2026-11-30.1796083200.{"told":12}', hashlib.sha256).hexdigest()
    assert (got.method, got.raw) == ("POST", b'{"told":12}')
    headers = {name.lower(): value for name, value in got.headers.items()}
    assert headers["purse-id"] == "seal:main:2026-11-30"
    assert headers["purse-timestamp"] == "1796083200"
    assert headers["purse-signature"] == f"v1={expected}"
    assert headers["content-type"] == "application/json"
    assert SECRET not in str(headers)


@pytest.mark.parametrize(
    ("status", "wait_s", "why"),
    [(500, 0.0, "status 500"), (429, 7.0, "status 429"), (404, 0.0, "status 404"), (302, 0.0, "elsewhere")],
)
async def test_a_webhook_that_answers_otherwise_has_not_taken_it_and_no_redirect_is_followed(
    receiver: ScriptedUpstream, session: aiohttp.ClientSession, status: int, wait_s: float, why: str
) -> None:
    receiver.answers(
        {"secret": SECRET}, status=status, Retry_After=str(int(wait_s)), Location=receiver.base_url + "/other"
    )
    with pytest.raises(NotTaken, match=why) as refused:
        await webhook(session, receiver.base_url + "/hook").carry(parcel("a"))
    assert (refused.value.retry_after_s, len(receiver.asked)) == (wait_s, 1)
    assert SECRET not in str(refused.value)


async def test_where_nobody_listens_the_error_names_no_address(session: aiohttp.ClientSession) -> None:
    with pytest.raises(NotTaken) as refused:
        await webhook(session, "http://127.0.0.1:9/a-path-that-is-a-secret").carry(parcel("a"))
    assert "secret" not in str(refused.value)
    assert "127.0.0.1" not in str(refused.value)


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_a_secret_is_named_by_its_variable_and_never_shown() -> None:
    assert secret_of("HOOK", {"HOOK": SECRET}, "x") == SECRET
    for variable, held in (("HOOK", ""), ("HOOK", "two words"), (SECRET, SECRET), (5, SECRET)):
        with pytest.raises(Misconfigured, match=r"^x: ") as refused:
            secret_of(variable, {"HOOK": held}, "x")
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["http://example.com/x", "https://u:p@example.com/", "ftp://example.com", "https://", "x"]
)
def test_a_webhook_is_encrypted_unless_it_is_on_this_machine(url: str) -> None:
    assert webhook_address("https://example.com/a?token=b", "x")
    assert webhook_address("http://127.0.0.1:8080/a", "x")
    with pytest.raises(Misconfigured, match=r"^x: expected https"):
        webhook_address(url, "x")
