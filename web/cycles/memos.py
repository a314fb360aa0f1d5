"""What is left with asks, so that any web process can answer for them: keys, digests, what a reservation was for.

These stand on the record. A field may be added with a default; none is ever renamed, retyped or removed.
"""

from __future__ import annotations

import msgspec

from engine.core.limits import MEMO_CHARS_MAX
from web.cycles.refusals import invalid
from web.cycles.requests import Action, Subject, Unit


class Reserve(msgspec.Struct, frozen=True, tag_field="cycles", tag="reserve", omit_defaults=True):
    """Of a hold. `digest`: of the request; `subject`, `action`: as they were sent; `each`: of our parts in its unit."""

    key: str
    digest: str
    subject: Subject
    action: Action
    unit: Unit
    each: int
    ttl_ms: int
    grace_ms: int


class Extend(msgspec.Struct, frozen=True, tag_field="cycles", tag="extend", omit_defaults=True):
    """Of a renewal. `expires_at_ms`: what the caller was told."""

    key: str
    digest: str
    expires_at_ms: int


class Ended(msgspec.Struct, frozen=True, tag_field="cycles", tag="ended", omit_defaults=True):
    """Of a settle. `by`: the request that it was."""

    by: str
    key: str
    digest: str


def memo_of(said: Reserve | Extend | Ended) -> str:
    """Raises `Refused` 400 for more than fits."""
    memo = msgspec.json.encode(said).decode()
    if len(memo) > MEMO_CHARS_MAX:
        raise invalid("subject.dimensions", f"subject and action have at most {MEMO_CHARS_MAX} characters together")
    return memo


reserves = msgspec.json.Decoder(Reserve)
extends = msgspec.json.Decoder(Extend)
endings = msgspec.json.Decoder(Ended)
