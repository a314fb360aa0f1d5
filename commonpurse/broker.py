"""What `purse doctor` asks the broker beside the stream: what this user may do there, and whether keys can be read.

No key, hash or secret is ever in what it says.
"""

from __future__ import annotations

import msgspec

from commonpurse.findings import Report
from engine.bucket import Bucket
from engine.errors import NoAnswer, StreamRefused
from engine.journal import Journal
from engine.nats_roles import STREAM_ACTS
from web.keyring import ORIGIN_SECRET, WORD
from web.keys import Key

WAIT_S = 2.0
NAMED_MAX = 5
WHO_AM_I = "$SYS.REQ.USER.INFO"


class _Side(msgspec.Struct, frozen=True):
    allow: list[str] | None = None
    deny: list[str] | None = None

    def may(self, subject: str) -> bool:
        if any(covers(pattern, subject) for pattern in self.deny or ()):
            return False
        return self.allow is None or any(covers(pattern, subject) for pattern in self.allow)


class _Permissions(msgspec.Struct, frozen=True):
    publish: _Side = _Side()


class _User(msgspec.Struct, frozen=True):
    user: str = ""
    permissions: _Permissions = _Permissions()


class _Said(msgspec.Struct, frozen=True):
    data: _User = _User()


def covers(pattern: str, subject: str) -> bool:
    """Whether a subject is among those that a pattern of the broker means: `*` one token, `>` all that follow."""
    wanted, found = pattern.split("."), subject.split(".")
    for place, part in enumerate(wanted):
        if part == ">":
            return len(found) > place
        if place >= len(found) or part not in ("*", found[place]):
            return False
    return len(found) == len(wanted)


async def look_at_broker(journal: Journal, report: Report) -> None:
    """Adds what it finds; what cannot be asked is said, and is no fault of the wallet."""
    await _look_at_permissions(journal, report)
    await _look_at_keys(journal, report)


async def _look_at_permissions(journal: Journal, report: Report) -> None:
    try:
        said = await journal.request(WHO_AM_I, wait_s=WAIT_S)
        me = msgspec.json.decode(said, type=_Said).data
    except (NoAnswer, msgspec.DecodeError):
        return report.add("permissions", "The broker does not say what this user may do there.")
    stream = journal.names.stream
    may = [act for act in STREAM_ACTS if me.permissions.publish.may(f"$JS.API.STREAM.{act}.{stream}")]
    if may:
        says = (
            f"The NATS user {me.user!r} may change or empty the stream ({', '.join(may)}): keep it for an operator, "
            "and give the wallet's processes users of their own."
        )
        return report.add("permissions", says, state="warning")
    return report.add("permissions", f"The NATS user {me.user!r} may not change, empty or delete the stream.")


async def _look_at_keys(journal: Journal, report: Report) -> None:
    keys, unreadable, secret, seq = list[Key](), list[str](), False, 0
    bucket = Bucket(journal, WORD)
    try:
        while (kept := await bucket.next_after(seq)) is not None:
            seq = kept.seq
            if kept.name == ORIGIN_SECRET:
                secret = True
                continue
            try:
                keys.append(msgspec.json.decode(kept.document, type=Key))
            except (msgspec.DecodeError, UnicodeDecodeError):
                unreadable.append(kept.name)
        now = await journal.now()
    except (NoAnswer, StreamRefused) as error:
        return report.add("keyring", f"The keys cannot be read here ({error}).", state="warning")
    if unreadable:
        which = ", ".join(unreadable[:NAMED_MAX])
        says = f"What is kept of {len(unreadable):,} keys cannot be read ({which}): nobody gets in by them."
        report.add("keyring", f"{says} Make new ones with `purse key new`.", state="problem")
    if keys and not secret:
        says = "Keys are there, and the secret that hides addresses is not: a leaked key would not be noticed."
        report.add("keyring", says, state="problem")
    ended = sum(key.ended(now) is not None for key in keys)
    return report.add("keyring", f"{len(keys):,} keys are kept beside the stream, {ended:,} of them have ended.")
