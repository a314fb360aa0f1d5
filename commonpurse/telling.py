"""Put holds and settles to the API, alone or many in one request, and sort what comes back into three kinds.

`Said` is the wallet's word. `NotNow` is the world: send the same again later. `Never` is the caller's mistake (a wrong
key, a field the wallet does not take): asking again cannot help. Waiting and counting are the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from commonpurse.client.answers import WORLD_FAILED
from commonpurse.client.asks import path_of
from commonpurse.http import Answer, Api
from commonpurse.said import REFUSALS, VERDICTS, Said, Told
from engine.errors import NoAnswer


@dataclass(frozen=True, slots=True)
class NotNow:
    """Nobody decided, or it is not known: the same ask may be sent again after `retry_after_s`."""

    why: str
    retry_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Never:
    """Whoever started this must change something first."""

    why: str


Heard: TypeAlias = Said | NotNow | Never


async def tell_all(api: Api, asks: Sequence[Mapping[str, object]], *, batch: bool) -> list[Heard]:
    """One answer an ask, in order. Asks are written as in a batch: `{"ask": "hold", ...}`."""
    if batch:
        return await _tell_in_one(api, asks)
    return [await _tell(api, ask) for ask in asks]


def api_error(status: int, said: Said) -> str:
    """A problem in the words of whoever called."""
    whose = {401: "the key is missing or not known", 403: "the key may not do this"}.get(status, f"HTTP {status}")
    return f"{whose}: {said.problem}" if said.problem else whose


def untrusted(said: Said) -> bool:
    """Whether the wallet says that its own stream cannot be trusted."""
    return said.type.endswith("/untrusted")


def read_said(answer: Answer) -> Said:
    """The body of any answer; an error page that is no JSON is a problem without words. Raises `MsgspecError`."""
    try:
        return msgspec.json.decode(answer.body, type=Said)
    except msgspec.MsgspecError:
        if answer.status < 400:
            raise
        return Said()


async def _tell(api: Api, ask: Mapping[str, object]) -> Heard:
    fields = {name: value for name, value in ask.items() if name not in {"ask", "hold"}}
    path = "/v1/holds" if ask["ask"] == "hold" else path_of(str(ask["hold"]), str(ask["ask"]))
    try:
        answer = await api.post(path, fields)
        return _sort(read_said(answer), answer)
    except NoAnswer as error:
        return NotNow(str(error))
    except msgspec.MsgspecError as error:
        return Never(f"an answer that this command cannot read: {error}")


async def _tell_in_one(api: Api, asks: Sequence[Mapping[str, object]]) -> list[Heard]:
    try:
        answer = await api.post("/v1/holds:batch", {"asks": asks})
        if answer.status == 200:
            return _one_each(asks, answer)
        return _to_each(asks, _sort_failed(answer.status, read_said(answer), answer))
    except NoAnswer as error:
        return _to_each(asks, NotNow(str(error)))
    except msgspec.MsgspecError as error:
        return _to_each(asks, Never(f"an answer that this command cannot read: {error}"))


def _one_each(asks: Sequence[Mapping[str, object]], answer: Answer) -> list[Heard]:
    told = msgspec.json.decode(answer.body, type=Told).told
    if len(told) != len(asks):
        return _to_each(asks, Never(f"the batch was answered with {len(told)} outcomes, not one each"))
    return [_sort(said, answer) for said in told]


def _to_each(asks: Sequence[Mapping[str, object]], heard: Heard) -> list[Heard]:
    return [heard] * len(asks)


def _sort(said: Said, answer: Answer) -> Heard:
    status = said.status or answer.status  # in a batch each outcome has its own
    if status < 300 or said.outcome in REFUSALS or (said.outcome in VERDICTS and status < 500):
        return said
    return _sort_failed(status, said, answer)


def _sort_failed(status: int, said: Said, answer: Answer) -> NotNow | Never:
    if status in WORLD_FAILED and not untrusted(said):
        return NotNow(f"{status} {said.problem}".strip(), answer.retry_after_s)
    return Never(api_error(status, said))
