"""The frame of every Python client here: a line of JSON says who is to ask for what, a line of JSON says what it saw.

It changes nothing about a client, and catches what a caller would catch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

Asked = dict[str, Any]
Said = dict[str, Any]
QUESTION = "What is a purse?"
TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
"""The parameters of the one tool that is ever offered, `weather`."""


def answer_lines(clients: Mapping[str, Mapping[str, Callable[[Asked], Said]]]) -> None:
    """`clients`: name -> what it can be asked for. Ends with its input."""
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            said = clients[asked["client"]][asked["does"]](asked)
        except Exception as error:  # whatever it is, it is what the caller of this client sees
            said = {"error": seen(error)}
        print(json.dumps(said), flush=True)


def seen(error: Exception) -> Said:
    """What a program can tell an error by."""
    return {
        "catch": [kind.__name__ for kind in type(error).__mro__],
        "status": getattr(error, "status_code", None),
        "body": getattr(error, "body", None),
        "message": str(error),
    }
