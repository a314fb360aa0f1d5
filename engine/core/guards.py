"""Guards: what a plan does about a storm of retries, a session that does not end, a key that has leaked.

A guard counts what came to the budgets (told `held` or `exhausted`) under one label's value. What it sets off stands in
the outcome, so whoever folds outcomes has the same state. It knows no money and never touches what is held.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from engine.core.limits import GUARD_LETS_GO_MAX, GUARD_VALUES_MAX
from engine.core.plan import Guard, GuardAction, Plan

NS = 1_000_000_000

Window: TypeAlias = list[int] | dict[str, int]
"""The moments that were counted, or the different values with when each was last seen; the oldest first."""


class Cooled(msgspec.Struct, frozen=True, gc=False):
    """A label's value that takes no new holds before `until`, and the guard that said so."""

    until: int
    guard: str


class Watch:
    """One guard of the plan in force and its windows by the label's value, the one counted last at the end.

    A window has at most `more_than` entries: one more sets the guard off, which empties it.
    """

    __slots__ = ("guard", "name", "windows")

    def __init__(self, name: str, guard: Guard) -> None:
        self.name, self.guard = name, guard
        self.windows: OrderedDict[str, Window] = OrderedDict()

    def sees(self, labels: Mapping[str, str]) -> bool:
        """Whether a hold with these labels counts here."""
        guard = self.guard
        return guard.label in labels and (guard.distinct is None or guard.distinct in labels)

    def goes_off(self, labels: Mapping[str, str], at: int) -> bool:
        """Whether a hold with these labels at `at` would be one more than the plan allows. Changes nothing."""
        if not self.sees(labels):
            return False
        window = self.windows.get(labels[self.guard.label])
        if window is None or len(window) < self.guard.more_than:
            return False
        if isinstance(window, dict) and labels[self.guard.distinct or ""] in window:
            return False
        return _oldest(window) > at - self.guard.within_s * NS

    def count(self, labels: Mapping[str, str], at: int) -> None:
        """Count one hold that did not set the guard off. Beyond the limit of values a new one is not counted."""
        if not self.sees(labels):
            return
        value = labels[self.guard.label]
        window = self.windows.get(value)
        if window is None:
            self._let_go(at, most=1)
            if len(self.windows) >= GUARD_VALUES_MAX:
                return
            window = self.windows[value] = [] if self.guard.distinct is None else {}
        if isinstance(window, dict):
            other = labels[self.guard.distinct or ""]
            window.pop(other, None)
            window[other] = at
        else:
            window.append(at)
        if len(window) > self.guard.more_than:  # the oldest has aged out, or the guard would have gone off
            _drop_oldest(window)
        self.windows.move_to_end(value)

    def forget(self, value: str) -> None:
        """Begin again with this value: the guard has gone off for it."""
        self.windows.pop(value, None)

    def let_go(self, at: int) -> None:
        """Free windows in which nothing counts any more. One that is left a while longer changes no decision."""
        self._let_go(at, most=GUARD_LETS_GO_MAX)

    def _let_go(self, at: int, *, most: int) -> None:
        begin = at - self.guard.within_s * NS
        while self.windows and most > 0:
            window = next(iter(self.windows.values()))
            if _newest(window) > begin:
                return
            self.windows.popitem(last=False)
            most -= 1

    def reason(self) -> str:
        """Why a value was revoked, for whoever is refused."""
        guard = self.guard
        what = "holds" if guard.distinct is None else f"values of {guard.distinct}"
        return f"guard {self.name}: more than {guard.more_than} {what} within {guard.within_s} s"

    def dump(self) -> dict[str, object]:
        """As a snapshot has it; `load` reads it."""
        return {"name": self.name, "windows": list(self.windows.items())}

    def load(self, windows: Iterable[tuple[str, Window]]) -> None:
        self.windows = OrderedDict(windows)


def watches_of(plan: Plan, before: Mapping[str, Watch]) -> dict[str, Watch]:
    """The plan's guards in its order. One that reads as before goes on counting, another begins."""
    if isinstance(plan.guards, msgspec.UnsetType):
        return {}
    found = {}
    for name, guard in plan.guards.items():
        known = before.get(name)
        found[name] = known if known is not None and known.guard == guard else Watch(name, guard)
    return found


def gone_off(
    watches: Mapping[str, Watch], labels: Mapping[str, str], at: int, *, action: GuardAction
) -> Iterator[Watch]:
    """The guards with this action that a hold sets off, in plan order."""
    return (watch for watch in watches.values() if watch.guard.action == action and watch.goes_off(labels, at))


def count(watches: Mapping[str, Watch], labels: Mapping[str, str], at: int, *, fired: Collection[str]) -> None:
    """A hold came to the budgets. The guards it set off begin again, the others count it."""
    for name, watch in watches.items():
        if name in fired:
            watch.forget(labels[watch.guard.label])
        else:
            watch.count(labels, at)


def _oldest(window: Window) -> int:
    return window[0] if isinstance(window, list) else next(iter(window.values()))


def _newest(window: Window) -> int:
    return window[-1] if isinstance(window, list) else next(reversed(window.values()))


def _drop_oldest(window: Window) -> None:
    if isinstance(window, list):
        del window[0]
    else:
        del window[next(iter(window))]
