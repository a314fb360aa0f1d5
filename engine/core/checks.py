"""What an ask alone can show to be wrong. Each check names the field and what is allowed, never the value.

The same checks run at the door, before an ask reaches the stream, and in `decide`, because not everyone who may
publish came through the door. Only what `plan` and `at` can tell is looked at; nothing here reads the wallet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from engine.core import limits
from engine.core.limits import AMOUNT_MAX
from engine.core.messages import (
    Adjust,
    Amounts,
    Clock,
    Freeze,
    Hold,
    Invalid,
    Loss,
    Observe,
    Option,
    Renew,
    Restore,
    Revoke,
    Settle,
    Thaw,
)
from engine.core.plan import LABEL, Plan

NS = 1_000_000_000

Wrong: TypeAlias = tuple[str, str]
"""The field, and what is allowed there."""

_ID = re.compile(rf"[A-Za-z0-9._:/-]{{1,{limits.ID_CHARS_MAX}}}", re.ASCII)
_ID_RULE = f"an id is 1 to {limits.ID_CHARS_MAX} of A-Z a-z 0-9 . _ : / -"
_NUMBER_RULE = f"expected a whole number from 0 to {AMOUNT_MAX}"
_AMOUNT_RULE = f"expected a whole number from 0 to {AMOUNT_MAX} of the unit's smallest part"


def refuse(id: str, wrong: Wrong) -> Invalid:
    """The outcome for a wrong ask. An id too long to be one is cut, so that no ask makes a large outcome."""
    return Invalid(id[: limits.ID_CHARS_MAX], *wrong)


def hold(ask: Hold, plan: Plan, at: int) -> Wrong | None:
    """What is wrong with a hold, or None."""
    if not _ID.fullmatch(ask.id):
        return "id", _ID_RULE
    if not 1 <= len(ask.options) <= limits.OPTIONS_MAX:
        return "options", f"expected 1 to {limits.OPTIONS_MAX} options"
    for option in ask.options:
        wrong = _option(option, plan.units)
        if wrong is not None:
            return wrong
    if ask.ttl_s is not None and not plan.ttl_s_min <= ask.ttl_s <= plan.ttl_s_max:
        return "ttl_s", f"expected {plan.ttl_s_min} to {plan.ttl_s_max} seconds"
    if not 0 < ask.by <= at + limits.BY_AHEAD_S_MAX * NS:
        return "by", f"expected a moment at most {limits.BY_AHEAD_S_MAX} s ahead, in ns of stream time"
    if len(ask.price_book) > limits.LABEL_VALUE_CHARS_MAX:
        return "price_book", f"at most {limits.LABEL_VALUE_CHARS_MAX} characters"
    return labels(ask.labels) if ask.labels else None


def settle(ask: Settle, scales: Mapping[str, int], *, known: bool = False) -> Wrong | None:
    """What is wrong with a settle, or None. `scales` names every unit the wallet ever knew.

    `known`: there is such a hold, so its id was looked at when it was made.
    """
    if not known and not _ID.fullmatch(ask.hold):
        return "hold", _ID_RULE
    if ask.id and not _ID.fullmatch(ask.id):
        return "id", _ID_RULE
    if ask.release:
        if ask.amounts:
            return "amounts", "a release carries no amounts"
        if not ask.final or ask.estimated:
            return "release", "a release is final and exact"
    elif not ask.amounts:
        return "amounts", "expected at least one amount; to give everything back, release"
    if ask.held_at is not None and not 0 <= ask.held_at <= AMOUNT_MAX:
        return "held_at", _NUMBER_RULE
    if ask.by is not None and not 0 <= ask.by <= AMOUNT_MAX:
        return "by", _NUMBER_RULE
    wrong = amounts("amounts", ask.amounts, scales) if ask.amounts else None
    return wrong or (labels(ask.labels) if ask.labels else None)


def renew(ask: Renew, plan: Plan, scales: Mapping[str, int]) -> Wrong | None:
    if not _ID.fullmatch(ask.hold):
        return "hold", _ID_RULE
    if not 1 <= ask.n <= AMOUNT_MAX:
        return "n", "renewals count 1, 2, 3 ..."
    if ask.ttl_s is not None and not plan.ttl_s_min <= ask.ttl_s <= plan.ttl_s_max:
        return "ttl_s", f"expected {plan.ttl_s_min} to {plan.ttl_s_max} seconds"
    return amounts("amounts", ask.amounts, scales) if ask.amounts else None


def observe(ask: Observe, at: int) -> Wrong | None:
    if not _ID.fullmatch(ask.id):
        return "id", _ID_RULE
    if not 0 <= ask.figure <= AMOUNT_MAX:
        return "figure", _AMOUNT_RULE
    if not 0 <= ask.as_of <= at:
        return "as_of", "a figure is not from the future"
    return None


def adjust(ask: Adjust) -> Wrong | None:
    if not _ID.fullmatch(ask.id):
        return "id", _ID_RULE
    if not -AMOUNT_MAX <= ask.amount <= AMOUNT_MAX:
        return "amount", f"expected a whole number from -{AMOUNT_MAX} to {AMOUNT_MAX}"
    if ask.hold is not None and not _ID.fullmatch(ask.hold):
        return "hold", _ID_RULE
    return _texts(("reason", ask.reason), ("by_whom", ask.by_whom))


def switch(ask: Freeze | Thaw | Revoke | Restore) -> Wrong | None:
    """Freeze, thaw, revoke and restore."""
    if not _ID.fullmatch(ask.id):
        return "id", _ID_RULE
    if isinstance(ask, Freeze) and ask.until is not None and not 0 <= ask.until <= AMOUNT_MAX:
        return "until", _NUMBER_RULE
    if isinstance(ask, Revoke | Restore):
        wrong = labels({ask.label: ask.value})
        if wrong is not None:
            return ("label", wrong[1])
    return _texts(("reason", ask.reason), ("by_whom", ask.by_whom))


def loss(ask: Loss) -> Wrong | None:
    """What is wrong with a loss, as far as it alone shows."""
    if not _ID.fullmatch(ask.id):
        return "id", _ID_RULE
    if not 1 <= ask.from_seq <= ask.to_seq <= AMOUNT_MAX:
        return "to_seq", "expected sequences from 1 on, the first one first"
    if len(ask.used) > limits.LOSS_METERS_MAX:
        return "used", f"at most {limits.LOSS_METERS_MAX} meters"
    if len({(known.budget, known.each, known.period) for known in ask.used}) < len(ask.used):
        return "used", "each meter once"
    if not all(0 <= known.used <= AMOUNT_MAX for known in ask.used):
        return "used", _AMOUNT_RULE
    if len(ask.freeze) > limits.BUDGETS_MAX:
        return "freeze", f"at most {limits.BUDGETS_MAX} budgets"
    return _texts(("reason", ask.reason), ("by_whom", ask.by_whom))


def clock(ask: Clock) -> Wrong | None:
    """What is wrong with a clock."""
    if not _ID.fullmatch(ask.id):
        return "id", _ID_RULE
    if not 0 <= ask.start < ask.end <= AMOUNT_MAX:
        return "to", "expected two moments in ns of stream time, the earlier one first"
    return _texts(("reason", ask.reason), ("by_whom", ask.by_whom))


def scope(written: str, budgets: Iterable[str]) -> Wrong | None:
    """A scope is `all`, the name of a budget, or `label=value`."""
    if written == "all" or written in budgets:
        return None
    label, equals, value = written.partition("=")
    if equals and labels({label: value}) is None:
        return None
    return "scope", 'expected "all", the name of a budget of the plan, or "label=value"'


def plan_id(id: str) -> Wrong | None:
    return None if _ID.fullmatch(id) else ("id", _ID_RULE)


def labels(said: Mapping[str, str]) -> Wrong | None:
    """Names and values of labels."""
    if len(said) > limits.LABELS_MAX:
        return "labels", f"at most {limits.LABELS_MAX} labels"
    for name, value in said.items():
        if not _is_label(name):
            return "labels", f"a label's name is {LABEL.pattern}"
        if not 1 <= len(value) <= limits.LABEL_VALUE_CHARS_MAX or not value.isprintable():
            return f"labels.{name}", f"expected 1 to {limits.LABEL_VALUE_CHARS_MAX} printable characters"
    return None


@lru_cache(maxsize=1_024)  # the same few names come with every hold
def _is_label(name: str) -> bool:
    return LABEL.fullmatch(name) is not None


def amounts(field: str, said: Amounts, units: Mapping[str, int]) -> Wrong | None:
    """Amounts by unit: known units, whole numbers in range."""
    if len(said) > limits.ASK_UNITS_MAX:
        return field, f"at most {limits.ASK_UNITS_MAX} units"
    for unit, amount in said.items():
        if unit not in units:
            return field, f"unknown unit; this wallet knows {', '.join(sorted(units))}"
        if not 0 <= amount <= AMOUNT_MAX:
            return f"{field}.{unit}", _AMOUNT_RULE
    return None


def _option(option: Option, units: Mapping[str, int]) -> Wrong | None:
    if not option.amounts:
        return "options", "an option names at least one amount; zero must be said"
    wrong = amounts("amounts", option.amounts, units)
    if wrong is not None:
        return wrong
    if option.least:
        for unit, least in option.least.items():
            if not 0 <= least <= option.amounts.get(unit, -1):
                return f"least.{unit}"[:64], "expected 0 to the option's amount of that unit"
    if option.grade is not None and not 0 <= option.grade <= AMOUNT_MAX:
        return "grade", "a grade is 0, 1, 2 ..."
    return ("name", f"at most {limits.NAME_CHARS_MAX} characters") if len(option.name) > limits.NAME_CHARS_MAX else None


def _texts(*said: tuple[str, str]) -> Wrong | None:
    for field, text in said:
        if len(text) > limits.TEXT_CHARS_MAX or not text.isprintable():
            return field, f"at most {limits.TEXT_CHARS_MAX} printable characters"
    return None
