"""What a reservation and an event are called, outside and on the stream. All follows from tenant and idempotency key.

So any web process finds a reservation again by its key, and none keeps anything. A reservation's id also says in which
ask message it was held: a process that did not hear it waits for the projector to have folded that one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

_RESERVATION = re.compile(r"rsv_([0-9a-f]{16})_([0-9a-f]{32})_([1-9][0-9]{0,18})", re.ASCII)


def tenant_mark(tenant: str) -> str:
    return blake2b(tenant.encode(), digest_size=8).hexdigest()


def key_mark(key: str) -> str:
    return blake2b(key.encode(), digest_size=16).hexdigest()


def namespace(tenant: str) -> str:
    """In which a tenant's reservations lie on the stream. No caller of the wallet's own API can name anything there."""
    return f"cycles.{tenant_mark(tenant)}"


def hold_of(tenant: str, key: str) -> str:
    return f"{namespace(tenant)}/{key_mark(key)}"


def event_of(tenant: str, key: str) -> str:
    return f"cycles-events.{tenant_mark(tenant)}/{key_mark(key)}"


def event_id(on_stream: str) -> str:
    """As the caller knows it."""
    mark, key = on_stream.removeprefix("cycles-events.").split("/")
    return f"evt_{mark}_{key}"


@dataclass(frozen=True, slots=True)
class ReservationId:
    tenant: str
    """Its mark."""
    key: str
    """Its mark."""
    seq: int

    @classmethod
    def read(cls, written: str) -> ReservationId | None:
        found = _RESERVATION.fullmatch(written)
        return cls(found[1], found[2], int(found[3])) if found is not None else None

    @classmethod
    def of(cls, hold: str, seq: int) -> ReservationId:
        """Of a hold on the stream."""
        tenant, key = hold.removeprefix("cycles.").split("/")
        return cls(tenant, key, seq)

    @property
    def hold(self) -> str:
        return f"cycles.{self.tenant}/{self.key}"

    @property
    def beside(self) -> str:
        return f"cycles-released.{self.tenant}/{self.key}-{self.seq}"

    def __str__(self) -> str:
        return f"rsv_{self.tenant}_{self.key}_{self.seq}"
