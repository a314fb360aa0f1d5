"""`python -m engine`: one engine process. Reads its settings from the environment and nothing else.

PURSE_NATS_URL, PURSE_WALLET (main), PURSE_PATIENCE_MS (0: speak at once; a standby waits this long), PURSE_DATA (the
folder for snapshots and the witness; without it every start reads the stream from its beginning, and nothing notices a
store that has lost its end). Exit code 4: the stream cannot be trusted.
"""

from __future__ import annotations

import gc

from engine.unneeded import leave_out

if __name__ == "__main__":
    gc.disable()  # importing makes nothing that a collection would find
    leave_out()

import os
import secrets
from pathlib import Path

import structlog

from engine.errors import Misconfigured
from engine.journal import Journal
from engine.process import main
from engine.service import Engine
from engine.snapshots import Snapshots

log = structlog.get_logger()


async def serve() -> None:
    url = os.environ.get("PURSE_NATS_URL", "nats://127.0.0.1:4222")
    wallet = os.environ.get("PURSE_WALLET", "main")
    patience_s = _milliseconds("PURSE_PATIENCE_MS") / 1000
    data = Path(os.environ["PURSE_DATA"]) if os.environ.get("PURSE_DATA") else None
    snapshots = Snapshots(data, wallet) if data is not None else None
    instance = f"e-{secrets.token_hex(6)}"
    async with Journal.connect(url, wallet=wallet, name="purse-engine") as journal:
        log.info("engine_starting", engine=instance, wallet=wallet)
        # The state is millions of live objects that never become garbage in cycles: a collection only costs pauses
        # (p99 at 1,024 callers was 49-383 ms with it, 6-28 ms without).
        gc.freeze()
        gc.disable()
        await Engine(journal, instance=instance, patience_s=patience_s, snapshots=snapshots, data=data).run()


def _milliseconds(name: str) -> int:
    written = os.environ.get(name, "0")
    if not (written.isascii() and written.isdigit()):
        raise Misconfigured(f"{name}: expected a whole number of milliseconds")
    return int(written)


if __name__ == "__main__":
    main(serve)
