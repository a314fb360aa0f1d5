"""Metrics as OpenMetrics text. It writes what it is given and knows nothing of a wallet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

MEDIA_TYPE = "application/openmetrics-text"
CONTENT_TYPE = f"{MEDIA_TYPE}; version=1.0.0; charset=utf-8"

Labels = Mapping[str, str]
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


@dataclass(frozen=True, slots=True)
class Kind:
    """One metric: its name without suffix, its type, what it says. The unit, if any, is the name's last word.

    `labels`: those that every value of it has.
    """

    name: str
    type: Literal["counter", "gauge", "histogram"]
    says: str
    labels: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The name a query uses."""
        return f"{self.name}_total" if self.type == "counter" else self.name


@dataclass(frozen=True, slots=True)
class Histogram:
    """`counts`: one for each of the `bounds`, ascending, and one for what is above them all."""

    bounds: list[float]
    counts: list[int]
    sum: float


@dataclass(slots=True)
class Family:
    """A metric with its values, each under labels of its own."""

    kind: Kind
    values: list[tuple[Labels, float | Histogram]] = field(default_factory=list)


def text(families: Iterable[Family]) -> str:
    """All of them, and the end."""
    return "\n".join([*(line for family in families for line in _lines(family)), "# EOF", ""])


def _lines(family: Family) -> Iterator[str]:
    kind = family.kind
    yield f"# TYPE {kind.name} {kind.type}"
    yield f"# HELP {kind.name} {kind.says.translate(_ESCAPED)}"
    for labels, value in family.values:
        if isinstance(value, Histogram):
            yield from _histogram(kind.name, labels, value)
        else:
            yield f"{kind.shown}{_braced(labels)} {_number(value)}"


def _histogram(name: str, labels: Labels, value: Histogram) -> Iterator[str]:
    below = 0
    for bound, count in zip([*map(_bound, value.bounds), "+Inf"], value.counts, strict=True):
        below += count
        yield f"{name}_bucket{_braced({**labels, 'le': bound})} {below}"
    yield f"{name}_count{_braced(labels)} {below}"
    yield f"{name}_sum{_braced(labels)} {_number(value.sum)}"


def _bound(bound: float) -> str:
    return repr(float(bound))


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))


def _braced(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in labels.items()) + "}"
