"""One alert: what is said, and the figures it is said of. The same on every projector that folds the same record."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

RuleName: TypeAlias = Literal[
    "percent", "refused", "burst", "runaway", "lapse", "conflict", "guard", "loss", "unreadable", "silent", "test"
]
RULES: tuple[RuleName, ...] = get_args(RuleName)


class Alert(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """`at` is stream time, `seq` the ask message whose entry raised it (0: nothing on the record did).

    `figures` are decimal strings of `unit`. `freezes`: why the budget is to be frozen; "" if it is not.
    """

    id: str
    rule: RuleName
    text: str
    at: int
    seq: int = 0
    budget: str = ""
    period: str = ""
    threshold: str = ""
    unit: str = ""
    figures: dict[str, str] = {}
    freezes: str = ""


def alert_id(rule: RuleName, subject: str, period: str, threshold: str) -> str:
    """`alert:percent:jev:2026-11-30:75`. `subject`: a budget, a guard, or nothing."""
    return f"alert:{rule}:{subject}:{period}:{threshold}"
