"""Holds the demo's own books against the wallet's stream: as a document for programs and as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from commonpurse.demo import BUDGET, LIMIT, UNIT, Books, usd
from commonpurse.http import Answer
from commonpurse.proof import Proof
from commonpurse.telling import read_said


@dataclass(frozen=True, slots=True)
class Verdict:
    """The books of who called, beside what the stream proves."""

    books: Books
    proof: Proof

    @property
    def settled_nanos(self) -> int:
        """What the wallet settled, in every day the run touched."""
        return sum(meter.settled for meter in self.proof.of(BUDGET))

    @property
    def held_nanos(self) -> int:
        return sum(meter.held for meter in self.proof.of(BUDGET))

    @property
    def highest_nanos(self) -> int:
        """The most that settled and held ever were together on one day."""
        return max((meter.highest for meter in self.proof.of(BUDGET)), default=0)

    @property
    def held(self) -> int:
        """Calls that the stream says were held."""
        return self.proof.outcomes.get("held", 0)

    @property
    def books_agree(self) -> bool:
        """Every call that was held is settled, to the nano-dollar at what it cost."""
        same = (self.held, self.settled_nanos, self.held_nanos) == (self.books.made, self.books.spent_nanos, 0)
        return same and not self.proof.untold

    @property
    def good(self) -> bool:
        return self.books_agree and self.proof.never_above

    def document(self, refusal: Answer, *, seconds: float) -> dict[str, object]:
        """All counts and sums. Money is exact decimal strings; only the stopwatch is a float."""
        said = read_said(refusal)
        return {
            "calls": self.books.made,
            "held": self.held,
            "refused": dict(sorted(self.books.refused.items())),
            "refusal": {
                "status": refusal.status,
                "x-should-retry": refusal.should_retry,
                "detail": said.detail,
                "resets_at": said.resets_at,
            },
            "unit": UNIT,
            "limit": LIMIT,
            "spent": usd(self.books.spent_nanos),
            "settled": usd(self.settled_nanos),
            "still_held": usd(self.held_nanos),
            "highest_used": usd(self.highest_nanos),
            "books_agree": self.books_agree,
            "never_above_limit": self.proof.never_above,
            "messages": self.proof.messages,
            "entries": self.proof.entries,
            "asks": self.proof.asks,
            "chain": self.proof.chain,
            "seconds": round(seconds, 3),
        }

    def lines(self) -> list[str]:
        """For a person: both sums side by side, and what was read to say so."""
        proof = self.proof
        return [
            f"calls made       {self.books.made:,}: each held before, settled after",
            f"refused          {_counts(self.books.refused)}",
            f"callers' books   {usd(self.books.spent_nanos)} {UNIT}",
            f"wallet settled   {usd(self.settled_nanos)} {UNIT}{self._compared()}",
            f"settled + held   {usd(self.highest_nanos)} {UNIT} at its highest, {self._limit_kept()}",
            f"how it is known  all {proof.messages:,} messages of the stream were read, every chain hash was right,",
            f"                 {proof.entries:,} entries with {proof.asks:,} asks were folded anew, and the meter was",
            "                 looked at after each",
        ]

    def _compared(self) -> str:
        if self.settled_nanos != self.books.spent_nanos:
            return " - these differ"
        held = f"{usd(self.held_nanos)} {UNIT}" if self.held_nanos else "nothing"
        return f", the same to the nano-dollar; {held} is held any more"

    def _limit_kept(self) -> str:
        if self.proof.never_above:
            return f"never above the limit of {LIMIT} {UNIT}"
        first = min(meter.above_at for meter in self.proof.meters if meter.above_at is not None)
        return f"ABOVE the limit of {LIMIT} {UNIT}, first at message {first:,}"


def refusal_lines(refusal: Answer) -> list[str]:
    """The answer as it came, what matters of it: status line, header, the sentence for a person, when it resets."""
    said = read_said(refusal)
    return [
        f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}",
        f"x-should-retry: {refusal.should_retry}",
        f'"{said.detail}"',
        f"resets at {said.resets_at}",
    ]


def _counts(refused: Mapping[str, int]) -> str:
    """`12 spent; 19 busy (only others' holds were in the way), asked again`."""
    busy = refused.get("busy", 0)
    again = f"; {busy:,} busy (only others' holds were in the way), asked again" if busy else ""
    return f"{refused.get('spent', 0):,} spent{again}"
