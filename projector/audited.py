"""What audits said of past days: a line for each, in a file that only grows.

    DATA/audits/<wallet>.jsonl    {"day": "2026-11-30", "at": .., "right": true, "told": 812, "chain": "..", "asks": ..}

`purse audit` writes it; whoever shows days reads it. A word of praise holds only for the record that it was given for:
the told that sealed the day must be the one that the projector has proved and put down in its witness of seals. A word
of blame always holds, until a newer audit finds the day right.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import structlog

from projector.day_range import DayRange
from projector.replay import Answered
from projector.seals import witness as seal_witness
from projector.seals.witness import Line

FOLDER = "audits"
READ_BYTES_MAX = 4 * 1024 * 1024  # of its end: some 20,000 audits

log = structlog.get_logger()

_encoder = msgspec.json.Encoder()


class Audited(msgspec.Struct, frozen=True):
    """An audit of a closed day. `at`: when (ns). `told`, `chain`: of the told that sealed the day. `asks`: decided."""

    day: str
    at: int
    right: bool
    told: int = 0
    chain: str = ""
    asks: int = 0


class SealsRead:
    """The seals of some days, as an audit comes by them."""

    def __init__(self, days: DayRange) -> None:
        self.lines: list[Line] = []
        self._days = days

    def fold(self, answered: Answered) -> None:
        entry = answered.entry
        self.lines += [
            Line(answered.told, answered.chain.hex(), entry.seq, entry.at, seal)
            for seal in entry.sealed
            if self._days.first <= seal.day <= self._days.last
        ]

    def audited(self, *, at: int, right: bool, asks: int) -> list[Audited]:
        """What an audit says of them that read the record at `at`."""
        return [Audited(line.seal.day, at, right, line.told, line.chain, asks) for line in self.lines]


def path_of(data: Path, wallet: str) -> Path:
    return data / FOLDER / f"{wallet}.jsonl"


def put_down(data: Path, wallet: str, said: Iterable[Audited]) -> None:
    """Append what an audit has said. Raises `OSError`."""
    path = path_of(data, wallet)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = b"".join(b"\n" + _encoder.encode(one) + b"\n" for one in said)  # a line cut short before harms no other
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())


def known(data: Path, wallet: str) -> dict[str, Audited]:
    """The newest word on each day. Raises `OSError` if there is a file that cannot be read."""
    found: dict[str, Audited] = {}
    try:
        with path_of(data, wallet).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - READ_BYTES_MAX))
            written = file.read()
    except FileNotFoundError:
        return found
    for line in written.split(b"\n"):
        try:
            one = msgspec.json.decode(line, type=Audited)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        found[one.day] = one
    return found


def earned(said: Mapping[str, Audited], witnessed: Mapping[str, Line]) -> list[Audited]:
    """What holds of it for the record whose seals were witnessed."""
    return [one for one in said.values() if not one.right or _same(one, witnessed.get(one.day))]


def earned_of(data: Path, wallet: str, sealed: Mapping[str, int]) -> list[Audited]:
    """What holds of it for the record of which these days are sealed, each by the message of that sequence."""
    try:
        lines = seal_witness.known(seal_witness.path_of(data, wallet)).lines
        said = known(data, wallet)
    except OSError as error:
        log.warning("audits_not_read", why=error.strerror)
        return []
    return earned(said, {day: line for day, line in lines.items() if sealed.get(day) == line.seq})


def _same(one: Audited, line: Line | None) -> bool:
    return line is not None and (one.told, one.chain) == (line.told, line.chain)
