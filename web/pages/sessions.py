"""Who is signed in: a signed cookie that names a key, for some hours. It never holds the key, nor anything of it.

Web processes that know the same admin key believe each other's cookies; one without an admin key signs with a secret
that ends with it. The key behind a session is looked up with every request, so a session ends when its key does.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import Final

import msgspec

SESSION_S: Final = 12 * 3600
SESSIONS_ENDED_MAX: Final = 10_000  # that are remembered until they would have ended by themselves
COOKIE: Final = "purse_session"
COOKIE_CHARS_MAX: Final = 512

_NS_PER_S = 1_000_000_000


class Session(msgspec.Struct, frozen=True, array_like=True):
    """`id`: its own, random. `key`: the short id of the key that opened it, "" for the admin key. `until`: ns."""

    id: str
    key: str
    until: int


_decoder = msgspec.json.Decoder(Session)


class Sessions:
    """Writes and reads the cookies of one process."""

    def __init__(self, admin_key: str) -> None:
        seed = admin_key.encode() if admin_key else secrets.token_bytes(32)
        self._secret = blake2b(seed, digest_size=32, person=b"purse-sessions").digest()
        self._ended: dict[str, int] = {}

    def open(self, key: str, now: int) -> str:
        """A cookie for whoever has just shown this key."""
        session = Session(secrets.token_urlsafe(16), key, now + SESSION_S * _NS_PER_S)
        said = urlsafe_b64encode(msgspec.json.encode(session)).decode().rstrip("=")
        return f"{said}.{self._sign(said, b'cookie')}"

    def read(self, cookie: str, now: int) -> Session | None:
        """The session that this cookie stands for; None if it was not written here, is over, or was ended."""
        said, _, mac = cookie.partition(".")
        if len(cookie) > COOKIE_CHARS_MAX or not cookie.isascii():
            return None
        if not hmac.compare_digest(mac, self._sign(said, b"cookie")):
            return None
        session = _decoder.decode(urlsafe_b64decode(said + "=" * (-len(said) % 4)))
        return None if now >= session.until or session.id in self._ended else session

    def end(self, session: Session, now: int) -> None:
        """This process takes it no more. The others do until it is over: whoever signs out loses the cookie too."""
        self._ended = {id: until for id, until in self._ended.items() if until > now}
        if len(self._ended) >= SESSIONS_ENDED_MAX:
            del self._ended[next(iter(self._ended))]
        self._ended[session.id] = session.until

    def form_token(self, session: Session) -> str:
        """What every form of this session carries, and no other site can know."""
        return self._sign(session.id, b"form")

    def is_form_token(self, session: Session, said: str) -> bool:
        return said.isascii() and hmac.compare_digest(said, self.form_token(session))

    def _sign(self, said: str, use: bytes) -> str:
        mac = blake2b(said.encode(), key=self._secret, digest_size=32, person=use).digest()
        return urlsafe_b64encode(mac).decode().rstrip("=")
