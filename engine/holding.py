"""An open hold inside a `with` block: what the block has said of its call, and the settle that follows from it.

A block that fails before it has said what its call cost may have made the call all the same. So an error is charged at
the grant, as an estimate that one exact settle may still correct, unless whoever wrote the block knows better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar

from engine.core.messages import AnyOutcome, Held, Settle
from engine.guarding import Said

if TYPE_CHECKING:
    from engine.client import Purse

Number = TypeVar("Number", int, Decimal)

WhenFailed: TypeAlias = Literal["charge", "release"]
OnError: TypeAlias = WhenFailed | Callable[[BaseException], WhenFailed]
"""What a block's error means for a call whose cost nobody has said: `charge` it at the grant, as an estimate, or
`release` it, because it was never made; or a function that tells by the error."""


def when_failed(error: BaseException, on_error: OnError) -> WhenFailed:
    """What this error means."""
    return on_error(error) if callable(on_error) else on_error


@dataclass(frozen=True, slots=True)
class Ending(Generic[Number]):
    """How a hold ends: at these amounts, exact or as an estimate, or by its release."""

    amounts: dict[str, Number]
    release: bool = False
    estimated: bool = False


class OpenHold(Generic[Number]):
    """What a block says of its call, in the amounts of its client."""

    def __init__(
        self, id: str, option: int, grant: Mapping[str, Number], read: Callable[[Said], dict[str, Number]]
    ) -> None:
        self.id = id
        self.option = option
        """Which of the options was granted, 0 the first."""
        self._grant: Mapping[str, Number] = grant
        self._read: Callable[[Said], dict[str, Number]] = read
        self._cost: dict[str, Number] | None = None
        self._released = False
        self._progress: dict[str, Number] = {}

    @property
    def units(self) -> frozenset[str]:
        """What it holds amounts of."""
        return frozenset(self._grant)

    def cost(self, **amounts: str | int | Decimal) -> None:
        """What the call really cost, in units: `hold.cost(usd="0.0042")`. Settled when the block ends."""
        self._cost = self._read(amounts)

    def release(self) -> None:
        """The call was never made."""
        self._released = True

    def failed(self, error: BaseException, on_error: OnError = "charge") -> None:
        """The block ended with this error. What it said before stands."""
        if self._cost is None and when_failed(error, on_error) == "release":
            self._released = True

    def _ending(self) -> Ending[Number]:
        if self._cost is not None:
            return Ending(self._cost)
        if self._released:
            return Ending({}, release=True)
        worst = {unit: max(grant, self._progress.get(unit, grant)) for unit, grant in self._grant.items()}
        return Ending(self._progress | worst, estimated=True)


class Holding(OpenHold[int]):
    """An open hold inside `async with purse.holding(...)`."""

    def __init__(self, purse: Purse, held: Held) -> None:
        super().__init__(held.id, held.option, held.amounts, purse.known_amounts)
        self.held = held
        self._purse = purse

    async def progress(self, **amounts: str | int | Decimal) -> AnyOutcome:
        """What it has cost so far, as totals, on the record at once: kept even if this process dies."""
        said = self._read(amounts)
        self._progress |= said
        return (await self._purse.ask(Settle(hold=self.id, amounts=said, final=False))).outcome

    def ending(self) -> Settle:
        """The settle that ends this hold."""
        end = self._ending()
        return Settle(hold=self.id, amounts=end.amounts, release=end.release, estimated=end.estimated)
