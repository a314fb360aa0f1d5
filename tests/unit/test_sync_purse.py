"""The client without asyncio: typed answers, the same ask sent again, settlements that are not lost, and its limits."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fake_api import KEY, FakeApi, How, fake_api

from commonpurse.sync import Exhausted, Held, NoAnswer, NotAllowed, Option, Purse, Refusal, Refused, Settled
from engine.errors import BadAsk, Misconfigured, NotKept

CENT = 10_000_000
WAIT_S = 60.0
LEAVES = """
import sys
from commonpurse.sync import Purse

purse = Purse(*sys.argv[1:])
hold = purse.open({"usd": "0.10"}, id="a")
hold.cost(usd="0.03")
send = purse.send
purse.send = lambda path, body: send(path, body, wait_s=0.05)
hold.end()
assert purse.unsent == 1
"""
LOADED = """
import sys
import commonpurse.sync
print([name for name in ("aiohttp", "httpx", "requests", "nats", "urllib3") if name in sys.modules])
"""


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as api:
        yield api


@pytest.fixture
def purse(api: FakeApi) -> Iterator[Purse]:
    with Purse(api.url, KEY) as purse:
        yield purse


def settles(api: FakeApi, id: str) -> list[Any]:
    return api.bodies(f"/v1/holds/{id}/settle")


# --- answers ----------------------------------------------------------------------------------------------------------


def test_answers_are_typed_and_exact(purse: Purse) -> None:
    held = purse.hold({"usd": "0.10"}, id="a", labels={"provider": "jev"})
    assert isinstance(held, Held)
    assert (held.id, held.amounts, held.option) == ("a", {"usd": Decimal("0.1")}, 0)
    settled = purse.settle("a", {"usd": Decimal("0.040000001")})
    assert isinstance(settled, Settled)
    assert (settled.outcome, settled.charged["usd"]) == ("settled", Decimal("0.040000001"))
    assert settled.released == {"usd": Decimal("0.059999999")}


def test_a_refusal_is_data_and_a_block_raises_it(purse: Purse, api: FakeApi) -> None:
    refusal = purse.hold({"usd": 2})
    assert isinstance(refusal, Refusal)
    assert (refusal.outcome, refusal.why, refusal.budget, refusal.fits) == ("exhausted", "never", "jev", Decimal(1))
    with pytest.raises(Exhausted) as raised, purse.holding({"usd": 2}):
        pytest.fail("the block must not begin")
    assert (raised.value.why, raised.value.unit, raised.value.fits) == ("never", "usd", Decimal(1))
    assert raised.value.resets_at == datetime(2040, 12, 1, tzinfo=UTC)
    api.canned["/v1/holds"] = (403, {"outcome": "frozen", "id": "x", "detail": "All spending is frozen"})
    with pytest.raises(Refused) as frozen, purse.holding({"usd": "0.1"}):
        pytest.fail("the block must not begin")
    assert frozen.value.name == "frozen"


def test_options_go_with_their_grades_and_the_granted_one_is_named(purse: Purse, api: FakeApi) -> None:
    held = {"outcome": "held", "id": "o", "option": 1, "amounts": {"usd": "0.01"}, "at": "2040-11-30T00:00:00Z"}
    api.canned["/v1/holds"] = (201, {**held, "expires_at": "2040-11-30T00:10:00Z"})
    best = Option({"usd": "0.5"}, least={"usd": "0.25"}, grade=0, name="large")
    with purse.holding(options=[best, Option({"usd": Decimal("0.01")}, grade=1)], id="o") as hold:
        assert hold.option == 1
        hold.cost(usd="0.005")
    assert api.bodies("/v1/holds")[0]["options"] == [
        {"amounts": {"usd": "0.5"}, "least": {"usd": "0.25"}, "grade": 0, "name": "large"},
        {"amounts": {"usd": "0.01"}, "grade": 1, "name": ""},
    ]


@pytest.mark.parametrize("amount", [0.1, True, None, "a lot", "NaN", Decimal("Infinity"), Decimal("1e90")])
def test_what_is_no_exact_amount_is_never_sent(purse: Purse, api: FakeApi, amount: Any) -> None:
    with pytest.raises(BadAsk, match=r"amounts\.usd"):
        purse.hold({"usd": amount})
    assert api.seen == []


def test_a_wrong_key_and_a_wrong_field_are_errors_of_the_caller(purse: Purse, api: FakeApi) -> None:
    with Purse(api.url, "purse_other") as other, pytest.raises(NotAllowed):
        other.hold({"usd": "0.1"})
    api.canned["/v1/holds"] = (400, {"outcome": "invalid", "field": "labels.user", "why": "comes from authentication"})
    with pytest.raises(BadAsk) as wrong:
        purse.hold({"usd": "0.1"}, labels={"user": "me"})
    assert wrong.value.field == "labels.user"


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "nats://127.0.0.1", "http://", "http://me:secret@host"])
def test_what_is_no_address_is_said_at_once(url: str) -> None:
    with pytest.raises(Misconfigured) as wrong:
        Purse(url, KEY)
    assert "secret" not in str(wrong.value)


# --- blocks -----------------------------------------------------------------------------------------------------------


def test_a_block_is_settled_at_what_it_says(purse: Purse, api: FakeApi) -> None:
    with purse.holding({"usd": "0.10"}, id="a") as hold:
        hold.cost(usd="0.03")
    assert settles(api, "a") == [{"amounts": {"usd": "0.03"}, "estimated": False}]
    with purse.holding({"usd": "0.10"}, id="b") as hold:
        hold.release()
    assert api.calls["b"].state == "released"


def test_a_block_that_does_not_say_is_charged_at_the_grant_as_an_estimate(purse: Purse, api: FakeApi) -> None:
    with purse.holding({"usd": "0.10"}, id="a"):
        pass
    with pytest.raises(ZeroDivisionError), purse.holding({"usd": "0.10"}, id="b"):
        _ = 1 // 0
    for id in ("a", "b"):
        assert settles(api, id) == [{"amounts": {"usd": "0.1"}, "estimated": True}]


def test_an_interrupted_block_is_released_where_its_author_knows_that_nothing_was_called(
    purse: Purse, api: FakeApi
) -> None:
    def never_called(error: BaseException) -> Any:
        return "release" if isinstance(error, ConnectionRefusedError) else "charge"

    with pytest.raises(ZeroDivisionError), purse.holding({"usd": "0.1"}, id="a", on_error="release"):
        _ = 1 // 0
    with pytest.raises(ConnectionRefusedError), purse.holding({"usd": "0.1"}, id="b", on_error=never_called):
        raise ConnectionRefusedError
    with pytest.raises(TimeoutError), purse.holding({"usd": "0.1"}, id="c", on_error=never_called):
        raise TimeoutError
    with pytest.raises(ZeroDivisionError), purse.holding({"usd": "0.1"}, id="d", on_error="release") as hold:
        _ = hold.cost(usd="0.02") or 1 // 0
    assert [api.calls[id].state for id in "abcd"] == ["released", "released", "settled", "settled"]
    assert [api.calls[id].charged for id in "abcd"] == [0, 0, 10 * CENT, 2 * CENT]


# --- an unsure world --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["503", "before", "after", "garbage"])
def test_the_same_ask_is_sent_again_until_it_is_answered(purse: Purse, api: FakeApi, fault: How) -> None:
    api.fail("/v1/holds", fault)
    api.fail("/settle", fault)
    with purse.holding({"usd": "0.10"}, wait_s=WAIT_S) as hold:
        hold.cost(usd="0.03")
    assert len({body["id"] for body in api.bodies("/v1/holds")}) == 1
    assert len(api.bodies("/v1/holds")) >= 2
    assert len(settles(api, hold.id)) >= 2
    assert (api.settled, api.held) == (3 * CENT, 0)


def test_nobody_there_is_no_permission() -> None:
    with pytest.raises(NoAnswer), Purse("http://127.0.0.1:1", KEY).holding({"usd": "0.1"}, id="a", wait_s=0.2):
        pytest.fail("the block must not begin")


def test_a_hold_that_nobody_answered_is_given_back(purse: Purse, api: FakeApi) -> None:
    api.fail("/v1/holds", "after", times=1)
    api.fail("/v1/holds", "503", times=100)
    with pytest.raises(NoAnswer):
        purse.hold({"usd": "0.1"}, wait_s=0.5)
    purse.close(WAIT_S)
    assert [call.state for call in api.calls.values()] == ["released"]


def test_a_settlement_that_nobody_answers_is_tried_on_in_the_background(
    purse: Purse, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    with purse.holding({"usd": "0.10"}, id="a") as hold:
        hold.cost(usd="0.03")
        monkeypatch.setattr(purse, "send", lambda path, body: Purse.send(purse, path, body, wait_s=0.05))
        api.fail("/settle", "503", times=2)
    purse.close(WAIT_S)
    assert purse.unsent == 0
    assert api.calls["a"].charged == 3 * CENT


def test_closing_says_what_could_not_be_kept(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    purse = Purse(api.url, KEY)
    with purse.holding({"usd": "0.10"}, id="a"):
        monkeypatch.setattr(purse, "send", lambda path, body: Purse.send(purse, path, body, wait_s=0.05))
        api.fail("/settle", "503", times=1000)
    assert purse.unsent == 1
    with pytest.raises(NotKept, match="1 settlements"):
        purse.close(0.1)


def test_a_program_that_ends_without_closing_still_sends_what_waits(api: FakeApi) -> None:
    api.fail("/settle", "503", times=2)
    command = [sys.executable, "-c", LEAVES, api.url, KEY]
    subprocess.run(command, check=True, capture_output=True, timeout=WAIT_S)
    assert api.calls["a"].charged == 3 * CENT


def test_what_comes_after_a_close_is_sent_as_well(api: FakeApi) -> None:
    purse = Purse(api.url, KEY)
    purse.close()
    purse.hold({"usd": "0.1"}, id="a")
    purse.give_back("a")
    purse.close(WAIT_S)
    assert api.calls["a"].state == "released"


# --- threads and processes --------------------------------------------------------------------------------------------


def test_threads_share_connections_and_never_overspend(api: FakeApi) -> None:
    with Purse(api.url, KEY, connections=4) as purse:

        def one(_: int) -> bool:
            held = purse.hold({"usd": "0.01"}, wait_s=WAIT_S)
            return isinstance(held, Held)

        with ThreadPoolExecutor(20) as threads:
            held = sum(threads.map(one, range(150)))
    assert held == 100
    assert api.held == 100 * CENT


def test_a_connection_is_used_again(purse: Purse, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[threading.Thread] = []
    opening = purse._connections._open
    monkeypatch.setattr(
        purse._connections, "_open", lambda deadline: opened.append(threading.current_thread()) or opening(deadline)
    )
    for _ in range(5):
        purse.hold({"usd": "0.001"})
    assert len(opened) == 1


def test_a_forked_child_has_connections_of_its_own(purse: Purse, api: FakeApi) -> None:
    assert isinstance(purse.hold({"usd": "0.01"}, id="parent"), Held)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the fake has a thread; the child touches nothing of it
        child = os.fork()
    if child == 0:
        held = purse.hold({"usd": "0.01"}, id="child")
        os._exit(0 if isinstance(held, Held) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert isinstance(purse.settle("parent", {"usd": "0.01"}), Settled)
    assert set(api.calls) == {"parent", "child"}


def test_over_tls_the_wallet_must_prove_who_it_is(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl, to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"]
    made += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True, timeout=60)
    here = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    here.load_cert_chain(certificate, key)
    with fake_api(tls=here) as api:
        address = api.url.replace("http://127.0.0.1", "https://localhost")
        with Purse(address, KEY, tls=ssl.create_default_context(cafile=str(certificate))) as purse:
            assert isinstance(purse.hold({"usd": "0.1"}, id="a"), Held)
        with Purse(address, KEY) as doubting, pytest.raises(NoAnswer, match="certificate verify failed"):
            doubting.hold({"usd": "0.1"}, id="b", wait_s=0.2)
        assert set(api.calls) == {"a"}


def test_no_http_library_is_loaded() -> None:
    shown = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout == "[]\n"
