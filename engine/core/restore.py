"""The way back from `Wallet.dump`: the same wallet again, told apart by nothing that it will ever decide or dump.

Only the state is read; what derives from it (rules, heaps) is made anew.
"""

from __future__ import annotations

import heapq

import msgspec

from engine.core.closed import Columns
from engine.core.evolve import add_meter, put_in_force
from engine.core.guards import Cooled, Window
from engine.core.messages import Amounts, Frost, Held, Hold, HoldState, Renew
from engine.core.meter import Meter
from engine.core.plan import Plan
from engine.core.wallet import SCHEMA, Bound, Gone, Heard, HoldRecord, Refusal, SettleId, Wallet


class NotRestoredError(ValueError):
    """These bytes are no wallet this release can read. The text says why."""


class _Schema(msgspec.Struct, frozen=True):
    schema: int


class _Record(msgspec.Struct, frozen=True, gc=False):
    """A `HoldRecord` as it is dumped: `bound` names meters by their places."""

    id: str
    state: HoldState
    first: int
    changed: int
    at: int
    by: int
    labels: dict[str, str]
    granted: Amounts
    progress: Amounts
    charged: Amounts
    gone: tuple[Gone, ...]
    ask: Hold | None
    option: int
    tier: int
    held: Held | None
    renewed: Held | None
    renewal: Renew | None
    expires_at: int
    charge_on_lapse: bool
    forget_at: int
    bound: list[tuple[int, int, int]]

    def restored(self, meters: list[Meter]) -> HoldRecord:
        return HoldRecord(
            self.id,
            self.state,
            self.first,
            self.changed,
            self.at,
            self.by,
            self.ask.labels if self.ask is not None else self.labels,  # one dict, as it was before it was dumped
            self.granted,
            self.progress,
            self.charged,
            tuple([Bound(meters[place], limit, remaining) for place, limit, remaining in self.bound]),
            self.gone,
            self.ask,
            self.option,
            self.tier,
            self.held,
            self.renewed,
            self.renewal,
            self.expires_at,
            self.charge_on_lapse,
            self.forget_at,
        )


class _Windows(msgspec.Struct, frozen=True, gc=False):
    """What one guard has counted."""

    name: str
    windows: list[tuple[str, Window]]


class _State(msgspec.Struct, frozen=True, gc=False):
    schema: int
    name: str
    at: int
    upto: int
    day: str
    day_ends: int
    horizon: int
    plan: Plan | None
    plan_digest: str
    plan_first: int
    scales: dict[str, int]
    budget_units: dict[str, str]
    generations: dict[str, int]
    meters: list[Meter]
    open: list[_Record]
    provisional: list[_Record]
    closed: list[Columns]
    refused: list[dict[str, Refusal]]
    settle_ids: list[dict[str, SettleId]]
    heard: list[dict[str, Heard]]
    frozen: dict[str, Frost]
    revoked: list[tuple[str, str, str]]
    watches: list[_Windows]
    cooling: list[tuple[str, str, Cooled]]


_states = msgspec.json.Decoder(_State)


def load(dump: bytes | memoryview) -> Wallet:
    """The wallet whose `dump()` these bytes are. Raises `NotRestoredError`."""
    try:
        state = _states.decode(dump)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _check_schema(dump)
        raise NotRestoredError(f"no state of a wallet: {error}") from error
    if state.schema != SCHEMA:
        _check_schema(dump)
    try:
        return _restored(state)
    except LookupError as error:
        raise NotRestoredError(f"no state of a wallet: it names what it does not have ({error})") from error
    except ValueError as error:
        raise NotRestoredError(f"no state of a wallet: {error}") from error


def _check_schema(dump: bytes | memoryview) -> None:
    """Another schema is the better reason where there is one."""
    try:
        schema = msgspec.json.decode(dump, type=_Schema).schema
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if schema != SCHEMA:
        raise NotRestoredError(f"written under schema {schema}, this release reads schema {SCHEMA}")


def _restored(state: _State) -> Wallet:
    wallet = Wallet(state.name)
    wallet.at, wallet.upto, wallet.horizon = state.at, state.upto, state.horizon
    wallet.day, wallet.day_ends = state.day, state.day_ends
    wallet.plan, wallet.plan_digest, wallet.plan_first = state.plan, state.plan_digest, state.plan_first
    wallet.scales, wallet.budget_units, wallet.generations = state.scales, state.budget_units, state.generations
    for meter in state.meters:
        add_meter(wallet, meter.key, meter)
    wallet.open = {record.id: record.restored(state.meters) for record in state.open}
    wallet.provisional = {record.id: record.restored(state.meters) for record in state.provisional}
    wallet.closed.load(state.closed)
    wallet.refused.load(state.refused)
    wallet.settle_ids.load(state.settle_ids)
    wallet.heard.load(state.heard)
    wallet.frozen = state.frozen
    wallet.revoked = {(label, value): reason for label, value, reason in state.revoked}
    wallet.cooling = {(label, value): cooled for label, value, cooled in state.cooling}
    _derive(wallet)
    for counted in state.watches:
        wallet.watches[counted.name].load(counted.windows)
    return wallet


def _derive(wallet: Wallet) -> None:
    """The heaps without their stale entries, and the rules of the plan in force."""
    wallet.expiries = [(record.expires_at, record.id) for record in wallet.open.values()]
    wallet.forgets = [(record.forget_at, record.id) for record in wallet.provisional.values()]
    wallet.warmings = [(cooled.until, *key) for key, cooled in wallet.cooling.items()]
    heapq.heapify(wallet.warmings)
    heapq.heapify(wallet.expiries)
    heapq.heapify(wallet.forgets)
    if wallet.plan is not None:
        put_in_force(wallet)
