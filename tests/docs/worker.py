"""A Python that keeps what it was told before: a page's programs, one after the other. Speaks JSON, a line each way."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import os
import sys
import traceback
from contextlib import redirect_stdout
from inspect import iscoroutine


def run(runner: asyncio.Runner, code: str, place: str, names: dict[str, object]) -> None:
    compiled = compile(code, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waiting = eval(compiled, names)
    if iscoroutine(waiting):
        runner.run(waiting)


def main() -> None:
    names: dict[str, object] = {"__name__": "page"}
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            asked = json.loads(line)
            os.environ.update(asked["env"])
            said, wrong = io.StringIO(), ""
            with redirect_stdout(said):
                try:
                    run(runner, asked["code"], asked["place"], names)
                except BaseException:
                    wrong = traceback.format_exc()
            print(json.dumps({"said": said.getvalue(), "wrong": wrong}), flush=True)


main()
