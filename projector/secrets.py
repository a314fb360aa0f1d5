"""Addresses and secrets that the environment holds: named in `purse.toml` by their variables, never written there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from engine.core.limits import TEXT_CHARS_MAX
from engine.errors import Misconfigured

SECRET_CHARS_MAX = 1_024
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,127}", re.ASCII)  # capitals: a secret here by mistake is not repeated
_SECRET = re.compile(rf"[!-~]{{1,{SECRET_CHARS_MAX}}}", re.ASCII)


def secret_of(variable: object, environment: Mapping[str, str], place: str) -> str:
    """What the variable holds. Raises `Misconfigured`, naming the variable and never what is in it."""
    if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
        raise Misconfigured(f"{place}: expected the name of an environment variable in capitals, never the secret")
    found = environment.get(variable, "").strip()
    if not found:
        raise Misconfigured(f"{place}: the environment variable {variable} is not set")
    if not _SECRET.fullmatch(found):
        raise Misconfigured(f"{place}: {variable} must hold printable characters without spaces")
    return found


def webhook_address(written: str, place: str) -> str:
    """An address that may be secret itself, encrypted unless it is on this machine. Raises `Misconfigured`."""
    wrong = Misconfigured(f"{place}: expected https://host/path, or http:// on this machine")
    try:
        parts = urlsplit(written)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise wrong from None
    if len(written) > TEXT_CHARS_MAX or not host or parts.username is not None or parts.fragment:
        raise wrong
    if parts.scheme != "https" and not (parts.scheme == "http" and is_here(host)):
        raise wrong
    return written


def is_here(host: str) -> bool:
    """Whether this is this machine, so that nothing goes over a network unencrypted."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
