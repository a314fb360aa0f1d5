"""What can go wrong outside the rules. A refusal is an outcome; only where a `with` block must not begin is it raised.

    PurseError
    |-- BadAsk          whoever called us: an ask that must not reach the stream
    |-- Refused         a refusal, where only an exception can carry it (`async with purse.holding(...)`)
    |-- NoAnswer        the world: nobody answered in time; whether it was decided is not known
    |-- StreamRefused   the world: the stream is full, not there, or will not take this
    |   `-- NotKept     neither the stream nor the spool took a settlement: its caller must send it again
    |-- Misconfigured   the operator: settings of the stream, the plan or a process are not usable
    `-- Untrusted       the stream contradicts itself or what was seen before: stop, never decide (exit code 4)

A bug is none of these: it raises whatever it raises and ends the process.
"""

from __future__ import annotations

from engine.core.messages import AnyOutcome


class PurseError(Exception):
    """Base of all errors of Common Purse."""


class BadAsk(PurseError):
    """`field` names the place in what was sent, `why` says what is allowed. Never repeats a secret or a long value."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field, self.why = field, why


class Refused(PurseError):
    """The call must not be made. `outcome` says why; it is data, this only carries it out of a `with` block."""

    def __init__(self, outcome: AnyOutcome) -> None:
        super().__init__(f"not held: {outcome.__struct_config__.tag}")
        self.outcome = outcome


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
