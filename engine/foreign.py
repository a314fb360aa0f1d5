"""What NATS itself wrote where only engines may write. It counts for nothing, and no told in any state passes for it.

A server sends its answers wherever a publisher says. Whoever may only ask can name `purse.main.told` as the place, and
what the server says of the ask then lies there: an acknowledgement, or an answer of its API. Nothing was decided by it.

    {"stream":"PURSE_main","seq":812}
    {"type":"io.nats.jetstream.api.v1.stream_info_response", ..}

The rule is narrow, so that no damage makes a told look foreign: it must be one whole JSON object that has what the
server's answers have and not one of a told's own fields. A torn told is no object; one with a changed byte still has
four of its five names. And a told in whose place somebody puts such an answer is missed by the chain of the next one.
"""

from __future__ import annotations

import msgspec

from engine.core.chain import is_sealed

OF_A_TOLD = frozenset({"v", "engine", "upto", "n", "told", "chain"})
OF_THE_SERVER = frozenset({"stream", "error", "type"})

_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def is_foreign(data: bytes) -> bool:
    """Whether these bytes, which lie among the tolds, are the server's own and no told in any state."""
    if is_sealed(data):  # as every told is: nothing needs to be read
        return False
    try:
        fields = _decoder.decode(data).keys()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return bool(fields & OF_THE_SERVER) and not fields & OF_A_TOLD
