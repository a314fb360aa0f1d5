"""The protocol as its client brings it along, and where the wallet departs from that text.

A departure changes the document before a server is held against it, so all that is not listed here must be as it says.
`docs/guides/cycles-clients.md` shows the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from sdk.clients import FETCHED
from sdk.cycles_world import TENANT

FIXTURE = FETCHED / "cycles-source" / "runcycles" / "tests" / "fixtures" / "cycles-protocol-v0.yaml"
Document = dict[str, Any]

ERROR = {"$ref": "#/components/responses/ErrorResponse"}


@dataclass(frozen=True)
class Departure:
    """`does`: what the document does not say of `where`; `amend` makes it say that."""

    where: str
    does: str
    why: str
    amend: Callable[[Document], None]


def _also(status: int, *operations: tuple[str, str]) -> Callable[[Document], None]:
    """Error answers of this status too; no operation: all of them."""

    def amend(document: Document) -> None:
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if not operations or (method, path) in operations:
                    operation["responses"].setdefault(str(status), ERROR)

    return amend


def _member(schema: str, name: str, shape: Document) -> Callable[[Document], None]:
    def amend(document: Document) -> None:
        document["components"]["schemas"][schema]["properties"][name] = shape

    return amend


def _code(name: str) -> Callable[[Document], None]:
    def amend(document: Document) -> None:
        document["components"]["schemas"]["ErrorCode"]["enum"].append(name)

    return amend


def _each(*amendments: Callable[[Document], None]) -> Callable[[Document], None]:
    def amend(document: Document) -> None:
        for one in amendments:
            one(document)

    return amend


_REMAINING = {"type": "integer", "format": "int64", "minimum": 0}

DEPARTURES = (
    Departure(
        "release, and a reservation by its id",
        "400 for what is malformed",
        "every other request has it",
        _also(400, ("post", "/v1/reservations/{reservation_id}/release"), ("get", "/v1/reservations/{reservation_id}")),
    ),
    Departure(
        "reserve, extend",
        "`remaining_ttl_ms` in the answer",
        "later versions of the protocol have it, and the client schedules by it",
        _each(
            _member("ReservationCreateResponse", "remaining_ttl_ms", _REMAINING),
            _member("ReservationExtendResponse", "remaining_ttl_ms", _REMAINING),
        ),
    ),
)  # fmt: skip


def rows() -> Iterator[str]:
    """The rows of the table of departures."""
    for departure in DEPARTURES:
        yield f"| {departure.where} | {departure.does} | {departure.why} |"


def document() -> Document:
    """The protocol with every departure in it."""
    said: Document = yaml.safe_load(FIXTURE.read_text())
    for departure in DEPARTURES:
        departure.amend(said)
    return said


def asked_of(said: Document, reservations: list[str]) -> Document:
    """The same, where what is asked for is also what is there: this wallet's tenant, and these reservations."""
    tenant = {"anyOf": [{"const": TENANT}, {"type": "string", "maxLength": 128}]}
    said["components"]["schemas"]["Subject"]["properties"]["tenant"] = {"const": TENANT}
    said["components"]["parameters"]["ReservationId"]["schema"] = {
        "anyOf": [{"enum": reservations}, {"type": "string", "minLength": 1, "maxLength": 128}]
    }
    for path in ("/v1/reservations", "/v1/balances"):
        for parameter in said["paths"][path]["get"]["parameters"]:
            if parameter.get("name") == "tenant":
                parameter["schema"] = tenant
    return said
