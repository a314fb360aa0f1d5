"""`asks-and-outcomes.md`: the words on the stream, from the Structs that are stored and their docstrings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import msgspec
from reference.markdown import page, prose, table
from reference.sources import annotations

from engine.core import messages, plan
from engine.core.messages import AnyAsk, AnyOutcome

PARTS = (
    messages.Option, messages.KnownUse, messages.Line, messages.Left, messages.Dropped, messages.Raised,
    messages.AskMessage, messages.Told, messages.Entry, messages.Lapsed, messages.Seal, messages.SealedBudget,
    plan.Plan, plan.Budget, plan.Tiers, plan.Tier, plan.Guard,
)  # fmt: skip
WORDS = ("Amounts", "HoldState", "Why", "Flag", "LapsePolicy")

_BEGINS = """
What is stored, for whoever reads the record: a field may be added with a default, none is ever renamed, retyped or
removed. Amounts are integers of a unit's smallest part, moments are ns since 1970 (UTC) by the stream's clock. A field
that has its default is left out. How the same things look over HTTP: [http.md](http.md).
"""


def asks_page() -> str:
    asks, outcomes = get_args(AnyAsk), get_args(AnyOutcome)
    return page(
        "Asks and outcomes",
        _BEGINS,
        "## Asks",
        table(("ask", "meaning"), [(f"[`{_tag(one)}`](#{_tag(one)}-ask)", _first(one)) for one in asks]),
        *(part for one in asks for part in _struct(one, f"{_tag(one)} (ask)")),
        "## Outcomes",
        table(("outcome", "meaning"), [(f"[`{_tag(one)}`](#{_tag(one)}-outcome)", _first(one)) for one in outcomes]),
        *(part for one in outcomes for part in _struct(one, f"{_tag(one)} (outcome)")),
        "## Their parts, and what carries them",
        *(part for one in PARTS for part in _struct(one, one.__name__)),
        "## Words",
        table(("word", "values"), [(f"`{name}`", _word(name)) for name in WORDS]),
    )


def _tag(kind: type[msgspec.Struct]) -> str:
    return str(kind.__struct_config__.tag)


def _first(kind: type[msgspec.Struct]) -> str:
    assert kind.__doc__, kind
    return prose(kind.__doc__).partition("\n")[0].partition(". ")[0].removesuffix(".")


def _struct(kind: type[msgspec.Struct], heading: str) -> Iterator[str]:
    yield f"### {heading}"
    yield prose(kind.__doc__)
    written = annotations(kind)
    fields = msgspec.structs.fields(kind)
    yield table(
        ("field", "type", "default"),
        [(f"`{one.encode_name}`", f"`{written.get(one.name, one.name)}`", _default(one)) for one in fields],
    )


def _default(one: msgspec.structs.FieldInfo) -> str:
    if one.required:
        return "required"
    value = one.default if one.default is not msgspec.NODEFAULT else one.default_factory()  # type: ignore[operator]
    return "absent" if value is msgspec.UNSET else f"`{value!r}`"


def _word(name: str) -> str:
    if name == "Amounts":
        return "unit -> integer of its smallest part"
    values = get_args(getattr(messages, name, None) or getattr(plan, name))
    return ", ".join(f"`{value}`" for value in values)
