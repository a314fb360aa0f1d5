"""`purse receipt`: what somebody was told once, held against the record as it stands now."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from commonpurse.commands import CannotTrust, Face, Failed, on_terminal, say
from commonpurse.reading import Whence, log_errors_only, opened, progress_shown, record_options
from engine.errors import PurseError, Untrusted
from engine.receipts import Receipt
from projector.audit.hearsay import Hearsay
from projector.replay import Replay, replay

FILE_BYTES_MAX = 1_000_000


@click.group()
def receipt() -> None:
    """Check receipts: the sequence and chain that come with every answer."""


@receipt.command()
@click.argument("written", metavar="SEQ:CHAIN|FILE")
@record_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def verify(
    ctx: click.Context, written: str, data: Path, nats: str | None, wallet: str, record: Path | None, as_json: bool
) -> None:
    """Check one receipt against the record: SEQ:CHAIN, or a FILE with an answer of the API (or its receipt) in JSON.

    The record is read from its first message up to the receipt's, and the chain computed from its bytes.

    Exit codes: 0 it stands, 1 it cannot be checked, 2 usage, 4 the record contradicts it.
    """
    log_errors_only()
    found = _given(written)
    try:
        reading = asyncio.run(_verify(Whence(data, wallet, nats, record), found))
    except Untrusted as error:
        raise CannotTrust(str(error)) from error
    except PurseError as error:
        raise Failed(str(error)) from error
    if as_json or ctx.ensure_object(Face).as_json:
        document = {"stands": True, "seq": found.told, "chain": found.chain, "messages": reading.messages}
        return click.echo(json.dumps(document))
    return say(
        f"It stands: the {reading.messages:,} messages up to sequence {found.told:,} are those that were told, "
        "byte for byte."
    )


async def _verify(whence: Whence, given: Receipt) -> Replay:
    async with opened(whence) as found:
        hearsay = Hearsay([given], found.source.losses)
        last = await found.source.last()
        if given.told > last:
            hearsay.finish(last=last)
        with progress_shown(drawn=on_terminal()) as progress:
            reading = await replay(found.source, hearsay.fold, upto=given.told, progress=progress)
        hearsay.finish(last=last)
        return reading


def _given(written: str) -> Receipt:
    found = Receipt.read(written.replace(":", " ", 1))
    if found is None and Path(written).is_file():
        found = _in_file(Path(written))
    if found is None:
        raise click.UsageError("expected SEQ:CHAIN (64 hexadecimal digits), or a file with a receipt in JSON")
    return found


def _in_file(path: Path) -> Receipt | None:
    if path.stat().st_size > FILE_BYTES_MAX:
        return None
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    said = document.get("receipt", document) if isinstance(document, dict) else None
    if not isinstance(said, dict):
        return None
    return Receipt.read(f"{said.get('seq')} {said.get('chain')}")
