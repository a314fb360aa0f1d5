"""Who hears of alerts, and in which words: a Slack-compatible webhook, or JSON for programs.

    {"v": 1, "id": "alert:percent:jev:2026-11-30:75", "wallet": "main", "rule": "percent", "budget": "jev",
     "period": "2026-11-30", "threshold": "75", "unit": "usd", "figures": {"used": "3.75", "limit": "5", ...},
     "text": "jev 2026-11-30: 75 % used: $3.75 of $5.00, ...", "seq": 9041, "at": "2026-11-30T14:05:00Z"}

Figures are decimal strings of the unit. The body of an alert is the same whenever it is sent, on every projector.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from engine.stream_clock import written
from projector.alerts.alert import Alert
from projector.delivery.parcel import Carrier, Parcel

TargetKind: TypeAlias = Literal["slack", "json"]

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSettings:
    """`url` and `secret` stand in no error, log or representation. `timeout_s`: how long it may take to answer."""

    name: str
    kind: TargetKind
    url: str = field(repr=False)
    secret: str = field(default="", repr=False)
    timeout_s: int


@dataclass(frozen=True, slots=True)
class Target:
    settings: TargetSettings
    carrier: Carrier


def parcel_of(alert: Alert, kind: TargetKind, wallet: str) -> Parcel:
    """What is sent."""
    body = {"text": f"[{wallet}] {alert.text}"} if kind == "slack" else _document(alert, wallet)
    return Parcel(_header(alert.id), _encoder.encode(body))


def _document(alert: Alert, wallet: str) -> dict[str, object]:
    return {
        "v": 1,
        "id": alert.id,
        "wallet": wallet,
        "rule": alert.rule,
        "budget": alert.budget,
        "period": alert.period,
        "threshold": alert.threshold,
        "unit": alert.unit,
        "figures": alert.figures,
        "text": alert.text,
        "seq": alert.seq,
        "at": written(alert.at),
    }


def _header(id: str) -> str:
    """An id as a header may hold it. All but names of guards and losses are so by themselves."""
    return "".join(each if "!" <= each <= "~" else "?" for each in id)
