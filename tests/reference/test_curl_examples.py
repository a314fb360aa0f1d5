"""Every example of `http.md` is made with curl against a real `purse up`, in the page's order, and answered as printed.

What is compared is the shape: the status, the members, their types. Times and receipts are of the day.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from api_document import DOCUMENT, check_item, validator_of
from reference.http_page import ADDRESS, ROUTES
from reference.pages import FOLDER
from running_purse import running_purse

from web.examples import EXAMPLES
from web.openapi import ITEM

EXAMPLE = re.compile(
    r"^### (?P<route>[A-Z]+ /\S*)$(?:(?!^###).)*?^```sh\n(?P<shell>.*?)^```\n\n(?:It is answered (?P<status>\d+):\n\n)?"
    r"^```(?P<kind>json|text)\n(?P<answer>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
KEPT = re.compile(r"^(?P<name>[A-Z_]+)=\.\.\.  # `(?P<member>\w+)`.*$", re.MULTILINE)
STATUS = "\nanswered %{http_code}"
WAIT_S = 60


def examples() -> Iterator[dict[str, str]]:
    """The examples of the page, in its order."""
    for found in EXAMPLE.finditer((FOLDER / "http.md").read_text(encoding="utf-8")):
        yield {name: value or "" for name, value in found.groupdict().items()}


def test_every_route_has_one() -> None:
    assert [one["route"] for one in examples()] == [
        route.named for tag in dict.fromkeys(route.tag for route in ROUTES) for route in ROUTES if route.tag == tag
    ]
    assert set(EXAMPLES) == {route.named for route in ROUTES}


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_each_is_answered_as_printed(tmp_path: Path) -> None:
    with running_purse(tmp_path / "data") as purse:
        env = {**os.environ, "PURSE_KEY": purse.key, "TODAY": f"{datetime.now(UTC):%Y-%m-%d}"}
        for one in examples():
            status, said = asked(one["shell"].replace(ADDRESS, purse.url), env, status=one["kind"] == "json")
            if one["kind"] == "text":
                check_text(one, said)
                continue
            assert status == (one["status"] or "200"), (one["route"], said)
            schema = schema_of(one["route"], status)
            answer, printed = json.loads(said), json.loads(one["answer"])
            assert validator_of(schema).is_valid(answer), (one["route"], said)
            compare(schema, printed, answer, one["route"])
            env |= {kept["name"]: answer[kept["member"]] for kept in KEPT.finditer(one["shell"])}


def asked(shell: str, env: dict[str, str], *, status: bool) -> tuple[str, str]:
    """Its answer's status, where that is asked for, and body. Lines that say what to keep are left to us."""
    line = KEPT.sub("", shell).strip()
    if status:
        line = line.replace("curl -s", f"curl -s -w '{STATUS}'", 1)
    done = subprocess.run(["bash", "-c", line], env=env, capture_output=True, text=True, check=False, timeout=WAIT_S)
    assert done.returncode == 0, (line, done.stderr)
    said, _, code = done.stdout.rpartition("\nanswered ") if status else (done.stdout, "", "")
    return code, said


def schema_of(route: str, status: str) -> Any:
    method, path = route.split(" ")
    [content] = DOCUMENT["paths"][path][method.lower()]["responses"][status]["content"].values()
    return content.get(ITEM, content["schema"])


def check_text(one: dict[str, str], said: str) -> None:
    """Line for line, or the lines and events that the document promises."""
    route, printed = one["route"], one["answer"].splitlines()
    path = route.partition(" ")[2]
    match route:
        case "GET /v1/status/stream":
            lines = said.splitlines()
            assert [line.partition(":")[0] for line in lines] == [line.partition(":")[0] for line in printed]
            check_item(path, json.loads(lines[-1].removeprefix("data: ")))
        case "GET /v1/days/{day}/events":
            for line, shown in zip(said.splitlines(), printed, strict=True):
                check_item(path, json.loads(line))
                assert list(json.loads(line)) == list(json.loads(shown))
        case "GET /metrics":
            assert said.splitlines() == printed
        case _:
            assert json.loads(said) == DOCUMENT


def compare(schema: Any, printed: Any, answer: Any, place: str) -> None:
    """The same members, whatever they say; of a list the first, of a map what is printed."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        fits = [one for one in schema["anyOf"] if validator_of(one).is_valid(printed)]
        assert any(validator_of(one).is_valid(answer) for one in fits), f"{place}: {printed!r}, and now {answer!r}"
        schema = next(one for one in fits if validator_of(one).is_valid(answer))
        return compare(schema, printed, answer, place)
    assert type(printed) is type(answer), f"{place}: {printed!r}, and now {answer!r}"
    if isinstance(printed, dict) and "properties" in schema:
        assert list(printed) == list(answer), f"{place}: {list(printed)}, and now {list(answer)}"
        for name, value in printed.items():
            compare(schema["properties"].get(name, {}), value, answer[name], f"{place}.{name}")
    elif isinstance(printed, dict) and isinstance(of := schema.get("additionalProperties"), dict):
        assert set(printed) <= set(answer), f"{place}: {list(printed)}, and now {list(answer)}"
        for name, value in printed.items():
            compare(of, value, answer[name], f"{place}.{name}")
    elif isinstance(printed, list) and printed and answer:
        compare(schema.get("items", {}), printed[0], answer[0], f"{place}[0]")
    return None
