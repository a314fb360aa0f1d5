"""M: the stream. What can be said of it without one; the rest stands in tests/integration."""

from collections.abc import Callable

import pytest
from histories.reading import NAMES, Line, asked, history, skipped, told
from msgspec.structs import replace
from wallets import Books

from engine.core.chain import GENESIS, Covered
from engine.core.tell import fold, tell
from engine.core.wallet import Wallet
from engine.errors import Untrusted
from engine.journal import Stored
from engine.recorded import Recorded


def test_m16_a_settle_after_the_sweep_is_counted_and_flagged() -> None:
    books = Books(on_lapse="release")
    books.at("09:00").hold("a", "0.40")
    books.at("09:10").tick()
    assert books.settle("a", "0.35") == "corrected 0.35 (late, corrected)"
    assert books.settled() == "0.35"


@pytest.mark.parametrize("name", NAMES)
def test_m18_rebuilt_is_live_to_the_byte_at_every_step(name: str) -> None:
    live, rebuilt, passed = Wallet(), Wallet(), skipped(name)
    for (line, asks), entry in zip(asked(name), told(name), strict=True):
        tell(live, seq=line.seq, ts=line.ts, asks=asks, skipped=line.seq in passed)
        fold(rebuilt, seq=line.seq, ts=line.ts, asks=asks, entry=entry)
        assert rebuilt.dump() == live.dump()


# --- m19: a verifier that is itself tested ----------------------------------------------------------------------------


def verify(lines: list[Line], *, receipt: bytes) -> None:
    """Walk a record as a reader does, and compare its end with a receipt somebody kept."""
    chain, covered = GENESIS, list[Covered]()
    for line in lines:
        if line.kind == "ask":
            covered.append((line.seq, line.ts, line.data.encode()))
            continue
        recorded = Recorded.read(Stored(line.seq, line.ts, line.kind, line.data.encode()))
        recorded.verify(chain, covered)
        chain, covered = recorded.chain, []
    if chain != receipt:
        raise Untrusted("the record ends otherwise than the receipt says")


def end(lines: list[Line]) -> bytes:
    return bytes.fromhex(lines[-1].data[-66:-2])


def edit(lines: list[Line], at: int) -> list[Line]:
    data = lines[at].data
    other = data[:2] + ("x" if data[2] != "x" else "y") + data[3:]
    return [*lines[:at], replace(lines[at], data=other), *lines[at + 1 :]]


def move(lines: list[Line], at: int) -> list[Line]:
    return [*lines[:at], replace(lines[at], ts=lines[at].ts + 1), *lines[at + 1 :]]


def delete(lines: list[Line], at: int) -> list[Line]:
    return [*lines[:at], *lines[at + 1 :]]


def insert(lines: list[Line], at: int) -> list[Line]:
    return [*lines[:at], Line(lines[at].seq, lines[at].ts, "ask", '{"asks":[]}'), *lines[at:]]


def swap(lines: list[Line], at: int) -> list[Line]:
    return [*lines[:at], *lines[at : at + 2][::-1], *lines[at + 2 :]]


def truncate(lines: list[Line], at: int) -> list[Line]:
    last = max(place for place in range(at + 1) if lines[place].kind == "told")
    return lines[: last + 1]


def test_m19_the_untouched_record_is_verified() -> None:
    for name in NAMES:
        lines = history(name)
        verify(lines, receipt=end(lines))


@pytest.mark.parametrize("change", [edit, delete, insert, swap, truncate])
def test_m19_every_change_of_a_record_is_found(change: Callable[[list[Line], int], list[Line]]) -> None:
    lines = history("a_plain_day")
    for at in range(3, len(lines) - 1):
        with pytest.raises(Untrusted):
            verify(change(lines, at), receipt=end(lines))


def test_m19_a_changed_moment_of_an_ask_is_found() -> None:
    lines = history("a_plain_day")
    for at, line in enumerate(lines):
        if line.kind == "ask":
            with pytest.raises(Untrusted):
                verify(move(lines, at), receipt=end(lines))


def test_m19_another_record_that_holds_in_itself_is_found_by_a_receipt() -> None:
    lines, fork = history("a_plain_day"), history("around_midnight")
    verify(fork, receipt=end(fork))
    with pytest.raises(Untrusted):
        verify(fork, receipt=end(lines))
