"""The hash that ties every told to all that came before it. Pure bytes in, bytes out.

    chain = BLAKE2b-256( previous chain
                       + of each ask message covered: sequence, timestamp (8 bytes each, big-endian), raw bytes
                       + the told's own raw bytes before the chain field )

The chain field stands last in the told message, so its bytes can be cut off again without parsing.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import TypeAlias

GENESIS = bytes(32)
"""The chain before the first told."""

Covered: TypeAlias = tuple[int, int, bytes]
"""An ask message as it lies on the stream: sequence, timestamp in ns, raw bytes."""

_FIELD = b',"chain":"'
_TAIL_BYTES = len(_FIELD) + 64 + len(b'"}')


class NotChainedError(ValueError):
    """The bytes do not end in a chain field."""


def link(previous: bytes, covered: Iterable[Covered], body: bytes) -> bytes:
    """The chain after a told whose bytes before the chain field are `body`."""
    running = blake2b(previous, digest_size=32)
    for seq, timestamp, raw in covered:
        running.update(seq.to_bytes(8) + timestamp.to_bytes(8))
        running.update(raw)
    running.update(body)
    return running.digest()


def seal(body: bytes, chain: bytes) -> bytes:
    """The message as it is stored: `body` (an encoded told without its last brace) with the chain put behind."""
    return body + _FIELD + chain.hex().encode() + b'"}'


def is_sealed(message: bytes) -> bool:
    """Whether the bytes end as a told does. Whether there is a chain, and the right one, is for others to say."""
    return message[-_TAIL_BYTES:].startswith(_FIELD)


def open_sealed(message: bytes) -> tuple[bytes, bytes]:
    """Split a stored told into its body and its chain. Raises `NotChainedError`."""
    body, tail = message[:-_TAIL_BYTES], message[-_TAIL_BYTES:]
    if not (tail.startswith(_FIELD) and tail.endswith(b'"}')):
        raise NotChainedError("a told message ends in its chain")
    try:
        chain = bytes.fromhex(tail[len(_FIELD) : -2].decode())
    except ValueError as error:
        raise NotChainedError("a chain is 64 hexadecimal digits") from error
    if seal(body, chain) != message:  # capitals and blanks read the same, but they are not what was stored
        raise NotChainedError("a chain is written in lower case and without blanks")
    return body, chain
