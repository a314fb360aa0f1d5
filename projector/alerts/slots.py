"""What was spent lately, in whole slots of time: a sum over a window, without a list of every call."""

from __future__ import annotations

import msgspec

NS = 1_000_000_000


class Slots(msgspec.Struct, gc=False):
    """The newest `count` slots of `width_s` seconds each; `sums` by slot, oldest first. Time never goes back."""

    width_s: int
    count: int
    sums: dict[int, int] = {}
    total: int = 0

    def add(self, amount: int, at: int) -> None:
        self.upto(at)
        slot = self.slot(at)
        self.sums[slot] = self.sums.get(slot, 0) + amount
        self.total += amount

    def upto(self, at: int) -> None:
        """Forget what is older than the window that ends with the slot of `at`."""
        last_gone = self.slot(at) - self.count
        while self.sums and (oldest := next(iter(self.sums))) <= last_gone:
            self.total -= self.sums.pop(oldest)

    def slot(self, at: int) -> int:
        return at // (self.width_s * NS)

    def span_ns(self, at: int) -> int:
        """From the beginning of the oldest slot that counts until `at`: how long `total` took. 0 if nothing counts.

        A slot at least: the first moments after a pause are no pace.
        """
        return max(self.width_s * NS, at - next(iter(self.sums)) * self.width_s * NS) if self.sums else 0
