"""Who is asking, and what that allows: the admin key of `purse up`, a key that was made, or nobody in particular.

What a caller may say about itself follows from its key and from nothing in a body, header or query that it controls.
Nothing here tells a wrong secret from a key that does not exist.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec
from aiohttp import web

from web.keyring import Keyring
from web.keys import Key, Role, hash_of, is_ours, short_id_of
from web.problems import Problem, unauthorized
from web.purse import Purse
from web.settings import Settings
from web.visitors import Visitors

Access: TypeAlias = Literal["public", "spend", "settle", "life", "batch", "observe", "audit", "admin"]
"""What a route takes. `settle`: the end of a hold. `life`: a look at one hold. `batch`: anything, judged one by one.
The others are named after the role that they are for."""

_ROLES: Mapping[Access, frozenset[Role]] = {
    "public": frozenset({"spend", "observe", "audit"}),
    "spend": frozenset({"spend"}),
    "settle": frozenset({"spend"}),
    "life": frozenset({"spend", "audit"}),
    "batch": frozenset({"spend", "observe"}),
    "observe": frozenset({"observe"}),
    "audit": frozenset({"audit"}),
    "admin": frozenset(),
}
"""Who may use what, beside `admin`, which may use everything."""

_OPEN: frozenset[Access] = frozenset({"spend", "settle", "life", "batch"})
"""What anybody may do where holds are open."""

_ENDED: frozenset[Access] = frozenset({"settle", "life", "batch"})
"""What a key that expired or was revoked may still do, about the holds it opened."""

AUTHENTICATED_LABELS = frozenset({"user", "key", "cohort", "origin"})
"""Labels that say who is asking: only authentication, or an operator, may name them."""

_SCHEME = "bearer "
_NOBODYS_HASH = hash_of("")


class Caller(msgspec.Struct, frozen=True):
    """`name` goes on record as who did it. `role`: None for anybody. `key`: the short id.

    `namespace`: what its holds' ids begin with on the stream. `labels`: what its key says of it. `may_name`: which of
    the labels that come from authentication it may name itself. `ended`: its key opens nothing new.
    """

    name: str = ""
    role: Role | None = None
    key: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = {}
    may_name: frozenset[str] = frozenset()
    ended: Literal["revoked", "expired"] | None = None

    @property
    def admin(self) -> bool:
        return self.role == "admin"

    @property
    def forbidden_labels(self) -> frozenset[str]:
        """What it may not name in a body."""
        return AUTHENTICATED_LABELS - self.may_name

    @property
    def sees_all(self) -> bool:
        """Whether it names holds as they are called on the stream, whoever opened them."""
        return self.role in ("admin", "audit")

    def on_stream(self, id: str) -> str:
        """Its own id as it is called on the stream, where no other key can name it."""
        return f"{self.namespace}/{id}" if self.namespace else id

    def shown(self, id: str) -> str:
        """An id on the stream as this caller calls it."""
        return id.removeprefix(f"{self.namespace}/") if self.namespace else id

    def claimed(self, said: Mapping[str, str]) -> dict[str, str]:
        """The labels of an ask: what its body says, but for what its key says, unless the key may name that."""
        fixed = {name: value for name, value in self.labels.items() if name not in self.may_name or name not in said}
        return {**said, **fixed}


ADMIN: Final = Caller("admin", role="admin", may_name=AUTHENTICATED_LABELS)
ANYBODY: Final = Caller()


def of_key(key: Key, now: int) -> Caller:
    """Whoever brings this key."""
    admin, spends = key.role == "admin", key.role == "spend"
    return Caller(
        name=key.name, role=key.role, key=key.id, namespace="" if key.role in ("admin", "audit") else key.namespace,
        labels=key.claims if admin or spends else {},
        may_name=AUTHENTICATED_LABELS if admin else frozenset(key.names), ended=key.ended(now),
    )  # fmt: skip


class Gate:
    """Lets callers in, or says why not. One a process."""

    def __init__(self, settings: Settings, keys: Keyring, visitors: Visitors, purse: Purse) -> None:
        self._settings, self._keys, self._visitors, self._purse = settings, keys, visitors, purse

    async def admit(self, request: web.Request, access: Access, *, header: str | None = None) -> Caller:
        """Who sends this request, if that allows `access`. `header`: stands in for `Authorization`.

        Raises `Problem` 401 and 403, and `PurseError` where nobody knows whether there is such a key. A wrong key of
        ours is refused even where none is needed: its owner believes to be somebody.
        """
        return await self._admit(request, access, request.headers.get("Authorization", header))

    async def admit_with(self, request: web.Request, access: Access, said: str | None) -> Caller:
        """As `admit`, of a request whose key stands elsewhere; None: it brings none."""
        return await self._admit(request, access, None if said is None else _SCHEME + said)

    async def _admit(self, request: web.Request, access: Access, header: str | None) -> Caller:
        caller = await self._caller(header)
        self.check(caller, access)
        if caller.role == "spend":
            origin = self._visitors.origin(request, self._keys.origin_secret)
            return msgspec.structs.replace(caller, labels={**caller.labels, "origin": origin})
        return caller

    async def admit_key(self, said: str, access: Access) -> Caller:
        """Whose key this is, if that allows `access`. Raises `Problem` 401 and 403, and `PurseError`."""
        caller = await self._caller(_SCHEME + said)
        self.check(caller, access)
        return caller

    async def resume(self, key: str) -> Caller | None:
        """Who signed in with the key of this short id ("": the admin key), as it is today. Raises `PurseError`."""
        if not key:
            return ADMIN if self._settings.admin_key else None
        known = await self._keys.find(key)
        return of_key(known, self._purse.now()) if known is not None else None

    def comes_by_https(self, request: web.Request) -> bool:
        """Whether what this request is answered may be kept for encrypted connections alone."""
        return self._visitors.comes_by_https(request)

    def check(self, caller: Caller, access: Access, *, place: str = "") -> None:
        """Raises `Problem` unless this caller may do that; `place`: where in the request it asks for it."""
        if caller.role is None:
            if access == "public" or (access in _OPEN and self._settings.open):
                return
            raise unauthorized(
                "no-key",
                f"{place}Send `Authorization: Bearer <key>`; `purse up` prints the admin key and keeps it in "
                "DATA/admin.key, `purse key new` makes others.",
            )
        if caller.ended is not None and access not in _ENDED:
            ends = "It may still settle, release and look at the holds it opened."
            raise Problem(403, "key-ended", f"{place}This key {_ENDED_BY[caller.ended]}. {ends}", title="Key ended")
        if not caller.admin and caller.role not in _ROLES[access]:
            raise Problem(403, "role", f"{place}A key with the role {caller.role} may not do this.")

    async def _caller(self, header: str | None) -> Caller:
        if header is None:
            return ANYBODY
        if header[: len(_SCHEME)].lower() != _SCHEME:
            raise _wrong_key()
        said = header[len(_SCHEME) :].strip()
        if self._is_admin(said):
            return ADMIN
        if self._settings.open and not is_ours(said):
            return ANYBODY  # every provider's client sends some key, and here none is needed
        id = short_id_of(said)
        key = await self._keys.find(id) if id is not None else None
        if key is None:
            hmac.compare_digest(hash_of(said), _NOBODYS_HASH)  # as long as a wrong secret takes
            raise _wrong_key()
        if not key.opens(said):
            raise _wrong_key()
        return of_key(key, self._purse.now())

    def _is_admin(self, said: str) -> bool:
        admin_key = self._settings.admin_key
        if not admin_key:
            return False
        return hmac.compare_digest(said.encode("utf-8", "surrogateescape"), admin_key.encode("utf-8"))


_ENDED_BY = {"revoked": "was revoked", "expired": "has expired"}


def _wrong_key() -> Problem:
    return unauthorized("wrong-key", "This key is not known here.")
