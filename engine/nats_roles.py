"""What each of our processes may say and hear on the broker, so that none can do another's work by mistake or malice.

    operator    makes the wallet's stream and its first plan; changing or emptying a stream is for no user of ours
    engine      tells; alone
    projector   keeps its documents, passes on what observers and alerts ask
    web         appends what people ask; keeps the keys
    client      another program that asks: it appends asks, and nothing else

`deploy/nats/cluster.conf` says the same for a cluster of your own; a test tries both. A denied publish is no answer to
whoever sent it: it looks like silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["engine", "projector", "web", "client"]
ROLES: tuple[Role, ...] = ("engine", "projector", "web", "client")

Permissions: TypeAlias = Mapping[Literal["publish", "subscribe"], Mapping[Literal["allow", "deny"], list[str]]]

STREAM_ACTS = ("UPDATE", "DELETE", "PURGE", "RESTORE", "MSG.DELETE")
"""New settings can empty even an append-only stream."""


def permissions(role: Role, wallet: str) -> Permissions:
    """Of one role in one wallet, as the server's configuration has them."""
    subject = f"purse.{wallet}"
    never = [f"$JS.API.STREAM.{act}.*" for act in STREAM_ACTS] + [f"$JS.API.STREAM.CREATE.PURSE_{wallet}"]
    tells, operates = [f"{subject}.told"], [f"{subject}.admin"]
    projected = [f"$KV.PURSE_{wallet}_{documents}.>" for documents in ("days", "alerts")]
    match role:
        case "engine":
            deny = [*never, *operates, f"{subject}.look", *projected, *_touches_keys(wallet)]
        case "projector":
            deny = [*never, *tells, f"{subject}.look", *_touches_keys(wallet)]
        case "web":
            deny = [*never, *tells, f"{subject}.live", *projected]
        case "client":
            api = [f"$JS.API.STREAM.{call}.PURSE_{wallet}" for call in ("INFO", "MSG.GET")]
            allow = [f"{subject}.ask", f"{subject}.ready", f"{subject}.read.>", *api]
            return {"publish": {"allow": allow}, "subscribe": {"allow": ["_INBOX.>", f"{subject}.live"]}}
    return {"publish": {"deny": deny}, "subscribe": {"deny": [] if role == "web" else [f"$KV.PURSE_{wallet}_keys.>"]}}


def _touches_keys(wallet: str) -> list[str]:
    """Writing keys, and reading what is kept of them."""
    bucket = f"KV_PURSE_{wallet}_keys"
    reads = ("STREAM.CREATE", "STREAM.MSG.GET", "DIRECT.GET", "CONSUMER.CREATE")
    return [
        f"$KV.PURSE_{wallet}_keys.>",
        *(f"$JS.API.{read}.{bucket}" for read in reads),
        *(f"$JS.API.{read}.{bucket}.>" for read in ("DIRECT.GET", "CONSUMER.CREATE", "CONSUMER.DURABLE.CREATE")),
    ]
