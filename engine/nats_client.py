"""nats-py, but what is published leaves at once, and two faults heal. It knows nothing of streams.

It overrides what nats-py keeps to itself, so another version of it is to be tried before it is allowed.
"""

from __future__ import annotations

from typing import Any

import nats.errors
from nats.aio.client import Client


class NatsClient(Client):
    """A connection to the server. Where nats-py would be deaf and say nothing, or close for good, this one goes on."""

    async def _process_headers(self, headers: bytes) -> dict[str, str] | None:
        """Headers are bytes that any publisher chose; an exception in here would end the read loop."""
        try:
            return await super()._process_headers(headers)
        except (IndexError, ValueError):
            return None

    async def _process_err(self, err_msg: str) -> None:
        """The server says what is wrong and hangs up. Unless only one request was denied, connect again."""
        if "permissions violation" in err_msg:
            await super()._process_err(err_msg)
        else:
            await self._process_op_err(nats.errors.Error(f"the server said {err_msg}"))

    async def _process_connect_init(self) -> None:
        """Connected, for the first time or again: from now on bytes go to the system when they are written.

        uvloop keeps them until everything that is ready has run, which is when a thousand callers hear at once.
        """
        await super()._process_connect_init()
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.set_write_buffer_limits(high=0)

    async def _flush_pending(self, force_flush: bool = False) -> Any:
        """Write now, not when a task of nats-py's own comes to it, two turns of the event loop later."""
        if not self.is_connected or self._transport is None or not self._pending:
            return await super()._flush_pending(force_flush)
        pending, self._pending, self._pending_data_size = self._pending, [], 0
        try:
            self._transport.writelines(pending)
            await self._transport.drain()  # type: ignore[no-untyped-call]
        except (OSError, RuntimeError) as error:  # lost; uvloop says the latter where the loss was not yet read
            await self._error_cb(error)
            await self._process_op_err(error)
        return None
