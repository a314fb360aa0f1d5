"""Common Purse: a hard cap on what AI calls may cost. `from commonpurse import Purse` is the whole of it for a program.

That one speaks to the wallet's broker. Over HTTP, with a key: `commonpurse.sync.Purse`, `commonpurse.aio.Purse`.

The names come from the engine when they are first used, so that importing the package (as `purse --help` does) costs
nothing. This package is the face: it imports downwards and nothing imports it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.client import Purse
    from engine.errors import (
        BadAsk,
        Exhausted,
        Misconfigured,
        NoAnswer,
        NotAllowed,
        NotKept,
        PurseError,
        Refused,
        StreamRefused,
        Untrusted,
    )

__all__ = [
    "Purse", "PurseError", "Refused", "Exhausted", "BadAsk", "NotAllowed", "NoAnswer", "StreamRefused", "NotKept",
    "Misconfigured", "Untrusted",
]  # fmt: skip

_HOME = {"Purse": "engine.client"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME.get(name, "engine.errors")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
