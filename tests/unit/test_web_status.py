"""The status as strangers and operators see it, and live: the latest wins, and everybody hears when it is stale."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from desk_client import KEY, Desk, Heard, heard, open_desk
from fake_purse import NS, FakePurse

from engine.core.documents import Status
from engine.errors import NoAnswer
from web import status, watching
from web.known import Known
from web.status import Board

MONEY = {"limit", "settled", "held", "extra", "used", "remaining"}


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


# --- documents --------------------------------------------------------------------------------------------------------


async def test_an_operator_sees_every_amount(desk: Desk) -> None:
    await desk.hold("a", "0.5")
    await desk.settle("a", "0.2", final=False)
    await desk.post("/v1/observations", {"budget": "neurons", "figure": "4300"})
    shown = await desk.get("/v1/status")
    jev, neurons = shown["budgets"]
    assert shown.status == 200
    assert (shown["wallet"], shown["live"], shown["frozen"], shown["open_holds"]) == ("main", True, None, 1)
    assert jev == {
        "name": "jev", "unit": "usd", "per": "day", "zone": "UTC", "period": "2026-11-30",
        "limit": "1", "settled": "0.2", "held": "0.3", "extra": "0", "used": "0.5", "remaining": "0.5",
        "used_pct": 50.0, "held_pct": 30.0, "settled_pct": 20.0, "extra_pct": 0.0,
        "starts_at": "2026-11-30T00:00:00.000Z", "resets_at": "2026-12-01T00:00:00.000Z",
        "first_exhausted_at": None, "observed": None, "reading": None,
    }  # fmt: skip
    assert neurons["observed"] == {"source": "cloudflare", "figure": "4300", "as_of": "2026-11-30T14:05:00.000Z"}
    assert neurons["reading"] == {
        "source": "cloudflare", "read_at": "2026-11-30T14:05:00.000Z", "every_s": 30, "stale": False,
        "unreadable": False,
    }  # fmt: skip


async def test_a_stranger_sees_names_shares_and_times_and_amounts_only_where_the_plan_says_so(desk: Desk) -> None:
    await desk.post("/v1/observations", {"budget": "neurons", "figure": "4300"})
    shown = await desk.get("/v1/status", key=None)
    jev, neurons = shown["budgets"]
    assert not MONEY & jev.keys()
    assert (jev["name"], jev["used_pct"], jev["resets_at"]) == ("jev", 0.0, "2026-12-01T00:00:00.000Z")
    assert neurons.keys() >= MONEY
    assert neurons["observed"]["figure"] == "4300"
    assert "freezes" not in shown.body
    assert "open_holds" not in shown.body


async def test_a_strangers_figure_of_a_provider_has_no_amount_where_amounts_are_not_public(desk: Desk) -> None:
    plan = desk.purse.wallet.plan
    assert plan is not None
    neurons = msgspec.structs.replace(plan.budgets["neurons"], public="percent")
    desk.purse.apply(msgspec.structs.replace(plan, budgets={"neurons": neurons}))
    await desk.post("/v1/observations", {"budget": "neurons", "figure": "4300"})
    (budget,) = (await desk.get("/v1/status", key=None))["budgets"]
    assert budget["observed"] == {"source": "cloudflare", "as_of": "2026-11-30T14:05:00.000Z"}


async def test_a_freeze_of_one_user_is_shown_to_operators_only(desk: Desk) -> None:
    await desk.post("/v1/freeze", {"scope": "user=alice", "reason": "asked for it"})
    public, operator = await desk.get("/v1/status", key=None), await desk.get("/v1/status")
    assert public["frozen"] is None
    assert "alice" not in str(public.body)
    assert [frost["scope"] for frost in operator["freezes"]] == ["user=alice"]


async def test_a_freeze_of_all_is_shown_to_all(desk: Desk) -> None:
    await desk.post("/v1/freeze", {"scope": "all", "reason": "checking", "until": "2026-11-30T15:00:00Z"})
    shown = await desk.get("/v1/status", key=None)
    assert shown["frozen"] == {
        "scope": "all", "reason": "checking", "since": "2026-11-30T14:05:00.000Z", "until": "2026-11-30T15:00:00.000Z",
    }  # fmt: skip


async def test_without_figures_the_status_is_503(desk: Desk) -> None:
    desk.purse.error = NoAnswer("silence")
    answer = await desk.get("/v1/status")
    assert (answer.status, answer["type"], answer.headers["Retry-After"]) == (503, "/problems/no-status", "2")


async def test_who_asks_and_then_reads_sees_it(desk: Desk) -> None:
    """The projector is a few messages behind; the reading waits for it."""
    behind = await desk.purse.status()
    assert behind is not None
    seen: list[Status] = [behind, behind, behind]
    fresh = desk.purse.status

    async def late_projector() -> Status | None:
        return seen.pop() if seen else await fresh()

    desk.purse.status = late_projector  # type: ignore[method-assign]
    await desk.hold("a", "0.5")
    shown = await desk.get("/v1/status")
    assert shown["budgets"][0]["held"] == "0.5"
    assert seen == []


async def test_a_projector_that_stays_behind_is_not_waited_for_long(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "CATCH_UP_S", 0.02)
    behind = await desk.purse.status()

    async def stuck() -> Status | None:
        return behind

    desk.purse.status = stuck  # type: ignore[method-assign]
    await desk.hold("a", "0.5")
    shown = await desk.get("/v1/status")
    assert (shown.status, shown["budgets"][0]["held"]) == (200, "0")


# --- live -------------------------------------------------------------------------------------------------------------


class Viewer:
    """One open event stream, read an event at a time."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def event(self) -> dict[str, str]:
        """The next event's fields; a comment has the field ""."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(5):
            async for line in self.answer.content:
                if not line.strip():
                    return fields
                name, _, value = line.decode().rstrip("\n").partition(":")
                fields[name] = value.strip()
        raise AssertionError("the stream ended")

    async def status(self) -> dict[str, Any]:
        return dict(msgspec.json.decode((await self.event())["data"]))


async def watch(desk: Desk, *, key: str | None = None) -> Viewer:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    answer = await desk.client.get("/v1/status/stream", headers=headers)
    assert answer.status == 200
    viewer = Viewer(answer)
    assert await viewer.event() == {"retry": "5000"}
    return viewer


async def test_the_stream_is_one_and_says_how_to_come_back(desk: Desk) -> None:
    await desk.purse.show()
    viewer = await watch(desk)
    assert viewer.answer.headers["Content-Type"] == "text/event-stream"
    assert viewer.answer.headers["X-Accel-Buffering"] == "no"
    assert viewer.answer.headers["Cache-Control"] == "no-store"
    assert viewer.answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert len(viewer.answer.headers["x-request-id"]) == 32
    event = await viewer.event()
    assert (event["event"], event["id"]) == ("status", str(msgspec.json.decode(event["data"])["seq"]))


async def test_a_viewer_hears_each_newer_status(desk: Desk) -> None:
    await desk.purse.show()
    viewer = await watch(desk)
    assert (await viewer.status())["budgets"][1]["used"] == "0"
    await desk.post("/v1/holds", {"amounts": {"neurons": "100"}})
    await desk.purse.show()
    assert (await viewer.status())["budgets"][1]["used"] == "100"


async def test_a_late_viewer_hears_the_latest_at_once(desk: Desk) -> None:
    await desk.purse.show()
    first = await watch(desk)
    await first.status()
    second = await watch(desk)
    assert (await second.status())["live"] is True


async def test_who_asks_and_then_watches_never_sees_figures_go_back(desk: Desk) -> None:
    await desk.purse.show()
    await (await watch(desk)).status()
    before = await desk.purse.status()
    await desk.post("/v1/holds", {"amounts": {"neurons": "100"}})
    asked = await desk.get("/v1/status")
    viewer = await watch(desk)
    assert (await viewer.status())["seq"] == asked["seq"]
    assert before is not None
    assert before.seq < asked["seq"]
    desk.board.show(msgspec.structs.replace(before, as_of=before.as_of - 1))  # it was on its way meanwhile
    assert (await viewer.status())["seq"] == asked["seq"]


async def test_a_wallet_that_begins_again_is_shown_although_its_sequences_are_lower(desk: Desk) -> None:
    await desk.hold("a", "0.5")
    await desk.purse.show()
    viewer = await watch(desk)
    shown = await viewer.status()
    newest = await desk.purse.status()
    assert newest is not None
    desk.board.show(msgspec.structs.replace(newest, seq=1, as_of=newest.as_of + NS))
    assert (await viewer.status())["seq"] == 1 < shown["seq"]


async def test_strangers_and_operators_hear_their_own_document(desk: Desk) -> None:
    await desk.purse.show()
    public, operator = await watch(desk), await watch(desk, key=KEY)
    assert "limit" not in (await public.status())["budgets"][0]
    assert (await operator.status())["budgets"][0]["limit"] == "1"


async def test_one_viewer_too_many_is_503_and_a_place_is_free_again_when_one_leaves(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "VIEWERS_MAX", 1)
    viewer = await watch(desk)
    async with desk.client.get("/v1/status/stream") as answer:
        refused: Heard = await heard(answer)
    assert (refused.status, refused["type"]) == (503, "/problems/too-many-viewers")
    viewer.answer.close()
    while desk.board._viewers:
        await desk.get("/livez")
    await watch(desk)


async def test_a_quiet_stream_gives_signs_of_life(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "KEEP_ALIVE_S", 0.01)
    viewer = await watch(desk)
    assert await viewer.event() == {"": "still here"}


async def test_a_viewer_that_never_reads_is_let_go_and_holds_up_nobody(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "WRITE_TIMEOUT_S", 0.05)
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.connect(("127.0.0.1", desk.client.server.port))
        deaf.sendall(b"GET /v1/status/stream HTTP/1.1\r\nHost: here\r\n\r\n")
        viewer = await watch(desk)
        newest = await desk.purse.status()
        assert newest is not None
        async with asyncio.timeout(60):
            while desk.board.viewers < 2:
                await desk.get("/livez")
            while desk.board.viewers > 1:
                newest = msgspec.structs.replace(newest, seq=newest.seq + 1)
                desk.board.show(newest)
                while (await viewer.status())["seq"] < newest.seq:
                    pass
    assert desk.board.viewers == 1


async def test_the_streams_end_when_the_process_stops(desk: Desk) -> None:
    viewer = await watch(desk)
    desk.board.close()
    async with asyncio.timeout(5):
        assert await viewer.answer.content.read() == b""


async def test_everybody_hears_once_that_the_figures_are_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "STALE_S", 0.01)
    monkeypatch.setattr(status, "AGE_STEP_S", 0.01)
    async with open_desk() as desk:
        await desk.purse.show()
        viewer = await watch(desk)
        heard_live = [(await viewer.status())["live"]]
        if heard_live == [True]:  # a slow machine may be stale before it has looked
            heard_live.append((await viewer.status())["live"])
        assert heard_live[-1] is False
        await desk.purse.show()
        assert (await viewer.status())["live"] is True


async def test_each_document_is_encoded_once_for_all_who_watch() -> None:
    purse = FakePurse()
    board = Board(purse, Known(purse))
    board.show(Status("main", 1, 5 * NS, "", []))
    assert board.frame("public") is board.frame("public")
    assert board.frame("public") != board.frame("operator")


async def test_the_latest_wins_over_what_a_slow_viewer_missed() -> None:
    purse = FakePurse()
    board = Board(purse, Known(purse))
    frames = board.frames("public")
    await anext(frames)
    for seq in (1, 2, 3):
        board.show(Status("main", seq, 5 * NS, "", []))
    assert b"id: 3\n" in await anext(frames)
    board.close()
    assert [frame async for frame in frames] == []


async def test_a_plan_applied_elsewhere_is_learnt_from_the_status(desk: Desk) -> None:
    await desk.hold("a", "0.1")
    plan = desk.purse.wallet.plan
    assert plan is not None
    desk.purse.apply(msgspec.structs.replace(plan, units={**plan.units, "pages": 0}))
    viewer = await watch(desk)
    await desk.purse.show()
    await viewer.status()
    held = await desk.post("/v1/holds", {"amounts": {"pages": 3}})
    assert held.status == 201
