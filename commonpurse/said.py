"""What the API's answers mean to the `purse` command: the fields a person or a rule of ours looks at, no others.

Reading is tolerant (a newer wallet may say more), and it never guesses: a field of another kind is an error.
"""

from __future__ import annotations

import msgspec

REFUSALS = frozenset({"exhausted", "frozen", "cooling", "revoked"})
"""Outcomes that say no to this call; sending the same again at once would hear the same."""

VERDICTS = REFUSALS | {"late", "closed", "conflict", "invalid", "unknown"}
"""All that a hold or a renewal may hear instead of `held`."""


class Said(msgspec.Struct, frozen=True):
    """One outcome or one problem. Amounts are decimal strings, moments are RFC 3339."""

    outcome: str = ""
    id: str = ""
    # held
    amounts: dict[str, str] = {}
    expires_at: str = ""
    periods: dict[str, str] = {}
    n: int = 0
    # settled, stray, again, closed
    state: str = ""
    charged: dict[str, str] = {}
    released: dict[str, str] = {}
    flags: list[str] = []
    # exhausted
    why: str = ""
    budget: str = ""
    unit: str = ""
    period: str = ""
    fits: str = ""
    resets_at: str | None = None
    note: str = ""
    link: str = ""
    # what is left: by budget after a hold or settle, of the one budget in a refusal or at the desk
    remaining: dict[str, str] | str | None = None
    raised_by: str | None = None
    # planned
    digest: str = ""
    restarts: list[str] = []
    # a problem; in a batch every outcome has its status
    type: str = ""
    title: str = ""
    status: int = 0
    detail: str = ""

    @property
    def problem(self) -> str:
        """What a problem says, in one line."""
        return self.detail or self.title


class Told(msgspec.Struct, frozen=True):
    """The answer to a batch: one outcome each, in order."""

    told: list[Said]


class Reading(msgspec.Struct, frozen=True):
    """How current the provider's own figure of a budget is. `why` is told to operators only."""

    source: str
    read_at: str | None = None
    stale: bool = False
    unreadable: bool = False
    why: str = ""


class BudgetNow(msgspec.Struct, frozen=True):
    """One shared budget. Without the right to see money only names, percentages and times are there."""

    name: str
    unit: str = ""
    used_pct: float = 0.0  # a picture, not money
    held_pct: float = 0.0
    limit: str | None = None
    settled: str | None = None
    held: str | None = None
    extra: str | None = None
    used: str | None = None
    remaining: str | None = None
    resets_at: str | None = None
    first_exhausted_at: str | None = None
    reading: Reading | None = None


class Frost(msgspec.Struct, frozen=True):
    """A freeze in force."""

    scope: str
    reason: str = ""
    until: str | None = None


class Wallet(msgspec.Struct, frozen=True):
    """The status document. `frozen` is the freeze that concerns everybody, `freezes` are all, for who may see them."""

    wallet: str
    as_of: str
    seq: int
    live: bool
    budgets: list[BudgetNow]
    frozen: Frost | None = None
    freezes: list[Frost] = []


class PlanInForce(msgspec.Struct, frozen=True):
    """The plan as JSON and the digest that an applied change must replace."""

    plan: dict[str, object]
    digest: str


class KeySaid(msgspec.Struct, frozen=True):
    """One key as the wallet keeps it; `key` is the key itself, in the one answer that has it."""

    id: str
    role: str
    state: str
    key: str = ""
    user: str = ""
    cohort: str = ""
    labels: dict[str, str] = {}
    names: list[str] = []
    replaces: str = ""
    note: str = ""
    expires_at: str | None = None
    revoked_at: str | None = None
    revoked_by: str = ""
    reason: str = ""


class Keys(msgspec.Struct, frozen=True):
    """All of them, newest first."""

    keys: list[KeySaid]


class AlertSaid(msgspec.Struct, frozen=True):
    """One alert. `deliveries`: what became of it at each target."""

    at: str
    text: str
    deliveries: dict[str, str] = {}


class Alerts(msgspec.Struct, frozen=True):
    """The newest alerts, newest first."""

    alerts: list[AlertSaid]


class TriedTarget(msgspec.Struct, frozen=True):
    """Whether a target took a test alert, and why not."""

    target: str
    delivered: bool
    why: str = ""


class AlertTest(msgspec.Struct, frozen=True):
    targets: list[TriedTarget]
