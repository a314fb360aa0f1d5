"""Every way in which a record may be changed behind everybody's back, and the first sequence at which it shows.

Each takes a whole record (`records.recorded`, two ask messages a told) and gives the changed one. A chain is only made
anew where it says so: whoever changes a byte and leaves the chain is found by the chain, whoever makes it anew by what
was kept elsewhere, or by the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from engine.core import chain
from engine.core.messages import Entry, Told
from engine.journal import Stored

Tampering = Callable[[list[Stored]], list[Stored]]


def edited(seq: int, old: bytes, new: bytes) -> Tampering:
    """One message has other bytes in one place."""

    def edit(stream: list[Stored]) -> list[Stored]:
        assert any(old in one.data for one in stream if one.seq == seq), f"{old!r} does not stand at {seq}"
        return [replace(one, data=one.data.replace(old, new, 1)) if one.seq == seq else one for one in stream]

    return edit


def stamped(seq: int) -> Tampering:
    """One message was stored a nanosecond later."""
    return lambda stream: [replace(one, ts=one.ts + 1) if one.seq == seq else one for one in stream]


def deleted(seq: int) -> Tampering:
    return lambda stream: [one for one in stream if one.seq != seq]


def taken_out(seq: int) -> Tampering:
    """Deleted, and all behind it moved up."""
    return lambda stream: renumbered([one for one in stream if one.seq != seq])


def inserted(seq: int) -> Tampering:
    """A copy of the message at `seq` behind it, and all behind moved down."""
    return lambda stream: renumbered([*stream[:seq], stream[seq - 1], *stream[seq:]])


def swapped(one: int, other: int) -> Tampering:
    def swap(stream: list[Stored]) -> list[Stored]:
        places = list(stream)
        places[one - 1], places[other - 1] = stream[other - 1], stream[one - 1]
        return renumbered(places)

    return swap


def cut(seq: int) -> Tampering:
    """It ends with `seq`."""
    return lambda stream: [one for one in stream if one.seq <= seq]


def renumbered(stream: Sequence[Stored]) -> list[Stored]:
    return [replace(one, seq=seq) for seq, one in enumerate(stream, start=1)]


def forked(change: Tampering, *, told: Callable[[Entry], Entry] = lambda entry: entry) -> Tampering:
    """Changed, and every chain made anew as only somebody could who can write the whole stream."""

    def fork(stream: list[Stored]) -> list[Stored]:
        previous, made, waiting = chain.GENESIS, list[Stored](), list[Stored]()
        for one in change(stream):
            if one.kind != "told":
                waiting.append(one)
                made.append(one)
                continue
            said = msgspec.json.decode(one.data, type=Told)
            covered, waiting = waiting[: said.n], waiting[said.n :]
            entries = [told(entry) for entry in said.told]
            body = msgspec.json.encode(replace(said, told=entries)).removesuffix(b"}")
            previous = chain.link(previous, ((c.seq, c.ts, c.data) for c in covered), body)
            made.append(replace(one, data=chain.seal(body, previous)))
        return made

    return fork


FOUND_BY_THE_CHAIN: dict[str, tuple[Tampering, int]] = {
    "an ask with another amount": (edited(2, b'"usd":400000000', b'"usd":300000000'), 7),
    "an ask with another price book": (edited(2, b'"price_book":"2026-11"', b'"price_book":"2026-10"'), 7),
    "an ask with another user": (edited(2, b'"user":"alice"', b'"user":"mallo"'), 7),
    "an ask at another moment": (stamped(3), 8),
    "a told with another amount": (edited(8, b'"charged":{"usd":250000000}', b'"charged":{"usd":150000000}'), 8),
    "a told with another outcome": (edited(9, b'"outcome":"exhausted"', b'"outcome":"exhauster"'), 9),
    "a told with another chain": (edited(7, b'"chain":"', b'"chain":"0'), 7),
    "an ask that is gone": (deleted(2), 2),
    "a told that is gone": (deleted(8), 8),
    "an ask that was taken out": (taken_out(4), 7),
    "an ask that was put in": (inserted(2), 9),
    "two asks that were swapped": (swapped(3, 4), 8),
    "two tolds that were swapped": (swapped(7, 8), 7),
}
"""Of `recorded(story())`: asks at 1 to 6, tolds at 7 to 9."""


def sealed(**fields: object) -> Callable[[Entry], Entry]:
    """The entry's one seal with other fields."""
    return lambda entry: replace(entry, sealed=[replace(seal, **fields) for seal in entry.sealed])


def sealed_budget(**fields: object) -> Callable[[Entry], Entry]:
    """The entry's one seal with other figures of `jev`."""

    def change(entry: Entry) -> Entry:
        [seal] = entry.sealed
        return replace(entry, sealed=[replace(seal, budgets={"jev": replace(seal.budgets["jev"], **fields)})])

    return change


FALSE_SEALS: dict[str, tuple[Callable[[Entry], Entry], str]] = {
    # what was done: how, and what the stand-alone verifier says of it
    "less was settled": (sealed_budget(settled=1), "add up to"),
    "less is held": (sealed_budget(held=0), "add up to"),
    "others spent something": (sealed_budget(extra=1), "add up to"),
    "another limit": (sealed_budget(limit=1), "add up to"),
    "a budget is left out": (sealed(budgets={}), "add up to"),
    "an open hold is left out": (sealed(open_holds=0), "open holds"),
    "it goes up to another message": (sealed(upto=1), "up to message 1"),
    "another day": (sealed(day="2026-11-29"), "where 2026-11-30 ends"),
    "another end": (sealed(end=1), "where 2026-11-30 ends"),
    "it is left out": (lambda entry: replace(entry, sealed=[]), "does not seal 2026-11-30"),
    "it stands twice": (lambda entry: replace(entry, sealed=entry.sealed * 2), "where 2026-12-01 ends"),
}
"""Of an entry that seals 2026-11-30 with `jev` settled and held, while one hold is open."""
