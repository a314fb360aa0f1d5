"""How a wallet's stream is named and set, and whether one that is there still is. Talks to no server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

FORMAT = "1"
DUPLICATE_WINDOW_S = 120
MESSAGE_BYTES_MAX = 8 * 1024 * 1024


@dataclass(frozen=True)
class Names:
    """The subjects of one wallet."""

    wallet: str

    @property
    def stream(self) -> str:
        return f"PURSE_{self.wallet}"

    def subject(self, word: str) -> str:
        """`ask`, `admin` and `told` lie on the stream; others are core NATS (`ready`, `live`, `read.status` ...)."""
        return f"purse.{self.wallet}.{word}"


def settings(names: Names, *, replicas: int) -> dict[str, Any]:
    """The stream's settings, each because without it money was lost or granted twice somewhere."""
    return {
        "name": names.stream,
        "subjects": [names.subject(kind) for kind in ("ask", "admin", "told")],
        "retention": "limits",
        "storage": "file",
        "discard": "new",  # a full stream refuses, it never forgets
        "num_replicas": replicas,
        "duplicate_window": DUPLICATE_WINDOW_S * 10**9,
        "max_msg_size": MESSAGE_BYTES_MAX,
        "deny_delete": True,
        "deny_purge": True,
        "allow_direct": True,
        "compression": "none",
        "metadata": {"commonpurse.format": FORMAT},
    }


def drift(names: Names, found: Mapping[str, Any]) -> list[str]:
    """What of the settings `found` is not as this release relies on, a sentence each; empty where all is well.

    The number of copies is the operator's.
    """
    return [*_differing(names, found), *_never_set(found), *_of_another_format(found)]


def _differing(names: Names, found: Mapping[str, Any]) -> Iterator[str]:
    for field, wanted in settings(names, replicas=1).items():
        if field not in ("num_replicas", "metadata") and found.get(field, _UNSET.get(field)) != wanted:
            yield f"{field} is {found.get(field)!r}, should be {wanted!r}"


def _never_set(found: Mapping[str, Any]) -> Iterator[str]:
    for field, why in _NEVER_SET.items():
        if _is_set(found.get(field)):
            yield f"{field} is set; {why}"


def _of_another_format(found: Mapping[str, Any]) -> Iterator[str]:
    metadata: Mapping[str, str] = found.get("metadata") or {}
    if metadata.get("commonpurse.format") != FORMAT:
        yield f"format is {metadata.get('commonpurse.format')!r}, this release reads {FORMAT!r}"


def _is_set(value: object) -> bool:
    return value not in (None, False, 0, -1, "", "default", [])


_UNSET = {"compression": "none"}  # how the server shows what it leaves out

_NEVER_SET = {
    "max_age": "it would break replay from the beginning",
    "max_msgs_per_subject": "it would drop old messages in spite of `discard: new`",
    "allow_msg_ttl": "a message that ends by itself is a gap",
    "allow_rollup_hdrs": "one message could remove all before it",
    "allow_msg_schedules": "it allows rollups",
    "allow_msg_counter": "it changes what is stored",
    "subject_transform": "asks would lie elsewhere",
    "mirror": "a mirror takes no asks",
    "sources": "messages of others would come in",
    "no_ack": "nobody would know what is on disk",
    "persist_mode": "it would acknowledge before writing",
}
"""Settings that no wallet's stream has, and what they would do."""
