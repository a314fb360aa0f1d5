"""What became of one call, for as long as the wallet remembers it, closed or open."""

from __future__ import annotations

import msgspec

from engine.core.documents import Life
from engine.core.memory import Memory
from engine.core.messages import Amounts
from engine.core.wallet import NS, HoldRecord, Wallet


class Remembered(msgspec.Struct, frozen=True, gc=False):
    life: Life
    forget_at: int


class Lives:
    """The lives of closed calls, beside those that the wallet itself knows."""

    def __init__(self, wallet: Wallet) -> None:
        self._wallet = wallet
        self._closed: Memory[Remembered] = Memory()

    def let_go(self, at: int) -> None:
        self._closed.let_go(at)

    def closed(self, record: HoldRecord) -> None:
        """A call was settled; if that ended it for good, only this remembers how."""
        if record.id not in self._wallet.open and record.id not in self._wallet.provisional:
            self.keep(life_of(record))

    def keep(self, life: Life) -> None:
        assert self._wallet.plan is not None
        forget_at = self._wallet.at + self._wallet.plan.remember_s * NS
        self._closed.put(life.id, Remembered(life, forget_at))

    def get(self, id: str) -> Life | None:
        record = self._wallet.open.get(id) or self._wallet.provisional.get(id)
        if record is not None:
            return life_of(record)
        remembered = self._closed.get(id, self._wallet.at)
        return remembered.life if remembered is not None else None

    def dump(self, at: int) -> list[dict[str, Remembered]]:
        return self._closed.dump(at)

    def load(self, portions: list[dict[str, Remembered]]) -> None:
        self._closed.load(portions)


def life_of(record: HoldRecord) -> Life:
    charged: Amounts = {unit: record.costs().get(unit, 0) for unit in record.units()}
    return Life(
        id=record.id,
        state=record.state,
        first=record.first,
        at=record.at,
        charged=charged,
        amounts=record.granted,
        progress=record.progress,
        expires_at=record.expires_at or None,
        periods={bound.meter.budget: bound.meter.period for bound in record.bound},
        key=record.labels.get("key", ""),
    )
