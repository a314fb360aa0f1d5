"""What the `purse` command relies on in the HTTP API. The fake of the tests and the real wallet both pass it, and both
answer as `/openapi.json` says.

The wallet has one budget `jev` of 1 usd a day for holds labelled `provider=jev`, of which nothing is used.
"""

from __future__ import annotations

import json
import urllib.request
from email.message import Message
from typing import Any
from urllib.error import HTTPError

from api_document import check

Json = dict[str, Any]
LABELS = {"provider": "jev"}


class Caller:
    def __init__(self, url: str, key: str) -> None:
        self.url, self.key = url, key

    def post(self, path: str, body: Json) -> tuple[int, Json]:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return self._checked(path, answer.status, answer.headers, answer.read())
        except HTTPError as problem:
            with problem:
                return self._checked(path, problem.status or 0, problem.headers, problem.read())

    def _checked(self, path: str, status: int, headers: Message, raw: bytes) -> tuple[int, Json]:
        """As `/openapi.json` says it."""
        check("POST", path, status, headers, headers.get_content_type(), raw)
        return status, json.loads(raw)

    def hold(self, id: str, usd: str) -> tuple[int, Json]:
        return self.post("/v1/holds", {"id": id, "amounts": {"usd": usd}, "labels": LABELS})

    def settle(self, id: str, usd: str) -> tuple[int, Json]:
        return self.post(f"/v1/holds/{id}/settle", {"amounts": {"usd": usd}})


def check_contract(url: str, key: str) -> None:
    """Leaves the budget with 0.5 usd settled and nothing held."""
    caller = Caller(url, key)
    _check_holds(caller)
    _check_settles(caller)
    _check_batch(caller)
    assert Caller(url, "wrong").hold("contract:0", "0.1")[0] == 401


def _check_holds(caller: Caller) -> None:
    status, held = caller.hold("contract:1", "0.75")
    assert (status, held["outcome"], held["id"]) == (201, "held", "contract:1")
    assert (held["amounts"], held["remaining"]) == ({"usd": "0.75"}, {"jev": "0.25"})
    assert list(held["periods"]) == ["jev"]
    assert isinstance(held["expires_at"], str)
    assert caller.hold("contract:1", "0.75")[0] == 200
    assert caller.hold("contract:1", "0.7")[1]["outcome"] == "conflict"
    status, busy = caller.hold("contract:2", "0.5")
    assert (busy["outcome"], busy["why"], busy["budget"], busy["fits"]) == ("exhausted", "busy", "jev", "0.25")
    assert busy["status"] == status >= 400
    assert caller.hold("contract:2", "1.01")[1]["why"] == "never"


def _check_settles(caller: Caller) -> None:
    status, settled = caller.settle("contract:1", "0.25")
    assert (status, settled["outcome"], settled["state"]) == (200, "settled", "settled")
    assert (settled["charged"], settled["released"]) == ({"usd": "0.25"}, {"usd": "0.5"})
    assert (settled["remaining"], settled["flags"]) == ({"jev": "0.75"}, [])
    status, again = caller.settle("contract:1", "0.25")
    assert (status, again["outcome"], again["charged"]) == (200, "again", {"usd": "0.25"})
    status, conflict = caller.settle("contract:1", "0.5")
    assert (status, conflict["outcome"], conflict["charged"]) == (422, "conflict", {"usd": "0.25"})
    status, closed = caller.hold("contract:1", "0.75")
    assert (status, closed["outcome"], closed["state"]) == (409, "closed", "settled")
    assert closed["charged"] == {"usd": "0.25"}
    status, spent = caller.hold("contract:2", "0.8")
    assert (status, spent["why"], isinstance(spent["resets_at"], str)) == (402, "spent", True)


def _check_batch(caller: Caller) -> None:
    holds = [{"ask": "hold", "id": f"contract:{n}", "amounts": {"usd": "0.5"}, "labels": LABELS} for n in (3, 4)]
    status, answer = caller.post("/v1/holds:batch", {"asks": holds})
    first, second = answer["told"]
    assert (status, first["status"], first["outcome"]) == (200, 201, "held")
    assert (second["outcome"], second["why"]) == ("exhausted", "busy")
    settle = {"ask": "settle", "hold": "contract:3", "amounts": {"usd": "0.25"}}
    [settled] = caller.post("/v1/holds:batch", {"asks": [settle]})[1]["told"]
    assert (settled["status"], settled["outcome"], settled["charged"]) == (200, "settled", {"usd": "0.25"})
