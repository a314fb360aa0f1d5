"""`[seals]` of `purse.toml`: where else each day's seal goes, besides the witness on the disk.

    [seals]
    nats_url_env = "SEALS_NATS_URL"           # a server or account that the wallet's own people cannot write anew
    subject = "seals.main"                    # each seal under <subject>.<day>
    webhook_url_env = "SEALS_WEBHOOK_URL"
    webhook_secret_env = "SEALS_WEBHOOK_SECRET"

Everything is checked before anything starts; addresses and secrets stand in the environment and are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.core.limits import NAME_CHARS_MAX
from engine.errors import Misconfigured
from engine.journal import servers_of
from engine.plan_file import read
from projector.secrets import secret_of, webhook_address

FIELDS = ("nats_url_env", "subject", "webhook_url_env", "webhook_secret_env")
_SUBJECT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", re.ASCII)
_SUBJECT_CHARS_MAX = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class SealSettings:
    """Empty where nothing is delivered. Addresses and secret stand in no error, log or representation."""

    nats_url: str = field(default="", repr=False)
    subject: str = ""
    webhook_url: str = field(default="", repr=False)
    webhook_secret: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.nats_url or self.webhook_url)


def seals_of(config: Path | None, *, environment: Mapping[str, str]) -> SealSettings:
    """The settings of a `purse.toml`. Raises `Misconfigured` naming file and place."""
    if config is None:
        return SealSettings()
    try:
        return read_seals(read(config).local.seals, environment=environment)
    except Misconfigured as error:
        raise Misconfigured(f"{config}: {error}") from None


def read_seals(written: Mapping[str, object], *, environment: Mapping[str, str]) -> SealSettings:
    """What the table asks for. Raises `Misconfigured` naming the place."""
    for name in written:
        if name not in FIELDS:
            shown = name[:NAME_CHARS_MAX] if name.isprintable() else "(a name that cannot be shown)"
            raise Misconfigured(f"seals.{shown}: unknown; known here: {', '.join(FIELDS)}")
    for one, other in (("nats_url_env", "subject"), ("webhook_url_env", "webhook_secret_env")):
        for missing, given in ((one, other), (other, one)):
            if given in written and missing not in written:
                raise Misconfigured(f"seals.{missing}: is required with {given}")
    nats_url = webhook_url = secret = ""
    if "nats_url_env" in written:
        nats_url = secret_of(written["nats_url_env"], environment, "seals.nats_url_env")
        _check_nats(nats_url)
    if "webhook_url_env" in written:
        webhook_url = secret_of(written["webhook_url_env"], environment, "seals.webhook_url_env")
        webhook_address(webhook_url, "seals.webhook_url_env")
        secret = secret_of(written["webhook_secret_env"], environment, "seals.webhook_secret_env")
    return SealSettings(nats_url=nats_url, subject=_subject(written), webhook_url=webhook_url, webhook_secret=secret)


def _check_nats(url: str) -> None:
    try:
        servers_of(url)
    except Misconfigured as error:
        raise Misconfigured(f"seals.nats_url_env: {error}") from None


def _subject(written: Mapping[str, object]) -> str:
    subject = written.get("subject", "")
    if "subject" not in written:
        return ""
    if not isinstance(subject, str) or len(subject) > _SUBJECT_CHARS_MAX or not _SUBJECT.fullmatch(subject):
        raise Misconfigured("seals.subject: expected words of letters, digits, - and _ with dots between")
    return subject
