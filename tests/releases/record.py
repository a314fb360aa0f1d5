"""Records the data folders that stand beside this file: a wallet of an earlier build, as its last `purse up` left it.

    python tests/releases/record.py PYTHON NAME         PYTHON has that build installed, or runs in its source tree

writes NAME.tar.xz and NAME.then.json: the status in its last moment and the hold that was open. It speaks to the build
over HTTP alone, so any of them can be recorded. Once recorded they are data: nothing in them is ever edited. NAME ends
in the number of its snapshots. `tests/end_to_end/test_upgrade.py` goes on with them.

    snapshots-1   the source tree of the commit `Give cheaper answers as money runs low: tiers, judged by how full the
                  fullest meter is`: the first build whose snapshots had a number, 1
    snapshots-3   the source tree before the commit `Let a plan name guards that cool, revoke or say so`: the last with
                  the number 3
    snapshots-4   a source tree shortly before 0.1.0
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PLAN = """
[budgets.total]
unit = "usd"
limit = "100"
per = "total"
[budgets.jev]
unit = "usd"
limit = "1.00"
per = "day"
where = { provider = "jev" }
[budgets.neurons]
unit = "neurons"
limit = "10000"
per = "day"
source = "cloudflare"
[budgets.user]
unit = "jpy"
limit = "80"
per = "total"
each = "user"
limit_for = { "user=alice" = "500" }
"""
JEV, ALICE, BOB = {"provider": "jev"}, {"user": "alice"}, {"user": "bob"}
OPEN = {"id": "open", "amounts": {"usd": "0.25"}, "labels": JEV, "ttl_s": 3600}
STORY: list[tuple[str, dict[str, Any]]] = [
    *[("holds", {"id": f"call-{n}", "amounts": {"usd": "0.05"}, "labels": JEV}) for n in range(8)],
    *[(f"holds/call-{n}/settle", {"amounts": {"usd": f"0.0{n}1"}}) for n in range(4)],
    ("holds/call-4/settle", {"amounts": {"usd": "0.05"}, "final": False}),
    ("holds/call-5/settle", {"amounts": {"usd": "0.03"}, "estimated": True}),
    ("holds/call-6/settle", {"amounts": {"usd": "0.09"}}),
    ("holds/call-7/release", {}),
    ("holds", {"id": "too-much", "amounts": {"usd": "0.95"}, "labels": JEV}),
    ("holds", {"id": "short", "amounts": {"usd": "0.01"}, "ttl_s": 1}),
    ("holds", {"id": "alice-1", "amounts": {"jpy": "400"}, "labels": ALICE}),
    ("holds", {"id": "bob-1", "amounts": {"jpy": "400"}, "labels": BOB}),
    ("holds/alice-1/settle", {"amounts": {"jpy": "399.5"}}),
    ("holds/stray/settle", {"amounts": {"usd": "0.001"}, "labels": JEV}),
    ("observations", {"budget": "neurons", "figure": "4300"}),
    ("freeze", {"id": "f", "scope": "neurons", "reason": "a look at the account"}),
    ("holds", {"id": "frozen", "amounts": {"neurons": "1"}}),
    ("thaw", {"id": "t", "scope": "neurons", "reason": "looked"}),
    ("holds", {"id": "brain", "amounts": {"neurons": "12.5"}}),
    ("holds/brain/settle", {"amounts": {"neurons": "11"}}),
    ("revoke", {"id": "r", "label": "user", "value": "bob", "reason": "left"}),
    ("holds", OPEN),
]


def main(python: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        data, config = Path(scratch) / "data", Path(scratch) / "purse.toml"
        config.write_text(PLAN)
        command = [python, "-m", "commonpurse", "up", "--data", str(data), "--port", "0", "--config", str(config)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            url, key = _ready(process)
            for path, body in STORY:
                _ask(f"{url}/v1/{path}", key, body)
            last = _settled_down(url, key)
            process.send_signal(signal.SIGTERM)
        then = {"status": last, "open": OPEN, "recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        (FOLDER / f"{name}.then.json").write_text(json.dumps(then, indent=1) + "\n")
        with tarfile.open(FOLDER / f"{name}.tar.xz", "w:xz", preset=9) as archive:
            archive.add(data, "data", filter=_kept)


def _ready(process: subprocess.Popen[str]) -> tuple[str, str]:
    assert process.stdout is not None
    said: dict[str, str] = {}
    for line in process.stdout:
        if found := re.match(r"\s+(page|admin key)\s+(\S+)", line):
            said[found[1]] = found[2]
        if said.keys() == {"page", "admin key"}:
            return said["page"].rstrip("/"), said["admin key"]
    raise SystemExit("it ended before it was ready")


def _ask(url: str, key: str, body: dict[str, Any] | None) -> Any:
    headers = {"Authorization": f"Bearer {key}", "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        if refused.code not in (400, 402, 403, 429):
            raise
        return json.load(refused)


def _settled_down(url: str, key: str) -> Any:
    """The status once the short hold has lapsed: of the budget for all calls only what is open is held then."""
    while True:
        status = _ask(f"{url}/v1/status", key, None)
        held = next(one["held"] for one in status["budgets"] if one["name"] == "total")
        if held == OPEN["amounts"]["usd"]:
            return status
        time.sleep(0.2)


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Nothing of the machine it was recorded on: no key, no logs, no settings of a server that is gone."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    dropped = ("admin.key", "logs", "lock", "nats.conf", "nats-server.log", "nats-server.out")
    return None if os.path.basename(entry.name) in dropped else entry


if __name__ == "__main__":
    main(*sys.argv[1:])
