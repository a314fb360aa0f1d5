"""Who is asking: an operator with the admin key, or, where holds are open to all, anybody.

What a caller may say about itself follows from here and from nothing in a body or header that it controls.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Literal

from aiohttp import web

from web.problems import unauthorized
from web.settings import Settings

Access = Literal["public", "spend", "admin"]
"""`public`: anybody. `spend`: whoever may hold (anybody, where holds are open). `admin`: the admin key."""

AUTHENTICATED_LABELS = frozenset({"user", "key", "cohort", "origin"})
"""Labels that say who is asking: only authentication, or an operator, may name them."""

_SCHEME = "bearer "


@dataclass(frozen=True, slots=True)
class Caller:
    """`name` goes on record as who did it; `forbidden_labels` may not be named by this caller."""

    name: str
    admin: bool = False
    forbidden_labels: frozenset[str] = AUTHENTICATED_LABELS


ADMIN = Caller("admin", admin=True, forbidden_labels=frozenset())
ANYBODY = Caller("")


def authenticate(request: web.Request, access: Access, settings: Settings) -> Caller:
    """Raises `Problem` 401. A wrong key is refused even where none is needed: its owner believes to be somebody."""
    return caller_of(request.headers.get("Authorization"), access, settings)


def caller_of(header: str | None, access: Access, settings: Settings) -> Caller:
    """As `authenticate`, of an `Authorization` header."""
    if header is not None:
        if _is_admin(header, settings.admin_key):
            return ADMIN
        raise unauthorized("wrong-key", "This key is not known here.")
    if access == "public" or (access == "spend" and settings.open):
        return ANYBODY
    raise unauthorized(
        "no-key", "Send `Authorization: Bearer <key>`; `purse up` prints it and keeps it in DATA/admin.key."
    )


def _is_admin(header: str, admin_key: str) -> bool:
    if not admin_key or header[: len(_SCHEME)].lower() != _SCHEME:
        return False
    said = header[len(_SCHEME) :].strip()
    return hmac.compare_digest(said.encode("utf-8", "surrogateescape"), admin_key.encode("utf-8"))
