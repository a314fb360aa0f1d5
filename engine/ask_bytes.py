"""Asks as the bytes that stand in a message, proved readable before anything is sent or kept. Judges no content."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.core import limits
from engine.core.messages import AnyAsk
from engine.errors import BadAsk

ASKS_BYTES_MAX = limits.MESSAGE_BYTES_MAX - 512  # the rest is for what stands around the asks

_encoder = msgspec.json.Encoder()
_typed = msgspec.json.Decoder(list[AnyAsk])


def encode(asks: Sequence[AnyAsk]) -> bytes:
    """The asks as they will stand in a message, without the brackets around them. Raises `BadAsk`.

    They are read back as the engine will read them, since one ask with a wrong type would make it refuse the whole
    message, and with it the asks of everybody else who happens to travel along.
    """
    if not 1 <= len(asks) <= limits.MESSAGE_ASKS_MAX:
        raise BadAsk("asks", f"expected 1 to {limits.MESSAGE_ASKS_MAX} asks")
    try:
        encoded = _encoder.encode(asks)
        _typed.decode(encoded)
    except (msgspec.MsgspecError, TypeError, UnicodeEncodeError, OverflowError) as error:
        why, _, place = str(error).partition(" - at `")
        raise BadAsk(place.removesuffix("`").removeprefix("$") or "asks", why) from error
    if len(encoded) > ASKS_BYTES_MAX:
        raise BadAsk("asks", f"at most {ASKS_BYTES_MAX:,} bytes together")
    return encoded[1:-1]


def decode(encoded: bytes) -> list[AnyAsk]:
    """What `encode` made, as asks again. Raises `BadAsk`."""
    try:
        return _typed.decode(b"[%b]" % encoded)
    except msgspec.MsgspecError as error:
        raise BadAsk("asks", str(error)) from error
