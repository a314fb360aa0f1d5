"""What a real wallet says elsewhere than on its pages: over its API, and by a command in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

from running_purse import RunningPurse

WAIT_S = 60.0
COMMAND_WAIT_S = 120.0


def get(wallet: RunningPurse, path: str) -> Any:
    request = urllib.request.Request(f"{wallet.url}{path}", headers={"Authorization": f"Bearer {wallet.key}"})
    with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
        return json.load(answer)


def post(wallet: RunningPurse, path: str, body: dict[str, object]) -> int:
    """The status of the answer."""
    headers = {"Authorization": f"Bearer {wallet.key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{wallet.url}{path}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def command(wallet: RunningPurse, *arguments: str) -> Any:
    """What `purse ARGUMENTS --json` prints, reading the wallet's record beside it."""
    whole = [sys.executable, "-m", "commonpurse", *arguments, "--data", str(wallet.data), "--json"]
    said = subprocess.run(whole, capture_output=True, text=True, timeout=COMMAND_WAIT_S, check=True)
    return json.loads(said.stdout)
