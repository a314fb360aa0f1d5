"""The bodies that clients of Cycles send, as its specification has them. A field that is not in it is refused."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Annotated, Literal, TypeVar

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from engine.core.limits import AMOUNT_MAX
from web.bodies import bad_shape, read_json
from web.cycles.refusals import invalid

IDEMPOTENCY_KEY = "X-Idempotency-Key"

TTL_MS_DEFAULT = 60_000
GRACE_MS_DEFAULT = 5_000
DIMENSION_CHARS_MAX = 64  # of a name; the specification has no limit, and what is kept needs one

Unit = Literal["USD_MICROCENTS", "TOKENS", "CREDITS", "RISK_POINTS"]
Policy = Literal["REJECT", "ALLOW_IF_AVAILABLE", "ALLOW_WITH_OVERDRAFT"]

Key = Annotated[str, Meta(min_length=1, max_length=256)]
Level = Annotated[str, Meta(min_length=1, max_length=128)]
Count = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
Dimensions = Annotated[
    dict[Annotated[str, Meta(max_length=DIMENSION_CHARS_MAX)], Annotated[str, Meta(max_length=256)]],
    Meta(max_length=16),
]


class _Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Optional members are left out, never null."""


class Amount(_Shape, frozen=True, kw_only=True):
    unit: Unit
    amount: Count


class Subject(_Shape, frozen=True, kw_only=True):
    """Whose spending it is. `dimensions` come back as they were sent and decide nothing."""

    tenant: Level | UnsetType = UNSET
    workspace: Level | UnsetType = UNSET
    app: Level | UnsetType = UNSET
    workflow: Level | UnsetType = UNSET
    agent: Level | UnsetType = UNSET
    toolset: Level | UnsetType = UNSET
    dimensions: Dimensions | UnsetType = UNSET


class Action(_Shape, frozen=True, kw_only=True):
    kind: Annotated[str, Meta(max_length=64)]
    name: Annotated[str, Meta(max_length=256)]
    tags: Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(max_length=10)] | UnsetType = UNSET


class Metrics(_Shape, frozen=True, kw_only=True):
    """Looked at for their shape alone."""

    tokens_input: Count | UnsetType = UNSET
    tokens_output: Count | UnsetType = UNSET
    latency_ms: Count | UnsetType = UNSET
    model_version: Annotated[str, Meta(max_length=128)] | UnsetType = UNSET
    custom: dict[str, object] | UnsetType = UNSET


class Keyed(_Shape, frozen=True, kw_only=True):
    """What every body has. `metadata` may hold anything, so it is not kept: the record is for others to read."""

    idempotency_key: Key
    metadata: dict[str, object] | UnsetType = UNSET


class DecisionRequest(Keyed, frozen=True, kw_only=True):
    subject: Subject
    action: Action
    estimate: Amount


class ReservationRequest(DecisionRequest, frozen=True, kw_only=True):
    ttl_ms: Annotated[int, Meta(ge=1_000, le=86_400_000)] = TTL_MS_DEFAULT
    grace_period_ms: Annotated[int, Meta(ge=0, le=60_000)] = GRACE_MS_DEFAULT
    overage_policy: Policy | UnsetType = UNSET
    dry_run: bool = False


class CommitRequest(Keyed, frozen=True, kw_only=True):
    actual: Amount
    metrics: Metrics | UnsetType = UNSET


class ReleaseRequest(_Shape, frozen=True, kw_only=True):
    """The one body without `metadata`."""

    idempotency_key: Key
    reason: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET


class ExtendRequest(Keyed, frozen=True, kw_only=True):
    extend_by_ms: Annotated[int, Meta(ge=1, le=86_400_000)]


class EventRequest(Keyed, frozen=True, kw_only=True):
    subject: Subject
    action: Action
    actual: Amount
    overage_policy: Policy | UnsetType = UNSET
    metrics: Metrics | UnsetType = UNSET
    client_time_ms: Count | UnsetType = UNSET


Sent = TypeVar("Sent", DecisionRequest, ReservationRequest, CommitRequest, ReleaseRequest, ExtendRequest, EventRequest)


async def read_request(request: web.Request, kind: type[Sent]) -> tuple[Sent, str]:
    """The body, and what stands for its whole content: two bodies with the same digest say the same.

    Raises `Refused` and `Problem` 400, `BadAsk` with the place of what is wrong.
    """
    written = await read_json(request)
    try:
        body = msgspec.convert(written, kind)
    except msgspec.ValidationError as error:
        raise bad_shape(str(error)) from None
    header = request.headers.get(IDEMPOTENCY_KEY)
    if header is not None and header != body.idempotency_key:
        raise invalid(IDEMPOTENCY_KEY, "differs from the body's idempotency_key")
    return body, digest_of(written)


def digest_of(written: object) -> str:
    canonical = json.dumps(written, sort_keys=True, separators=(",", ":"), default=str)
    return blake2b(canonical.encode(), digest_size=16).hexdigest()
