"""The protocol's document as its client brings it along, and what of the wallet's answers stands in no such document.

A departure changes the document before a server is held against it, so all that is not listed here must be as it says.
`docs/guides/cycles-clients.md` shows the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from sdk.clients import FETCHED

FIXTURE = FETCHED / "cycles-source" / "runcycles" / "tests" / "fixtures" / "cycles-protocol-v0.yaml"
Document = dict[str, Any]

LEVELS = ("workspace", "app", "workflow", "agent", "toolset")
"""Of a subject, below its tenant."""

KEY_HEADER = {"$ref": "#/components/parameters/IdempotencyKeyHeader"}
RESERVATION_ID = {"$ref": "#/components/parameters/ReservationId"}
CURSOR = {"$ref": "#/components/parameters/Cursor"}
ERROR = {"$ref": "#/components/responses/ErrorResponse"}


@dataclass(frozen=True)
class Departure:
    """`does`: what the document does not say of `where`; `amend` makes it say that."""

    where: str
    does: str
    why: str
    amend: Callable[[Document], None]


def _malformed_is_400(document: Document) -> None:
    for method, path in (
        ("post", "/v1/reservations/{reservation_id}/release"),
        ("get", "/v1/reservations/{reservation_id}"),
    ):
        document["paths"][path][method]["responses"]["400"] = ERROR


def _remaining(document: Document) -> None:
    for schema in ("ReservationCreateResponse", "ReservationExtendResponse"):
        shape = {"type": "integer", "format": "int64", "minimum": 0}
        document["components"]["schemas"][schema]["properties"]["remaining_ttl_ms"] = shape


def _any_key(document: Document) -> None:
    for parameter in document["paths"]["/v1/reservations"]["get"]["parameters"]:
        if parameter.get("name") == "idempotency_key":
            parameter["schema"] = {"type": "string"}


DEPARTURES = (
    Departure(
        "release, and a reservation by its id",
        "400 for what is malformed",
        "every other request has it",
        _malformed_is_400,
    ),
    Departure(
        "the list of reservations",
        "an `idempotency_key` of any length: nothing has been reserved under most, and an empty one filters nothing",
        "later versions of the protocol say the second of every filter",
        _any_key,
    ),
    Departure(
        "reserve, extend",
        "`remaining_ttl_ms` in the answer",
        "later versions of the protocol have it, and the client schedules by it",
        _remaining,
    ),
)


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


def anything(said: Document, tenant: str, reservations: list[str]) -> Document:
    """The same document. Where any tenant and any reservation could be named, it now names those that are there.

    Each operation has reservations of its own. Without the header that must say what the body says: drawn beside it, it
    never does.
    """
    said["components"]["schemas"]["Subject"]["properties"]["tenant"] = {"const": tenant}
    about = [operation for operation in operations(said) if RESERVATION_ID in operation["parameters"]]
    for number, operation in enumerate(about):
        own = {
            **said["components"]["parameters"]["ReservationId"],
            "schema": {"enum": reservations[number :: len(about)]},
        }
        operation["parameters"] = [own if each == RESERVATION_ID else each for each in operation["parameters"]]
    for operation in operations(said):
        operation["parameters"] = [each for each in operation["parameters"] if each != KEY_HEADER]
    return said


def what_fits(said: Document, tenant: str, reservations: list[str]) -> Document:
    """The same, narrowed to what this wallet grants: its tenant, these reservations, small amounts of its dollars."""
    anything(said, tenant, reservations)
    schemas = said["components"]["schemas"]
    level = {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,128}$"}
    schemas["Subject"]["properties"] |= dict.fromkeys(LEVELS, level)
    asked = {"unit": {"const": "USD_MICROCENTS"}, "amount": {"type": "integer", "minimum": 0, "maximum": 1_000}}
    schemas["AskedAmount"] = {**schemas["Amount"], "properties": asked}
    for name in ("DecisionRequest", "ReservationCreateRequest", "CommitRequest", "EventCreateRequest"):
        for member in {"estimate", "actual"} & schemas[name]["properties"].keys():
            schemas[name]["properties"][member] = {"$ref": "#/components/schemas/AskedAmount"}
    for operation in operations(said):
        operation["parameters"] = [each for each in operation["parameters"] if each != CURSOR]
        for parameter in operation["parameters"]:
            if parameter.get("name") in (*LEVELS, "tenant"):
                parameter["schema"] = {"const": tenant} if parameter["name"] == "tenant" else level
    return said


def operations(said: Document) -> Iterator[Document]:
    for methods in said["paths"].values():
        yield from methods.values()
