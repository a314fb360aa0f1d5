"""Cycles' official client as it comes: its methods one by one, and the ways a program guards a call with it.

What a guarded function does in place of its work stands in `work`: nothing, or it `raises`, or it goes on until the
wallet says that its reservation `is extended` or that it `outlives` it, or until the file `gate` is there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from line_by_line import Asked, Said, answer_lines
from runcycles import (
    Action,
    Amount,
    AsyncCyclesClient,
    BalanceResponse,
    CommitRequest,
    CommitResponse,
    CyclesClient,
    CyclesConfig,
    CyclesProtocolError,
    CyclesResponse,
    DecisionRequest,
    DecisionResponse,
    EventCreateRequest,
    EventCreateResponse,
    ReleaseRequest,
    ReleaseResponse,
    ReservationCreateRequest,
    ReservationCreateResponse,
    ReservationDetail,
    ReservationExtendRequest,
    ReservationExtendResponse,
    ReservationListResponse,
    Unit,
    cycles,
    get_cycles_context,
)

METHODS: dict[str, tuple[Any, Any]] = {
    "create_reservation": (ReservationCreateRequest, ReservationCreateResponse),
    "commit_reservation": (CommitRequest, CommitResponse),
    "release_reservation": (ReleaseRequest, ReleaseResponse),
    "extend_reservation": (ReservationExtendRequest, ReservationExtendResponse),
    "decide": (DecisionRequest, DecisionResponse),
    "create_event": (EventCreateRequest, EventCreateResponse),
    "get_reservation": (None, ReservationDetail),
    "list_reservations": (None, ReservationListResponse),
    "get_balances": (None, BalanceResponse),
}
"""Method -> the client's own models of what it asks and of what it is answered."""

ACTION = {"kind": "llm.completion", "name": "gpt-4o-mini"}
WAIT_S = 60.0  # a deadline on a busy machine, not a measurement
LOOK_S = 0.05
TRIES = 50  # of what could not be committed: a part of the wallet that was killed is back long before


class ProviderFailed(Exception):
    """What a guarded function raises."""


def config(asked: Asked) -> CyclesConfig:
    """`subject`: of everything that is asked. What could not be committed is kept in the folder `journal`."""
    return CyclesConfig(
        base_url=asked["url"], api_key=asked["key"], journal_dir=asked["journal"], retry_initial_delay=LOOK_S,
        retry_max_attempts=TRIES, retry_max_delay=1.0, **asked["subject"],
    )  # fmt: skip


def until(so: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not so():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(LOOK_S)


def nothing_pending(asked: Asked) -> bool:
    """The client has got rid of everything it kept to tell the wallet later."""
    return not any(Path(asked["journal"]).rglob("*.json"))


def raised(error: CyclesProtocolError) -> Said:
    """What a program can tell it by."""
    return {
        "raised": type(error).__name__,
        "status": error.status,
        "code": error.error_code,
        "message": str(error),
        "retryable": error.is_retryable(),
    }


# --- one method -------------------------------------------------------------------------------------------------------


def call(asked: Asked) -> Said:
    """`method` of the client with `path`, and `body` or `query`. `as_is`: past its own model of what may be asked."""
    takes, gives = METHODS[asked["method"]]
    body = asked.get("body")
    if body is not None and not asked.get("as_is"):
        body = takes.model_validate(body)
    arguments = [*asked.get("path", []), *([] if body is None else [body])]
    with CyclesClient(config(asked)) as client:
        return answered(getattr(client, asked["method"])(*arguments, **asked.get("query", {})), gives)


def answered(answer: CyclesResponse, gives: Any) -> Said:
    """`reads`: the client's own model took every field of it."""
    said: Said = {"status": answer.status, "body": answer.body, "headers": answer.headers}
    if answer.is_success:
        said["reads"] = gives.model_validate(answer.body).model_dump(mode="json", exclude_unset=True) == answer.body
    return said


# --- a guarded call ---------------------------------------------------------------------------------------------------


def work(asked: Asked, said: Said) -> str:
    """What is guarded."""
    context = get_cycles_context()
    assert context is not None
    said["reservation"] = context.reservation_id
    if asked["work"] == "raises":
        raise ProviderFailed
    if asked["work"] == "waits":
        until(Path(asked["gate"]).exists)
    began_with = context.expires_at_ms
    with CyclesClient(config(asked)) as client:
        if asked["work"] == "outlives":
            until(lambda: client.get_reservation(context.reservation_id).status == 410)
        if asked["work"] == "is extended":
            until(lambda: expiry(client, context.reservation_id) > began_with)
            said["extended_by_ms"] = expiry(client, context.reservation_id) - began_with
    return "an answer"


def expiry(client: CyclesClient, reservation: str) -> int:
    return ReservationDetail.model_validate(client.get_reservation(reservation).body).expires_at_ms


def ending(asked: Asked, said: Said) -> Said:
    """The journal is part of what a caller sees: what is in it is not told yet."""
    until(lambda: nothing_pending(asked))
    return said


def guarding(asked: Asked, client: CyclesClient | AsyncCyclesClient) -> Any:
    """The decorator, for this call."""
    return cycles(
        asked["estimate"], actual=asked.get("actual"), action_kind=ACTION["kind"], action_name=ACTION["name"],
        ttl_ms=asked.get("ttl_ms", 60_000), grace_period_ms=asked.get("grace_period_ms"),
        dry_run=asked.get("dry_run", False), client=client,
    )  # fmt: skip


def streaming(asked: Asked, client: CyclesClient | AsyncCyclesClient) -> Any:
    """The context manager, for this call."""
    return client.stream_reservation(
        action=Action(**ACTION), estimate=Amount(unit=Unit.USD_MICROCENTS, amount=asked["estimate"]),
        ttl_ms=asked.get("ttl_ms", 60_000), grace_period_ms=asked.get("grace_period_ms"),
        cost_fn=lambda usage: usage.tokens_output * asked["a_token"],
    )  # fmt: skip


def decorated(asked: Asked) -> Said:
    said: Said = {}
    with CyclesClient(config(asked)) as client:
        try:
            returned = guarding(asked, client)(lambda: work(asked, said))()
            said["returned"] = returned if isinstance(returned, str) else returned.model_dump(mode="json")
        except ProviderFailed:
            said["failed"] = True
        except CyclesProtocolError as error:
            said |= raised(error)
        return ending(asked, said)


def streamed(asked: Asked) -> Said:
    said: Said = {}
    with CyclesClient(config(asked)) as client:
        try:
            with streaming(asked, client) as reservation:
                for _ in range(asked["tokens"]):
                    reservation.usage.add_output_tokens(1)
                said["returned"] = work(asked, said)
        except ProviderFailed:
            said["failed"] = True
        except CyclesProtocolError as error:
            said |= raised(error)
        return ending(asked, said)


async def awaiting_decorated(asked: Asked) -> Said:
    said: Said = {}
    async with AsyncCyclesClient(config(asked)) as client:

        async def model() -> str:
            return await asyncio.to_thread(work, asked, said)

        try:
            said["returned"] = await guarding(asked, client)(model)()
        except ProviderFailed:
            said["failed"] = True
        except CyclesProtocolError as error:
            said |= raised(error)
        await asyncio.to_thread(ending, asked, said)
    return said


async def awaiting_streamed(asked: Asked) -> Said:
    said: Said = {}
    async with AsyncCyclesClient(config(asked)) as client:
        try:
            async with streaming(asked, client) as reservation:
                for _ in range(asked["tokens"]):
                    reservation.usage.add_output_tokens(1)
                said["returned"] = await asyncio.to_thread(work, asked, said)
        except ProviderFailed:
            said["failed"] = True
        except CyclesProtocolError as error:
            said |= raised(error)
        await asyncio.to_thread(ending, asked, said)
    return said


# --- many -------------------------------------------------------------------------------------------------------------


def crowd(asked: Asked) -> Said:
    """As many guarded calls as are asked for, one after the other, whatever becomes of each."""
    said = {"answered": 0, "refused": 0}
    with CyclesClient(config(asked)) as client:
        guarded = guarding(asked, client)(lambda: "an answer")
        for _ in range(asked["calls"]):
            try:
                guarded()
                said["answered"] += 1
            except CyclesProtocolError as error:
                if not error.is_budget_exceeded():
                    raise
                said["refused"] += 1
    return ending(asked, said)


if __name__ == "__main__":
    answer_lines(
        {
            "cycles": {
                "call": call,
                "decorated": decorated,
                "streamed": streamed,
                "decorated-async": lambda asked: asyncio.run(awaiting_decorated(asked)),
                "streamed-async": lambda asked: asyncio.run(awaiting_streamed(asked)),
                "crowd": crowd,
            }
        }
    )
