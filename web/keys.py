"""Keys: what one looks like, what is kept of it, and what it may say about whoever brings it.

    cp_<short id>_<secret><checksum>         such as cp_7f3qk2m5xa_..., 65 characters in all

The short id names the key everywhere: in logs, in the label `key`, as the namespace of its holds. The secret has 238
bits, so its plain hash is all that need be kept: nobody can try them. The checksum tells a mistyped key from an unknown
one without asking anybody, and the fixed shape lets secret scanners find one that leaked. A key is shown once, when it
is made; nothing here logs or stores one.
"""

from __future__ import annotations

import hmac
import re
import secrets
import string
from hashlib import blake2b
from typing import Literal, TypeAlias
from zlib import crc32

import msgspec

from engine.core import limits

Role: TypeAlias = Literal["spend", "observe", "audit", "admin"]
"""`spend`: holds, settles and what belongs to them, guarded calls. `observe`: the provider's figures. `audit`: looks at
days, events and any hold. `admin`: everything."""

NAMEABLE = ("user", "cohort")
"""What a key may be made to name: an app's own server says for whom it asks."""

KEYS_MAX = 10_000  # in one wallet, ended ones too: a web process reads them all when it starts
KEY_LABELS_MAX = 8  # fixed on one key; with user, key, cohort and origin this leaves its caller four of its own
EXPIRES_S_MAX = 10 * 366 * 24 * 3600

PREFIX = "cp_"
OURS = (PREFIX, "purse_")
"""How keys of ours begin: `purse_` is the one that `purse up` makes."""

_ID_CHARS, _SECRET_CHARS, _CHECKSUM_CHARS = 10, 40, 6
_ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # none that reads like another
_ALPHABET = string.digits + string.ascii_letters
_KEY = re.compile(rf"cp_([{_ID_ALPHABET}]{{{_ID_CHARS}}})_[A-Za-z0-9]{{{_SECRET_CHARS + _CHECKSUM_CHARS}}}", re.ASCII)
_SHORT_ID = re.compile(rf"[{_ID_ALPHABET}]{{{_ID_CHARS}}}", re.ASCII)


class Key(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a key. A stored format: a field may be added with a default, none renamed, retyped or removed.

    `hash`: of the whole key, in hex. `names`: which of user and cohort its callers may name themselves; what it has of
    these is then their default. `namespace`: whose holds it speaks of, its own or that of the key it replaced. Moments
    are ns of stream time. `made_by`, `revoked_by`: who did it, as on the stream.
    """

    id: str
    hash: str
    role: Role
    namespace: str
    created_at: int
    made_by: str
    user: str = ""
    cohort: str = ""
    labels: dict[str, str] = {}
    names: tuple[str, ...] = ()
    expires_at: int | None = None
    replaces: str = ""
    note: str = ""
    revoked_at: int | None = None
    revoked_by: str = ""
    reason: str = ""

    @property
    def name(self) -> str:
        """Who did it, where something is put on record: the short id, and the user's name where it has one."""
        return f"{self.id} ({self.user})" if self.user else self.id

    @property
    def claims(self) -> dict[str, str]:
        """The labels of everything that it asks for."""
        claims = {**self.labels, "key": self.id}
        if self.user:
            claims["user"] = self.user
        if self.cohort:
            claims["cohort"] = self.cohort
        return claims

    def opens(self, said: str) -> bool:
        """Whether `said` is this key, in a time that tells nothing about it."""
        return hmac.compare_digest(hash_of(said), self.hash)

    def ended(self, now: int) -> Literal["revoked", "expired"] | None:
        """Why it opens nothing new any more, None while it does."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and now >= self.expires_at else None


def make_key() -> tuple[str, str]:
    """A fresh short id and the key with it."""
    id = _random(_ID_ALPHABET, _ID_CHARS)
    body = f"{PREFIX}{id}_{_random(_ALPHABET, _SECRET_CHARS)}"
    return id, body + _checksum(body)


def hash_of(key: str) -> str:
    """What is kept of a key, in hex."""
    return blake2b(key.encode("utf-8", "surrogateescape"), digest_size=32).hexdigest()


def short_id_of(said: str) -> str | None:
    """The short id in what should be a key; None if it cannot be one, mistyped or not."""
    found = _KEY.fullmatch(said)
    if found is None or _checksum(said[:-_CHECKSUM_CHARS]) != said[-_CHECKSUM_CHARS:]:
        return None
    return found[1]


def is_short_id(written: str) -> bool:
    return _SHORT_ID.fullmatch(written) is not None


def is_ours(said: str) -> bool:
    """Whether it is meant to be a key of ours, right or wrong."""
    return said.startswith(OURS)


def _random(alphabet: str, chars: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(chars))


def _checksum(body: str) -> str:
    left, written = crc32(body.encode("ascii")), ""
    for _ in range(_CHECKSUM_CHARS):
        left, digit = divmod(left, len(_ALPHABET))
        written += _ALPHABET[digit]
    return written


assert _ID_CHARS + 1 + limits.CALLER_ID_CHARS_MAX + len(":s") <= limits.ID_CHARS_MAX  # <namespace>/<id>:s
