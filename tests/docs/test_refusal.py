"""The refusal that the front page shows is the one that a caller gets."""

from __future__ import annotations

import json
import re

from desk_client import open_desk
from docs.blocks import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


async def test_the_front_page_shows_a_refusal_as_it_comes() -> None:
    shown = README.partition("## What a refusal looks like")[2].partition("```text\n")[2].partition("```")[0]
    head, _, body = shown.partition("\n\n")
    async with open_desk() as desk:
        await desk.hold("call-1", "1.00")
        await desk.post("/v1/holds/call-1/settle", {"amounts": {"usd": "1.00"}})
        refused = await desk.hold("call-2", "0.01")
    assert head.startswith(f"HTTP/1.1 {refused.status} ")
    for name, value in re.findall(r"^([\w-]+): (\S+)$", head, re.MULTILINE):
        assert refused.headers[name] == value
    told = json.loads(body.replace(", ...}", "}"))
    assert told == {name: refused[name] for name in told}
