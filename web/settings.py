"""What one web process is told from outside: a few environment variables, the local tables of `purse.toml`
and the keys that both name, nothing else.

Nothing here is on the stream, so nothing here may change what is decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.core.limits import VISITS_ASK_PER_MINUTE, VISITS_ESTIMATE_PER_MINUTE
from engine.errors import Misconfigured
from engine.plan_file import Local, read
from web.ask_settings import STAND_IN, AskSettings, read_ask
from web.proxy.upstreams import Upstream, read_upstreams

REFUSAL_STATUSES = (402, 403, 429)
ADMIN_KEY_FILE = "admin.key"
NATS_URL = "nats://127.0.0.1:4222"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`open`: holds are taken without a key. `refusal_status`: what a caller gets when a budget is used up.

    `upstreams`: where guarded calls go, by name. `prices`: what the operator's file says beside the price book.
    `price_book`: a file with another book than the one that ships, made by `purse prices import`.
    `ask`: what the page's ask box asks, None where there is none. `trusted_proxies`: see `web.visitors`.
    `asks_per_minute`, `estimates_per_minute`: of one stranger; `visit_wait_s`: how long an engine has to count a visit.
    """

    nats_url: str = field(default=NATS_URL, repr=False)  # has credentials in it
    wallet: str = "main"
    data: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    open: bool = False
    refusal_status: int = 402
    admin_key: str = field(default="", repr=False)
    upstreams: Mapping[str, Upstream] = field(default_factory=dict)
    prices: Mapping[str, object] = field(default_factory=dict)
    price_book: Path | None = None
    ask: AskSettings | None = None
    trusted_proxies: tuple[str, ...] = ()
    asks_per_minute: int = VISITS_ASK_PER_MINUTE
    estimates_per_minute: int = VISITS_ESTIMATE_PER_MINUTE
    visit_wait_s: float = 0.1


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Read `PURSE_...`; what it does not say stands in the `[web]` table of `PURSE_CONFIG`, if there is one.

    Raises `Misconfigured` naming the variable, or the file and the place in it.
    """
    said = {name: value for name, value in environment.items() if name.startswith("PURSE_") and value}
    data = Path(said["PURSE_DATA"]) if "PURSE_DATA" in said else None
    local = read(Path(said["PURSE_CONFIG"])).local if "PURSE_CONFIG" in said else Local()
    plain = local.web
    return Settings(
        nats_url=said.get("PURSE_NATS_URL", NATS_URL),
        wallet=said.get("PURSE_WALLET", "main"),
        data=data,
        host=said.get("PURSE_HOST", plain.host),
        port=_number(said, "PURSE_PORT", default=plain.port, allowed=range(65_536)),
        open=said.get("PURSE_OPEN") == "1",
        refusal_status=_number(said, "PURSE_REFUSAL_STATUS", default=plain.refusal_status, allowed=REFUSAL_STATUSES),
        admin_key=read_admin_key(data),
        upstreams=read_upstreams(local.upstreams, environment),
        prices=local.prices,
        price_book=Path(said["PURSE_PRICE_BOOK"]) if "PURSE_PRICE_BOOK" in said else None,
        ask=read_ask(local.ask) if local.ask else None if "PURSE_CONFIG" in said else STAND_IN,
        trusted_proxies=tuple(plain.trusted_proxies),
        asks_per_minute=plain.asks_per_minute,
        estimates_per_minute=plain.estimates_per_minute,
        visit_wait_s=plain.visit_wait_ms / 1000,
    )


def read_admin_key(data: Path | None) -> str:
    """The key in `DATA/admin.key`, "" where there is none: then nobody is an admin."""
    if data is None:
        return ""
    try:
        return (data / ADMIN_KEY_FILE).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"PURSE_DATA: cannot read {ADMIN_KEY_FILE}: {type(error).__name__}") from error


def _number(said: Mapping[str, str], name: str, *, default: int, allowed: range | tuple[int, ...]) -> int:
    text = said.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) in allowed):
        shown = f"0 to {allowed[-1]}" if isinstance(allowed, range) else ", ".join(map(str, allowed))
        raise Misconfigured(f"{name}: expected one of {shown}")
    return int(text)
