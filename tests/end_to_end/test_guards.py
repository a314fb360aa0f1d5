"""Guards on a real wallet over HTTP: each goes off at its threshold and not one before, and everybody agrees."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from integration import rig
from running_purse import RunningPurse, running_purse

from commonpurse.record_server import server_of
from engine.core.messages import Cooling, Held, Revoked
from engine.journal import Journal
from engine.snapshots import Snapshots

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for the children in /proc")

CONFIG = """
[web]
trusted_proxies = ["127.0.0.0/8"]

[budgets.jev]
unit = "usd"
limit = "100.00"
per = "year"
zone = "UTC"

[guards.retry-storm]
label = "user"
more_than = 6
within_s = 86400
action = "cool"
for_s = 3

[guards.leaked-key]
label = "key"
distinct = "origin"
more_than = 4
within_s = 86400
action = "revoke"

[guards.long-session]
label = "session"
more_than = 5
within_s = 86400
action = "alert"
"""
"""As `engine/plans/strangers.toml`, with numbers that a test can reach. Windows are so long that no pause ages them."""

WITHIN_S = 60.0


class Site:
    """Somebody's key, and calls made with it."""

    def __init__(self, purse: RunningPurse, user: str) -> None:
        self.purse = purse
        status, made = self.send("/v1/keys", {"role": "spend", "user": user}, key=purse.key)
        assert status == 201, made
        self.key, self.id = made["key"], made["id"]
        self.calls = 0

    def send(
        self, path: str, body: object, *, key: str | None = None, origin: str = "192.0.2.1"
    ) -> tuple[int, dict[str, Any]]:
        headers = {
            "Authorization": f"Bearer {key or self.key}", "Content-Type": "application/json", "X-Forwarded-For": origin,
        }  # fmt: skip
        request = urllib.request.Request(self.purse.url + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:
                return answer.status, json.load(answer)
        except HTTPError as problem:
            with problem:
                return problem.status or 0, json.load(problem)

    def hold(self, *, origin: str = "192.0.2.1", **labels: str) -> tuple[int, dict[str, Any]]:
        self.calls += 1
        body = {"id": f"h{self.calls}", "amounts": {"usd": "0.01"}, "labels": labels, "wait_s": 30}
        return self.send("/v1/holds", body, origin=origin)

    def settle(self, id: str) -> int:
        return self.send(f"/v1/holds/{id}/settle", {"amounts": {"usd": "0.01"}})[0]


def a_storm_cools_and_ends_on_time(purse: RunningPurse) -> None:
    site, other = Site(purse, "alice"), Site(purse, "bob")
    assert [site.hold()[0] for _ in range(6)] == [201] * 6
    status, said = site.hold()
    assert (status, said["outcome"], said["label"]) == (429, "cooling", "user")
    assert 1 <= said["seconds"] <= 3
    assert other.hold()[0] == 201
    assert site.settle("h1") == 200
    until = datetime.fromisoformat(said["until"]).timestamp()
    deadline = time.monotonic() + WITHIN_S
    while (again := site.hold())[0] == 429:
        assert again[1]["until"] == said["until"], "asking does not make it longer"
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert again[0] == 201
    assert time.time() >= until


def a_key_from_too_many_places_is_revoked_until_an_operator_lifts_it(purse: RunningPurse) -> None:
    site = Site(purse, "carol")
    for place in (1, 2, 3, 4, 4):
        assert site.hold(origin=f"198.51.100.{place}")[0] == 201
    status, said = site.hold(origin="198.51.100.5")
    assert (status, said["outcome"], said["label"]) == (403, "revoked", "key")
    assert "leaked-key" in said["reason"]
    assert site.hold(origin="198.51.100.1")[0] == 403
    assert site.settle("h1") == 200, "what it holds may settle"
    restored = purse.ask("restore", f"key={site.id}", "--reason", "it was a test")
    assert restored.exit_code == 0, restored.output
    assert site.hold(origin="198.51.100.5")[0] == 201


def a_long_session_goes_on_and_stands_on_the_record(purse: RunningPurse) -> None:
    for user in ("dave", "erin"):  # one session of both: no storm of either
        site = Site(purse, user)
        assert [site.hold(session="s1")[0] for _ in range(3)] == [201] * 3


async def test_each_guard_goes_off_at_its_threshold_the_same_on_a_standby_and_on_replay(tmp_path: Path) -> None:
    data, config = tmp_path / "data", tmp_path / "purse.toml"
    config.write_text(CONFIG)
    with running_purse(data, "--config", str(config)) as purse:
        async with (
            server_of(data) as server,
            rig.engine_on(server.url, "main", patience_s=3_600.0) as standby,
            Journal.connect(server.url) as journal,
        ):
            await _elsewhere(a_storm_cools_and_ends_on_time, purse)
            await _elsewhere(a_key_from_too_many_places_is_revoked_until_an_operator_lifts_it, purse)
            await _elsewhere(a_long_session_goes_on_and_stands_on_the_record, purse)
            found = await rig.told(journal)
            await rig.told_up_to(standby, found.wallet.upto)
            assert standby.service.wallet.dump() == found.wallet.dump()
            assert went_off(found) == {"retry-storm": [Cooling], "leaked-key": [Revoked], "long-session": [Held]}
    kept = Snapshots(data, "main").newest()
    assert kept is not None
    async with server_of(data) as server, Journal.connect(server.url) as journal:
        whole = await rig.audited(journal)
        assert kept.wallet.upto == whole.wallet.upto
        assert kept.wallet.dump() == whole.wallet.dump()
        async with rig.engine_on(server.url, "main") as again:  # decides all of it anew, and agrees
            assert again.service.wallet.dump() == whole.wallet.dump()


def went_off(found: rig.Audit) -> Mapping[str, list[type]]:
    """By guard, the outcomes in which it went off, in order."""
    fired: dict[str, list[type]] = {}
    for outcome in found.outcomes:
        for guard in getattr(outcome, "fired", ()):
            fired.setdefault(guard, []).append(type(outcome))
    return fired


async def _elsewhere(work: Callable[[RunningPurse], None], purse: RunningPurse) -> None:
    """In a thread: the standby beside the test goes on meanwhile."""
    await asyncio.to_thread(work, purse)
