"""One call of each route, in an order that works on a new wallet with the default plan, and what it is answered.

They stand in `/openapi.json` and in `docs/reference/http.md`; a test makes these very calls with curl and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """`address`: the path with values, if it needs any. `body`, `answer`: JSON. `lines`: what is shown of an answer in
    text. `keeps`: shell variable -> the member of the answer that later examples need.

    Where one stands in an address or body (`$TODAY`), the shell puts its value.
    """

    status: int = 200
    answer: object = None
    body: object = None
    address: str = ""
    lines: tuple[str, ...] = ()
    keeps: Mapping[str, str] = field(default_factory=dict)


STANDS_FOR = {"$TODAY": "2026-12-01", "$DIGEST": "583cb6500aeea468b1841796476724d6"}
"""What variables in bodies are in the document."""

# fmt: off
EXAMPLES: Mapping[str, Example] = {
    "POST /v1/holds": Example(
        status=201,
        body={"id": "call-1", "amounts": {"usd": "0.25"}, "labels": {"provider": "jev"}},
        answer={"outcome": "held", "id": "call-1", "option": 0, "amounts": {"usd": "0.25"},
            "at": "2026-12-01T16:29:43.924Z", "expires_at": "2026-12-01T16:39:43.924Z",
            "periods": {"jev": "2026-12-01"}, "tier": 0, "remaining": {"jev": "0.75"}, "receipt": {"seq": 4,
            "chain": "567367914e4228180d4da41cf567d53086a399e3c860092f2c4551707d390ead"}},
    ),
    "POST /v1/holds:batch": Example(
        body={"asks": [{"ask": "hold", "id": "call-2", "amounts": {"usd": "0.10"}, "labels": {"provider": "jev"}},
            {"ask": "hold", "id": "call-3", "amounts": {"usd": "0.10"}, "labels": {"provider": "jev"}}, {"ask": "hold",
            "id": "call-4", "amounts": {"usd": "0.75"}, "labels": {"provider": "jev"}}]},
        answer={"told": [{"status": 201, "outcome": "held", "id": "call-2", "option": 0, "amounts": {"usd": "0.1"},
            "at": "2026-12-01T16:29:44.249Z", "expires_at": "2026-12-01T16:39:44.249Z",
            "periods": {"jev": "2026-12-01"}, "tier": 0, "remaining": {"jev": "0.65"}, "receipt": {"seq": 6,
            "chain": "d7e0a06d0edd86909841f65358efb0041ecc6a452072b0fdad6891c91fdc5833"}}, {"status": 201,
            "outcome": "held", "id": "call-3", "option": 0, "amounts": {"usd": "0.1"},
            "at": "2026-12-01T16:29:44.249Z", "expires_at": "2026-12-01T16:39:44.249Z",
            "periods": {"jev": "2026-12-01"}, "tier": 0, "remaining": {"jev": "0.55"}, "receipt": {"seq": 6,
            "chain": "d7e0a06d0edd86909841f65358efb0041ecc6a452072b0fdad6891c91fdc5833"}}, {"status": 429,
            "type": "/problems/exhausted", "title": "Busy",
            "detail": "Other calls are using what is left. Try again in about 5 seconds.", "outcome": "exhausted",
            "id": "call-4", "why": "busy", "budget": "jev", "unit": "usd", "period": "2026-12-01", "limit": "1",
            "settled": "0", "held": "0.45", "extra": "0", "remaining": "0.55", "fits": "0.55", "used_pct": 45.0,
            "resets_at": "2026-12-02T00:00:00.000Z", "receipt": {"seq": 6,
            "chain": "d7e0a06d0edd86909841f65358efb0041ecc6a452072b0fdad6891c91fdc5833"}}]},
    ),
    "GET /v1/holds/{id}": Example(
        address="/v1/holds/call-1",
        answer={"state": "open", "at": "2026-12-01T16:29:43.924Z", "expires_at": "2026-12-01T16:39:43.924Z",
            "amounts": {"usd": "0.25"}, "progress": {}, "charged": {"usd": "0"}, "periods": {"jev": "2026-12-01"},
            "seq": 3, "id": "call-1"},
    ),
    "POST /v1/holds/{id}/settle": Example(
        address="/v1/holds/call-1/settle",
        body={"amounts": {"usd": "0.004"}},
        answer={"outcome": "settled", "id": "call-1", "state": "settled", "charged": {"usd": "0.004"},
            "released": {"usd": "0.246"}, "remaining": {"jev": "0.796"}, "used_pct": {"jev": 20.4}, "flags": [],
            "receipt": {"seq": 8, "chain": "d170e725758df192af09b4ae77159287253755b129278b907ac2ffc2169306f2"}},
    ),
    "POST /v1/holds/{id}/release": Example(
        address="/v1/holds/call-2/release",
        body={},
        answer={"outcome": "settled", "id": "call-2", "state": "settled", "charged": {"usd": "0"},
            "released": {"usd": "0.1"}, "remaining": {"jev": "0.896"}, "used_pct": {"jev": 10.4}, "flags": [],
            "receipt": {"seq": 10, "chain": "d30e24271537f0dac3eb58c193e904005f61d966b9aa45018d981f75f1307c7e"}},
    ),
    "POST /v1/holds/{id}/renew": Example(
        address="/v1/holds/call-3/renew",
        body={"n": 1, "ttl_s": 900},
        answer={"outcome": "held", "id": "call-3", "option": 0, "amounts": {"usd": "0.1"},
            "at": "2026-12-01T16:29:45.509Z", "expires_at": "2026-12-01T16:44:45.509Z",
            "periods": {"jev": "2026-12-01"}, "tier": 0, "remaining": {"jev": "0.896"}, "n": 1, "receipt": {"seq": 12,
            "chain": "7e1b5f9673dd280864ec2f5ffb2bcf5223f1a1d39590e840062c2c8dc874e40d"}},
    ),
    "POST /v1/estimate": Example(
        body={"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Good morning."}], "max_tokens": 100},
        answer={"fits": True, "cost_pct": {}, "used_pct_after": {}, "amounts": {"usd": "0.00008475"},
            "affordable_max_tokens": 1000000000, "provider": "openai", "model": "gpt-4o-mini", "input_tokens_max": 165,
            "max_tokens": 100, "price_book": "b73b44cefed1d18e37d5f3bbb3f21d3f4e1a9eba27d8b332a933544c10d09b33"},
    ),
    "POST /v1/observations": Example(
        body={"budget": "neurons", "figure": "4300"},
        answer={"outcome": "observed", "id": "246b6ed38c1b4f0292fa885eeb2c8d7b", "raised_by": "4300",
            "budget": "neurons", "period": "2026-12-01", "limit": "10000", "remaining": "5700", "used_pct": 43.0,
            "receipt": {"seq": 14, "chain": "2bf4799f6169ce7035a684f718c2a1f2fc9e68e852d44b7912dc605de8ea34b9"}},
    ),
    "POST /v1/adjustments": Example(
        body={"id": "correction-1", "budget": "jev", "period": "$TODAY", "amount": "-0.001",
            "reason": "The provider gave it back"},
        answer={"outcome": "adjusted", "id": "correction-1", "budget": "jev", "period": "2026-12-01", "limit": "1",
            "remaining": "0.897", "used_pct": 10.3, "receipt": {"seq": 16,
            "chain": "58e249583fc03e86e1a78d4cf1b26acca7751d17f453d1dfc7dfe74f1c13ab9f"}},
    ),
    "POST /v1/freeze": Example(
        body={"id": "freeze-1", "scope": "provider=jev", "reason": "Their bill looks wrong"},
        answer={"outcome": "done", "id": "freeze-1", "receipt": {"seq": 18,
            "chain": "9e2ed7fadde614a1f4bc0eb2ec3ab8d8d7ea88e605ea86be81fce9125af8496f"}},
    ),
    "POST /v1/thaw": Example(
        body={"id": "thaw-1", "scope": "provider=jev", "reason": "It was right"},
        answer={"outcome": "done", "id": "thaw-1", "receipt": {"seq": 20,
            "chain": "c37b52c9453e64e1bb3940eb6c86dbd56fdece653dca84b8a528978eb5c083aa"}},
    ),
    "POST /v1/revoke": Example(
        body={"id": "revoke-1", "label": "user", "value": "mallory", "reason": "Shares the key"},
        answer={"outcome": "done", "id": "revoke-1", "receipt": {"seq": 22,
            "chain": "87efcbfae4a43b99b26185d6b4a09df473aa517614ff54a4c6a9420848d1cdc5"}},
    ),
    "POST /v1/restore": Example(
        body={"id": "restore-1", "label": "user", "value": "mallory"},
        answer={"outcome": "done", "id": "restore-1", "receipt": {"seq": 24,
            "chain": "310484fda8524ce41ae1062c4d44dffdf1c8809e462327181470fe15119b64ea"}},
    ),
    "GET /v1/plan": Example(
        keeps={"DIGEST": "digest"},
        answer={"plan": {"plan": {"rules": 1, "ttl_s": 600, "ttl_s_min": 1, "ttl_s_max": 86400, "on_lapse": "charge",
            "remember_s": 172800, "zone": "UTC", "tzdata": "2026.6"}, "units": {"usd": 9, "neurons": 6, "tokens": 0,
            "jpy": 6, "requests": 0}, "budgets": {"neurons": {"unit": "neurons", "limit": "10000", "per": "day",
            "zone": "UTC", "source": "cloudflare"}, "jev": {"unit": "usd", "limit": "1", "per": "day", "zone": "UTC",
            "where": {"provider": "jev"}}}}, "digest": "583cb6500aeea468b1841796476724d6"},
    ),
    "POST /v1/plan": Example(
        body={"id": "plan-2", "plan": {"budgets": {"neurons": {"unit": "neurons", "limit": "10000",
            "source": "cloudflare"}, "jev": {"unit": "usd", "limit": "2.00", "where": {"provider": "jev"}}}},
            "replaces": "$DIGEST"},
        answer={"outcome": "planned", "id": "plan-2", "digest": "011f2a453e3d0f461951983347bddeae", "restarts": [],
            "receipt": {"seq": 26, "chain": "a8c29fc38c34d77e31c5db4fdbe51ebd6047202842a437fe76f8a5aad520e206"}},
    ),
    "POST /v1/keys": Example(
        status=201,
        keeps={"KEY_ID": "id"},
        body={"role": "spend", "user": "alice"},
        answer={"key": "cp_k8w7fahbya_0000000000000000000000000000000000000000000000", "id": "k8w7fahbya",
            "role": "spend", "state": "active", "user": "alice", "cohort": "", "labels": {}, "names": [],
            "namespace": "k8w7fahbya", "replaces": "", "note": "", "created_at": "2026-12-01T16:29:48.612Z",
            "expires_at": None, "revoked_at": None, "made_by": "admin", "revoked_by": "", "reason": ""},
    ),
    "GET /v1/keys": Example(
        answer={"keys": [{"id": "k8w7fahbya", "role": "spend", "state": "active", "user": "alice", "cohort": "",
            "labels": {}, "names": [], "namespace": "k8w7fahbya", "replaces": "", "note": "",
            "created_at": "2026-12-01T16:29:48.612Z", "expires_at": None, "revoked_at": None, "made_by": "admin",
            "revoked_by": "", "reason": ""}]},
    ),
    "POST /v1/keys/{id}/revoke": Example(
        address="/v1/keys/$KEY_ID/revoke",
        body={"reason": "Was seen in a log"},
        answer={"outcome": "done", "id": "k8w7fahbya", "receipt": {"seq": 28,
            "chain": "6a9961d590ead6b9e3ae848b607486aae9a194461567d788907e14a839f64710"}, "role": "spend",
            "state": "revoked", "user": "alice", "cohort": "", "labels": {}, "names": [], "namespace": "k8w7fahbya",
            "replaces": "", "note": "", "created_at": "2026-12-01T16:29:48.612Z", "expires_at": None,
            "revoked_at": "2026-12-01T16:29:49.264Z", "made_by": "admin", "revoked_by": "admin",
            "reason": "Was seen in a log"},
    ),
    "GET /v1/status": Example(
        answer={"wallet": "main", "as_of": "2026-12-01T16:29:49.577Z", "seq": 27, "live": True, "frozen": None,
            "budgets": [{"name": "neurons", "unit": "neurons", "per": "day", "zone": "UTC", "period": "2026-12-01",
            "limit": "10000", "settled": "0", "held": "0", "extra": "4300", "used": "4300", "remaining": "5700",
            "used_pct": 43.0, "held_pct": 0.0, "settled_pct": 0.0, "extra_pct": 43.0,
            "starts_at": "2026-12-01T00:00:00.000Z", "resets_at": "2026-12-02T00:00:00.000Z",
            "first_exhausted_at": None, "observed": {"source": "cloudflare", "figure": "4300",
            "as_of": "2026-12-01T16:29:45.140Z"}, "reading": {"source": "cloudflare",
            "read_at": "2026-12-01T16:29:45.140Z", "every_s": 30, "stale": False, "unreadable": False}},
            {"name": "jev", "unit": "usd", "per": "day", "zone": "UTC", "period": "2026-12-01", "limit": "2",
            "settled": "0.003", "held": "0.1", "extra": "0", "used": "0.103", "remaining": "1.897", "used_pct": 5.1,
            "held_pct": 5.0, "settled_pct": 0.1, "extra_pct": 0.0, "starts_at": "2026-12-01T00:00:00.000Z",
            "resets_at": "2026-12-02T00:00:00.000Z", "first_exhausted_at": None, "observed": None, "reading": None}],
            "open_earlier": 0, "plan": "011f2a453e3d0f461951983347bddeae", "open_holds": 1, "freezes": [],
            "barred": [{"label": "key", "value": "k8w7fahbya", "reason": "Was seen in a log", "guard": "",
            "until": None}], "barred_more": 0, "alerts": []},
    ),
    "GET /v1/days": Example(
        answer={"days": [{"budget": "jev", "unit": "usd", "period": "2026-12-01",
            "starts_at": "2026-12-01T00:00:00.000Z", "ends_at": "2026-12-02T00:00:00.000Z", "limit": "1",
            "settled": "0.003", "held": "0.1", "extra": "0", "used": "0.103", "remaining": "0.897", "peak": "0.45",
            "wasted": "0.346", "adjusted": "-0.001", "unreconciled": "0", "used_pct": 10.3,
            "peak_at": "2026-12-01T16:29:44.249Z", "first_exhausted_at": None, "holds": 3, "open_holds": 1,
            "settles": 2, "refused": {"busy": 1}, "overruns": 0, "strays": 0, "lapsed": 0, "late": 0, "unheld": 0,
            "unreported": 0, "corrected": 0, "estimated": 0, "conflicts": 0, "unreconciled_holds": 0, "sealed": None,
            "after_seal": {"settled": "0", "extra": "0"}, "seq": 15}]},
    ),
    "GET /v1/days/{day}": Example(
        address="/v1/days/$TODAY",
        answer={"day": "2026-12-01", "sealed": None, "decided": {"refused": {"busy": 1}, "conflicts": 0, "invalid": 0,
            "unknown": 0, "forgotten": 0}, "budgets": [{"budget": "jev", "unit": "usd", "period": "2026-12-01",
            "starts_at": "2026-12-01T00:00:00.000Z", "ends_at": "2026-12-02T00:00:00.000Z", "limit": "1",
            "settled": "0.003", "held": "0.1", "extra": "0", "used": "0.103", "remaining": "0.897", "peak": "0.45",
            "wasted": "0.346", "adjusted": "-0.001", "unreconciled": "0", "used_pct": 10.3,
            "peak_at": "2026-12-01T16:29:44.249Z", "first_exhausted_at": None, "holds": 3, "open_holds": 1,
            "settles": 2, "refused": {"busy": 1}, "overruns": 0, "strays": 0, "lapsed": 0, "late": 0, "unheld": 0,
            "unreported": 0, "corrected": 0, "estimated": 0, "conflicts": 0, "unreconciled_holds": 0, "sealed": None,
            "after_seal": {"settled": "0", "extra": "0"}, "seq": 15, "by": {"provider": {"top": [{"value": "jev",
            "settled": "0.004", "holds": 3, "refused": 1}], "other": {"settled": "-0.001", "holds": 0, "refused": 0,
            "values": 0, "uncounted": False}}}, "more_labels": False, "series": {"step_s": 300, "before": None,
            "points": [{"at": "2026-12-01T16:25:00.000Z", "settled": "0.003", "held": "0.1", "holds": 3,
            "refused": 1}]}}]},
    ),
    "GET /v1/days/{day}/at": Example(
        address="/v1/days/$TODAY/at?time=$NOW",
        answer={"at": "2026-12-01T16:29:50Z", "wallet": "main", "upto": 27, "told": 28,
            "chain": "6a9961d590ead6b9e3ae848b607486aae9a194461567d788907e14a839f64710", "start": 2,
            "plan": "011f2a453e3d0f461951983347bddeae", "budgets": [{"budget": "neurons", "each": None,
            "period": "2026-12-01", "unit": "neurons", "limit": "10000", "settled": "0", "held": "0", "extra": "4300",
            "used": "4300", "remaining": "5700"}, {"budget": "jev", "each": None, "period": "2026-12-01",
            "unit": "usd", "limit": "2", "settled": "0.003", "held": "0.1", "extra": "0", "used": "0.103",
            "remaining": "1.897"}], "more": 0, "open_holds": 1, "due": 0, "frozen": [], "revoked": ["key=k8w7fahbya"]},
    ),
    "GET /v1/holds/{id}/events": Example(
        address="/v1/holds/call-1/events",
        answer={"id": "call-1", "state": "settled", "events": [{"seq": 3, "at": "2026-12-01T16:29:43Z",
            "receipt": {"seq": 4, "chain": "567367914e4228180d4da41cf567d53086a399e3c860092f2c4551707d390ead"},
            "ask": {"ask": "hold", "id": "call-1", "options": [{"amounts": {"usd": "0.25"}}],
            "by": "2026-12-01T16:29:48Z", "labels": {"provider": "jev"}}, "outcome": {"outcome": "held",
            "id": "call-1", "option": 0, "amounts": {"usd": "0.25"}, "budgets": {"jev": {"period": "2026-12-01",
            "start": 1796083200000000000, "end": 1796169600000000000, "limit": 1000000000, "remaining": 750000000}},
            "at": "2026-12-01T16:29:43Z", "expires_at": "2026-12-01T16:39:43Z"}, "at_ns": 1796142583924760968}],
            "more": 0, "after": 2, "upto": 28, "end": 28},
    ),
    "GET /v1/alerts": Example(
        answer={"alerts": []},
    ),
    "POST /v1/alerts/test": Example(
        status=404,
        body={},
        answer={"type": "/problems/no-target", "title": "Not found", "status": 404,
            "detail": "No projector here sends alerts: `[alerts.targets.NAME]` in its purse.toml."},
    ),
    "GET /livez": Example(
        answer={"live": True},
    ),
    "GET /readyz": Example(
        address="/readyz?verbose",
        answer={"ready": True, "checks": {"engine": True, "projector": True, "plan": True, "web": True},
            "spool_depth": 0},
    ),
    "GET /v1/days/{day}/events": Example(
        address="/v1/days/$TODAY/events?limit=2",
        lines=(
            '{"seq":1,"told":2,"at":"2026-12-01T16:29:43.136Z","kind":"plan","outcome":"planned","id":"up:92fdf350f1dde1a9","amounts":{}}',
            '{"seq":3,"told":4,"at":"2026-12-01T16:29:43.924Z","kind":"hold","outcome":"held","id":"call-1","amounts":{"usd":"0.25"}}',
        ),
    ),
    "GET /v1/status/stream": Example(lines=("retry: 5000", "", "event: status", "id: 27", 'data: {"wallet": ...}')),
    "GET /metrics": Example(
        lines=("# TYPE purse_up gauge", "# HELP purse_up 1 where this part answers.", 'purse_up{part="engine"} 1'),
    ),
    "GET /openapi.json": Example(lines=('{"openapi": "3.1.0", ...}',)),
}
# fmt: on
