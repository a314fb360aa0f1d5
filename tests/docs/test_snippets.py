"""Every block of the pages does what it says: commands and programs run, plans are taken, JSON is of our shapes."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from docs.blocks import PAGES, ROOT, SHOWN, Block, blocks_in, blocks_of, commands_in, name_of
from docs.instead import COMMANDS, KEY, PUT, SETUPS, Elsewhere, Ends, Instead, Until, Up, how, setup_of
from docs.stage import Stage, open_stage

from engine.core.plan import PlanError
from engine.errors import PurseError

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux"),
    pytest.mark.timeout(300),  # a page may have ten commands, each a process; on a busy machine each takes seconds
]

WITH_BLOCKS = {name_of(page): blocks_of(page) for page in PAGES if blocks_of(page)}
PRINTS = "prints"
"""The title of a block that shows what the block before it printed."""

SHELLS = {"sh", "bash", "console"}
RUN = {*SHELLS, "python", "py"}


@asynccontextmanager
async def stage_of(page: str, folder: Path) -> AsyncIterator[Stage]:
    """With all that the page needs and does not say."""
    setup = setup_of(page)
    async with open_stage(folder, nats=setup.nats) as stage:
        stage.put |= PUT | setup.put
        if setup.config:
            (folder / "own.toml").write_text(stage.filled(setup.config))
            stage.env |= {"PURSE_CONFIG": "own.toml", "OPENAI_API_KEY": stage.provider.key}
        if setup.wallet and needs_a_wallet(page):
            await stage.up()
            await stage.sh(KEY)
        if setup.before is not None:
            await setup.before(stage)
        yield stage


@pytest.mark.parametrize("page", WITH_BLOCKS)
async def test_every_block_does_what_it_says(page: str, tmp_path: Path) -> None:
    setup = setup_of(page)
    if setup.elsewhere:
        assert Path(page).name in (ROOT / setup.elsewhere).read_text(encoding="utf-8")
        return
    async with stage_of(page, tmp_path) as stage:
        named = not setup.names
        for block in WITH_BLOCKS[page]:
            if not named and block.language in {"python", "py"}:
                await stage.python(setup.names, f"{page}: names")
                named = True
            await tried(block, stage)
        if setup.after:
            await stage.python(setup.after, f"{page}: after")


def needs_a_wallet(page: str) -> bool:
    """Whether something of it is run as it stands, and nothing of it starts a wallet."""
    blocks = [block for block in WITH_BLOCKS[page] if block.language in RUN]
    programs = any(block.language not in SHELLS for block in blocks)
    typed = [command for block in blocks if block.language in SHELLS for command in commands_in(block.body)]
    ways = [how(command)[0] for command in typed]
    return not any(isinstance(way, Up) for way in ways) and (
        programs or any(way is None or isinstance(way, Ends | Until) for way in ways)
    )


async def tried(block: Block, stage: Stage) -> None:
    match block.language:
        case "sh" | "bash" | "console":
            stage.said = "".join([await typed(command, stage) for command in commands_in(block.body)])
        case "python" | "py":
            stage.said = await stage.python(block.body, block.place)
        case "toml":
            stage.toml(block)
        case "json":
            stage.json(block)
        case "yaml":
            stage.yaml(block)
        case shown if shown in SHOWN:
            if block.title == PRINTS:
                assert re.search(printed(block.body), stage.said), f"{block.place}: it printed\n{stage.said}"
        case other:
            raise AssertionError(f"{block.place}: nobody tries a block of {other!r}; what is only shown is `text`")


def printed(shown: str) -> str:
    """A pattern of these lines in this order; three dots stand for anything in a line."""
    return (
        ".*".join(re.escape(line) for line in shown.splitlines()).replace(re.escape("..."), "[^\n]*").join(("(?s)", ""))
    )


async def typed(command: str, stage: Stage) -> str:
    """What it printed, where it was run as it stands."""
    done, match = how(command)
    match done:
        case None:
            return await stage.sh(command)
        case Ends(code):
            return await stage.sh(command, ends=code)
        case Instead(other):
            assert match is not None
            await stage.sh(match.expand(other))
        case Up():
            assert match is not None
            await stage.up(match["options"], match["env"])
            await stage.sh(KEY)
        case Until(said):
            await stage.until(await stage.start(command), said)
        case Elsewhere(shown_by):
            assert (ROOT / shown_by).exists()
    return ""


# --- that it would notice ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        "```ruby\nputs 1\n```\n",
        "```\nof no language\n```\n",
        "```sh\nls nowhere\n```\n",
        "```sh\ntrue\nfalse  # the second\n```\n",
        "```python\nassert 1 == 2\n```\n",
        "```python\nawait nobody()\n```\n",
        '```toml\n[budgets.jev]\nunit = "usd"\nlimit = "-1"\n```\n',
        '```toml\n[observers.a]\nsource = "elsewhere"\n```\n',
        '```json\n{"id": "call-1", "amount": {"usd": "0.01"}}\n```\n',
        "```yaml\n- a list\n```\n",
        '```text title="prints"\nheld ... usd\n```\n',
    ],
)
async def test_a_block_that_is_wrong_fails(wrong: str, tmp_path: Path) -> None:
    (block,) = blocks_in(wrong, "a page")
    async with open_stage(tmp_path, nats=False) as stage:
        stage.said = "held 1\nusd"
        with pytest.raises((AssertionError, PurseError, PlanError)):
            await tried(block, stage)


async def test_what_one_block_makes_the_next_one_has(tmp_path: Path) -> None:
    text = """
```toml title="purse.toml"
[budgets.jev]
unit = "usd"
limit = "1.00"
```
```sh
export PURSE_KEY=a-key
grep -q jev purse.toml && \\
    test "$PURSE_KEY" = a-key   # a comment's quote
test "one
two" = "$(printf 'one\\ntwo')"
```
  ```python
  import os
  key = os.environ["PURSE_KEY"]
  ```
```python
assert key == "a-key"
```
"""
    async with open_stage(tmp_path, nats=False) as stage:
        for block in blocks_in(text, "a page"):
            await tried(block, stage)


def test_what_is_set_up_is_there() -> None:
    assert set(SETUPS) <= set(WITH_BLOCKS)
    assert {"README.md", "docs/start.md", "docs/operating.md", "examples/README.md"} <= set(WITH_BLOCKS)
    assert all((ROOT / done.shown_by).exists() for _, done in COMMANDS if isinstance(done, Elsewhere))
