"""Asks the wallet until it answers or patience ends. The same bytes each time: what was decided once stands."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from commonpurse.client.answers import NotNow
from commonpurse.client.connections import Answer, Connections
from engine.errors import NoAnswer

PAUSE_S_MIN = 0.1
PAUSE_S_MAX = 2.0

Heard = TypeVar("Heard")


def post(connections: Connections, path: str, body: object, read: Callable[[Answer], Heard], *, wait_s: float) -> Heard:
    """What `read` makes of the answer. Raises `NoAnswer` after `wait_s`, and whatever else `read` raises.

    Whoever does not answer is asked again after 0.1 s, then twice as long each time up to 2 s, or after what it says.
    """
    raw = msgspec.json.encode(body)
    deadline = time.monotonic() + wait_s
    pause_s = PAUSE_S_MIN
    while True:
        try:
            return read(connections.send("POST", path, raw, wait_s=deadline - time.monotonic()))
        except NotNow as no:
            failed, asked_s = NoAnswer(str(no), kept=no.kept), no.retry_after_s
        except NoAnswer as no:
            failed, asked_s = no, 0.0
        wait = max(pause_s, asked_s)
        if failed.kept or time.monotonic() + wait >= deadline:
            raise failed
        time.sleep(wait)
        pause_s = min(2 * pause_s, PAUSE_S_MAX)
