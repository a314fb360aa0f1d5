"""Schemathesis reads `/openapi.json` and sends what it allows, and what it does not: each answer must be as it says.

The examples of an operation are drawn alike in every run. Live streams, which never end, are left out.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from api_document import DOCUMENT
from desk_client import KEY, open_desk
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from projector.audit.looking import Look, Seen, SeenLife

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 12  # of each operation and each way to draw them
WAIT_S = 60.0
OPERATIONS = [
    found.ok()
    for found in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations()
    if "text/event-stream" not in str(found.ok().definition.raw["responses"])
]
WITH_INPUT = [one for one in OPERATIONS if one.body or one.query]
"""Of which something can be wrong beside the address."""


def named(operation: Any) -> str:
    return f"{operation.method.upper()} {operation.path}"


async def looking(_: Look) -> Seen:
    """Nothing is found, and no process is begun for it."""
    return Seen(life=SeenLife([], 0, 0, 0, 0))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Of the application over a wallet with figures, in a thread of its own: these clients wait for each answer."""
    ready, over = threading.Event(), asyncio.Event()
    address: list[Any] = []

    async def serve() -> None:
        async with open_desk(open=True, looking=looking) as desk:
            await desk.purse.show()
            address.extend([str(desk.client.make_url("/")).rstrip("/"), asyncio.get_running_loop()])
            ready.set()
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(WAIT_S)
    yield address[0]
    address[1].call_soon_threadsafe(over.set)
    thread.join(WAIT_S)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "not-allowed"])
@pytest.mark.parametrize("operation", WITH_INPUT, ids=named)
def test_whatever_is_sent_is_answered_as_the_document_says(url: str, operation: Any, mode: GenerationMode) -> None:
    hold_against_document(url, operation, mode)


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one not in WITH_INPUT], ids=named)
def test_whatever_is_asked_is_answered_as_the_document_says(url: str, operation: Any) -> None:
    hold_against_document(url, operation, GenerationMode.POSITIVE)


def hold_against_document(url: str, operation: Any, mode: GenerationMode) -> None:
    @given(case=operation.as_strategy(mode))
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def holds(case: Any) -> None:
        answer = case.call(base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=WAIT_S)
        case.validate_response(answer, checks=CHECKS)

    holds()
