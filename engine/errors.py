"""What can go wrong outside the rules. A refusal is an outcome; only where a `with` block must not begin is it raised.

    PurseError
    |-- BadAsk          whoever called us: an ask that must not reach the stream
    |-- NotAllowed      whoever called us: the key is missing, not known, or may not do this
    |-- Refused         a refusal, where only an exception can carry it (`async with purse.holding(...)`)
    |   `-- Exhausted   it does not fit: why, when that ends, what would fit
    |-- NoAnswer        the world: nobody answered in time; whether it was decided is not known
    |-- StreamRefused   the world: the stream is full, not there, or will not take this
    |   `-- NotKept     neither the stream nor the spool took a settlement: its caller must send it again
    |-- Misconfigured   the operator: settings of the stream, the plan or a process are not usable
    `-- Untrusted       the stream contradicts itself or what was seen before: stop, never decide (exit code 4)
        `-- LaterRelease    nobody's fault: what stands there only a later release can read

A bug is none of these: it raises whatever it raises and ends the process.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from engine.core.messages import AnyOutcome


class PurseError(Exception):
    """Base of all errors of Common Purse."""


class BadAsk(PurseError):
    """`field` names the place in what was sent, `why` says what is allowed. Never repeats a secret or a long value."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field, self.why = field, why


class NotAllowed(PurseError):
    """The wallet does not know who asks, or they may not ask that. Never repeats the key."""


class Refused(PurseError):
    """The call must not be made. It is data; this only carries it out of a `with` block.

    `name`: the outcome's word (exhausted, frozen, cooling, revoked, late, closed, conflict, invalid). `outcome`: the
    outcome itself, None where it was heard over HTTP.
    """

    def __init__(self, outcome: AnyOutcome | None = None, *, name: str = "", detail: str = "") -> None:
        self.outcome = outcome
        self.name: str = name or (str(outcome.__struct_config__.tag) if outcome is not None else "")
        super().__init__(f"not held: {detail or self.name}")


class Exhausted(Refused):
    """It does not fit into `budget`. `why`: never, spent, busy or tier; `fits`: the most of `unit` that would have.

    `resets_at`: when the budget's period ends, None where it never does.
    """

    def __init__(
        self,
        outcome: AnyOutcome | None = None,
        *,
        why: str,
        budget: str,
        unit: str,
        fits: Decimal,
        resets_at: datetime | None,
        detail: str = "",
    ) -> None:
        super().__init__(outcome, name="exhausted", detail=detail or f"{why} ({budget})")
        self.why, self.budget, self.unit, self.fits, self.resets_at = why, budget, unit, fits, resets_at


class NoAnswer(PurseError):
    """Nobody answered within the caller's patience.

    `kept`: what was settled or observed is on the stream or in the spool and will count; it need not be sent again.
    """

    def __init__(self, why: str, *, kept: bool = False) -> None:
        super().__init__(why)
        self.kept = kept


class StreamRefused(PurseError):
    """The stream did not take the message. `code` is JetStream's error code, 0 where there was none."""

    def __init__(self, why: str, *, code: int = 0) -> None:
        super().__init__(why)
        self.code = code


class NotKept(StreamRefused):
    """What was settled is neither on the stream nor in the spool. Only its caller has it: send it again."""


class Misconfigured(PurseError):
    """Something an operator set cannot be used."""


class Untrusted(PurseError):
    """The stream cannot be trusted: a gap, a lower sequence, a broken chain, another decision in our place."""


class LaterRelease(Untrusted):
    """A later release has written what this one cannot read or decide by. Nothing is wrong with it."""
