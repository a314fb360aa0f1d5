"""Open holds between callbacks are taken once, and those that lapsed long ago do not fill the memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from commonpurse.client.answers import Held
from commonpurse.integrations import open_holds
from commonpurse.integrations.open_holds import OpenHolds


@dataclass
class Open:
    held: Held


def held(id: str, *, ago: timedelta) -> Open:
    now = datetime.now(UTC)
    return Open(Held(id=id, amounts={}, at=now, expires_at=now - ago))


def test_a_hold_is_taken_once() -> None:
    opened: OpenHolds[Open] = OpenHolds()
    hold = held("a", ago=-timedelta(minutes=10))
    opened.put("run", hold)
    assert opened.take("run") is hold
    assert opened.take("run") is None


def test_what_lapsed_long_ago_is_forgotten_and_what_is_open_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_holds, "OPEN_MAX", 4)
    opened: OpenHolds[Open] = OpenHolds()
    for number in range(4):
        opened.put(f"old-{number}", held("a", ago=timedelta(hours=1)))
    for number in range(6):
        opened.put(f"open-{number}", held("a", ago=-timedelta(hours=1)))
    assert [opened.take(f"old-{number}") for number in range(4)] == [None] * 4
    assert all(opened.take(f"open-{number}") for number in range(6))
