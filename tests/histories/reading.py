"""Reads the recorded histories: the stored messages, line by line, and what was left at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
from property import naive_time

from engine.core.messages import AnyAsk, Entry, Told
from engine.core.tell import read
from engine.core.wallet import Wallet

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))


class Line(msgspec.Struct, frozen=True):
    """One stored message. `data` is its bytes, which are text."""

    seq: int
    ts: int
    kind: Literal["ask", "told"]
    data: str


class Balances(msgspec.Struct, frozen=True):
    """What a history ends in. A meter: budget, each, period, settled, held, extra, figure."""

    upto: int
    at: int
    chain: str
    meters: list[tuple[str, str | None, str, int, int, int, int]]
    open: list[str]


def history(name: str) -> list[Line]:
    return msgspec.json.Decoder(Line).decode_lines((FOLDER / f"{name}.jsonl").read_bytes())


def expected(name: str) -> Balances:
    return msgspec.json.decode((FOLDER / f"{name}.balances.json").read_bytes(), type=Balances)


def balances(wallet: Wallet, chain: bytes) -> Balances:
    meters = sorted(wallet.meters().items(), key=lambda item: (item[0][0], item[0][1] or "", item[0][2]))
    return Balances(
        wallet.upto, wallet.at, chain.hex(), [(*key, *figures) for key, figures in meters], sorted(wallet.open)
    )


def asked(name: str) -> list[tuple[Line, list[AnyAsk] | None]]:
    """The ask messages; None where one cannot be read."""
    lines = [line for line in history(name) if line.kind == "ask"]
    messages = [read(line.data.encode()) for line in lines]
    return [(line, message.asks if message else None) for line, message in zip(lines, messages, strict=True)]


def skipped(name: str) -> set[int]:
    """The sequences of the messages whose stamps a `clock` behind them skips."""
    messages = []
    for line in history(name):
        asks = None if line.kind == "told" else read(line.data.encode())
        upto = msgspec.json.decode(line.data, type=Told).upto if line.kind == "told" else None
        messages.append(naive_time.Message(line.seq, line.ts, asks.asks if asks else None, upto))
    return naive_time.skipped(messages)


def told(name: str) -> list[Entry]:
    """What was told, message by message."""
    tolds = [msgspec.json.decode(line.data, type=Told) for line in history(name) if line.kind == "told"]
    return [entry for one in tolds for entry in one.told]
