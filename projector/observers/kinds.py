"""The providers whose figures can be observed: what each counts, how late it is, where it is asked, and with what.

A new provider is one entry here and one module that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import msgspec

Name: TypeAlias = Literal["cloudflare", "openrouter", "openai", "anthropic"]
AccountRule: TypeAlias = Literal["required", "optional", "none"]


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a provider's report before it is asked.

    `account`: what the config's `account` names, and whether it must. `quiet_s` and `read_on_s`: see `days_to_read`.
    `headers` makes the ones that carry the key.
    """

    unit: str
    base_url: str
    account: AccountRule
    account_means: str
    read_on_s: int
    quiet_s: int = 0
    headers: Callable[[str], Mapping[str, str]]


def _bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _anthropic(key: str) -> Mapping[str, str]:
    return {"x-api-key": key, "anthropic-version": "2023-06-01"}


KINDS: Mapping[Name, Kind] = {
    "cloudflare": Kind(
        unit="neurons",
        base_url="https://api.cloudflare.com/client/v4",
        account="required",
        account_means="the account's id (32 hex digits)",
        read_on_s=30 * 60,  # five times the longest lag that was measured (365 s)
        headers=_bearer,
    ),
    "openrouter": Kind(
        unit="usd",
        base_url="https://openrouter.ai/api/v1",
        account="none",
        account_means="the key is the account",
        read_on_s=0,  # it knows only today
        quiet_s=5 * 60,  # "today" without a date: a figure of yesterday would use the new day up for good
        headers=_bearer,
    ),
    "openai": Kind(
        unit="usd",
        base_url="https://api.openai.com/v1",
        account="optional",
        account_means="a project's id",
        read_on_s=6 * 3600,  # bills come late
        headers=_bearer,
    ),
    "anthropic": Kind(
        unit="usd",
        base_url="https://api.anthropic.com/v1",
        account="optional",
        account_means='a workspace\'s id, or "default"',
        read_on_s=6 * 3600,
        headers=_anthropic,
    ),
}
