"""A real `purse up` with a real webhook: a threshold arrives, signed; a test goes out; the list says so."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from running_purse import running_purse

from projector.delivery.parcel import Parcel
from projector.delivery.webhook import signature

SECRET = "between-us"
WITHIN_S = 60.0
CONFIG = """
[budgets.jev]
unit = "usd"
limit = "1.00"
per = "total"

[alerts.targets.ops]
kind = "json"
url_env = "OPS_URL"
secret_env = "OPS_SECRET"
"""


@contextmanager
def receiver() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """An address, and what was posted there with the right signature."""
    came: list[dict[str, str]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            parcel, timestamp = Parcel(self.headers["Purse-Id"], raw), int(self.headers["Purse-Timestamp"])
            right = self.headers["Purse-Signature"] == signature(SECRET, parcel, timestamp)
            if right:
                came.append(json.loads(raw))
            self.send_response(200 if right else 400)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook?token=hunter2", came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_threshold_arrives_and_no_log_knows_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "purse.toml"
    config.write_text(CONFIG)
    with receiver() as (url, came):
        monkeypatch.setenv("OPS_URL", url)
        monkeypatch.setenv("OPS_SECRET", SECRET)
        with running_purse(tmp_path / "data", "--config", str(config)) as wallet:
            assert wallet.ask("alerts", "list").output == "no alerts\n"
            assert wallet.ask("alerts", "test").output == "ops took it\n"
            assert [one["rule"] for one in came] == ["test"]
            wallet.ask("hold", "--id", "a", "--amount", "usd=0.80")
            wallet.ask("settle", "a", "--amount", "usd=0.80")
            deadline = time.monotonic() + WITHIN_S
            while wallet.ask("alerts", "list").output.count("ops: sent") < 2 and time.monotonic() < deadline:
                time.sleep(0.05)
            lines = wallet.ask("alerts", "list").output.splitlines()
            assert [line.endswith("(ops: sent)") for line in lines] == [True, True]
            assert {one["id"] for one in came[1:]} == {f"alert:percent:jev:total:{each}" for each in (50, 75)}
            assert came[-1]["figures"]["limit"] == "1"  # type: ignore[index]
            newest = json.loads(wallet.ask("--json", "status").output)["alerts"]
            assert [one["delivered"] for one in newest] == [True, True]
    for path in (tmp_path / "data").rglob("*"):
        if path.is_file():
            written = path.read_bytes()
            assert b"hunter2" not in written, path
            assert SECRET.encode() not in written, path
