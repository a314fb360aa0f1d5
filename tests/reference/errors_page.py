"""`errors.md`: every kind of problem, what the command makes of it, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator

from api_document import DOCUMENT
from reference.markdown import Json, anchor, members, page, prose, table

from commonpurse.commands import EXIT_ERROR, EXIT_REFUSED, EXIT_UNTRUSTED, EXIT_USAGE
from web import problem_shapes
from web.app import _TABLES
from web.openapi import problems_of, statuses_of
from web.problem_shapes import OF_NO_ROUTE, ProblemShape

SCHEMAS: Json = DOCUMENT["components"]["schemas"]
COMMON = {"type", "title", "status", "detail"}

_BEGINS = """
From 400 on the body is `application/problem+json` (RFC 9457). Each has `type` (`/problems/...`), `title`, `status` and
`detail`, a sentence for people; a refusal by the wallet also has `outcome`, `id`, and the `receipt` of the told it
stands in. `Retry-After` comes where trying again helps, `x-should-retry: false` where it cannot; without either it
depends on the caller. What the official clients make of the guarded addresses' own errors: [refusals](../refusals.md).
"""

_EXITS = f"""
## How the command ends

| exit code | when |
|---|---|
| 0 | done, or held |
| {EXIT_ERROR} | nobody answers, the key may not, what was sent cannot be taken; a refusal, but of `hold` and `renew` |
| {EXIT_USAGE} | the command line cannot be understood |
| {EXIT_REFUSED} | `hold` or `renew` was refused: the problem has an `outcome` |
| {EXIT_UNTRUSTED} | the stream cannot be trusted: `/problems/untrusted`, or a proof failed |
"""


def kinds() -> Iterator[type[ProblemShape]]:
    """Every kind of problem, in the order of their sections."""
    for kind in vars(problem_shapes).values():
        if isinstance(kind, type) and issubclass(kind, ProblemShape) and kind.__name__.endswith("Problem"):
            yield kind


def errors_page() -> str:
    rows = [_row(kind) for kind in kinds()]
    head = ("kind", "type", "status", "outcome", "header", "meaning")
    parts = [part for kind in kinds() for part in _kind(kind)]
    return page("Errors", _BEGINS, table(head, rows), _EXITS, "## Each kind", *parts)


def _row(kind: type[ProblemShape]) -> tuple[str, ...]:
    name, schema = _name(kind), SCHEMAS[kind.__name__]
    return (
        f"[`{name}`]({anchor(name)})", f"`{_only(schema, 'type')}`", ", ".join(map(str, statuses_of(kind))),
        _outcome(schema), ", ".join(f"`{header}`" for header in kind.headers), _first(schema["description"]),
    )  # fmt: skip


def _kind(kind: type[ProblemShape]) -> Iterator[str]:
    schema = SCHEMAS[kind.__name__]
    routes = [route for route in _TABLES if kind in problems_of(route)]
    yield f"### {_name(kind)}"
    yield prose(schema["description"])
    own = {name: of for name, of in schema["properties"].items() if name not in COMMON}
    yield members({**schema, "properties": own}).replace("](#", "](http.md#")
    if kind in OF_NO_ROUTE and not routes:
        yield "Of an address that does not take the method."
    elif len(routes) == len(_TABLES):
        yield "Of every route."
    else:
        yield "Of " + ", ".join(f"[`{route.named}`](http.md{anchor(route.named)})" for route in routes) + "."


def _name(kind: type[ProblemShape]) -> str:
    return kind.__name__.removesuffix("Problem")


def _only(schema: Json, member: str) -> str:
    of = schema["properties"].get(member, {})
    [value] = of.get("enum", [of.get("const")])
    return str(value)


def _outcome(schema: Json) -> str:
    if "outcome" not in schema["properties"]:
        return ""
    why = schema["properties"].get("why", {})
    return f"`{_only(schema, 'outcome')}`" + (f", `{_only(schema, 'why')}`" if "enum" in why else "")


def _first(description: str) -> str:
    return prose(description).partition(". ")[0].removesuffix(".")
