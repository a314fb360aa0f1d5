"""What `purse doctor` looks at, and what it found: data only, and never a key or a password."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from engine.core.messages import Clock, Loss

State = Literal["ok", "warning", "problem", "untrusted"]
"""`warning`: worth a look, and no reason for another exit code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What is looked at. `nats`: a server that runs elsewhere; else the one on the data folder, started if need be.

    `now`: this machine's clock, ns.
    """

    data: Path
    wallet: str = "main"
    nats: str | None = None
    config: Path | None = None
    now: Callable[[], int] = time.time_ns


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at, in words for the person who must do something about it."""

    check: str
    state: State
    says: str


class Report(msgspec.Struct):
    """All that was looked at. `lost`: ranges of sequences; `loss` and `clock`: what was appended, if anything."""

    findings: list[Finding] = []
    lost: list[tuple[int, int]] = []
    loss: Loss | None = None
    clock: Clock | None = None

    def add(self, check: str, says: str, *, state: State = "ok") -> None:
        self.findings.append(Finding(check, state, says))

    @property
    def exit_code(self) -> int:
        """0 all is well, 1 there are problems, 4 the stream cannot be trusted."""
        states = {finding.state for finding in self.findings}
        return 4 if "untrusted" in states else 1 if "problem" in states else 0
