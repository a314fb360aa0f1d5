"""What a page needs that it does not say, and what is done in place of what costs money, minutes or another machine.

Everything that is not run as it stands is in one of these two tables.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from docs.blocks import ROOT
from docs.stage import Stage

# --- commands ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Elsewhere:
    """Not run here. `shown_by`: the test, or the file, that answers for it."""

    shown_by: str


@dataclass(frozen=True)
class Instead:
    """Another command; groups of the pattern as `\\1`."""

    command: str


@dataclass(frozen=True)
class Up:
    """A wallet, kept running: options and environment are groups of the pattern."""


@dataclass(frozen=True)
class Until:
    """Kept running from when it says this."""

    said: str


@dataclass(frozen=True)
class Ends:
    """Run as it stands, and ends with this exit code."""

    code: int


How = Elsewhere | Instead | Up | Until | Ends

COMMANDS: list[tuple[str, How]] = [
    (r"(?P<env>(?:[A-Z_]+=\S+ )*)purse up\b(?P<options>.*)", Up()),
    (r"(?P<env>(?:[A-Z_]+=\S+ )*)make run\b(?P<options>)", Up()),
    (r"purse hold\b.* # refused: exit code 3", Ends(3)),
    (r"make demo\b", Elsewhere("tests/end_to_end/test_demo.py")),
    (r"make (test|sdks|docs|screenshots|assets)\b", Instead(rf"make -C {ROOT} -n \1")),
    (r"((?:[A-Z]+=\S+ )*)make (soak|chaos|bench)((?: [A-Z]+=\S+)*)", Instead(rf"\1 make -C {ROOT} -n \2\3")),
    (
        r"python -m bench\.?(\w*)((?: --[\w-]+)?).*",
        Instead(rf"cd {ROOT}/bench; ls -d \1*; grep -rqe '\2' ."),
    ),
    (r"(?:PURSE_PLANTED=1 )?\.venv/bin/pytest ((?:[\w/]+ ?)+).*", Instead(rf"cd {ROOT}; ls -d \1")),
    (r"(docker|install|openssl|cp deploy/env.example)\b.*", Elsewhere("tests/unit/test_deploy.py")),
    (r"(kubectl|helm)\b.*", Elsewhere("tests/unit/test_deploy.py")),
    (r"(?:\.venv/bin/)?(pip install|hatchling build|git clone)\b.*", Elsewhere("pyproject.toml")),
    (r"duckdb <.*", Elsewhere("tests/unit/test_examples.py")),
    (r"purse audit today --follow\b.*", Until("All is right")),
    (r"purse prices import\b.*", Elsewhere("tests/unit/test_cli_prices.py")),
    (r".*python -m (engine|projector)\b.*", Until(r'.*"event": "\w+"')),
]
"""Which commands are not run as they stand. The first that matches from its beginning counts."""


def how(command: str) -> tuple[How | None, re.Match[str] | None]:
    for pattern, found in COMMANDS:
        if match := re.match(pattern, command):
            return found, match
    return None, None


# --- pages ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setup:
    """`config`: the purse.toml of a page that shows none. `nats`: a broker of its own, in NATS_URL, which wallets join.

    `names`: what its Python programs find there. `before`: what has happened before the first block. `put`: what stands
    for what. `after`: a program at the end. `wallet`: False where nothing on the page has to do with one.
    `elsewhere`: the test that runs what is on the page, in place of this one.
    """

    config: str = ""
    nats: bool = False
    names: str = ""
    before: Callable[[Stage], Awaitable[None]] | None = None
    put: dict[str, str] = field(default_factory=dict)
    after: str = ""
    wallet: bool = True
    elsewhere: str = ""


DAY = datetime.now(UTC).strftime("%Y-%m-%d")
KEY = "export PURSE_KEY=$(cat data/admin.key)"
GUARDED = """
[budgets.jev]
unit = "usd"
limit = "1.00"
per = "total"
[upstreams.openai]
base_url = "https://api.openai.com/v1"
key_env = "OPENAI_API_KEY"
"""


async def with_a_call(stage: Stage) -> None:
    """A call from its hold to its end, and the receipt of that."""
    await stage.sh("purse hold --id call-1 --amount usd=0.05 --label provider=jev --label model=gpt-5")
    settled = await stage.sh("purse --json settle call-1 --amount usd=0.004")
    seq, chain = re.search(r'"seq":\s*(\d+)', settled), re.search(r'"chain":\s*"(\w+)"', settled)
    assert seq is not None
    assert chain is not None
    stage.put |= {"9041:5f..": f"{seq[1]}:{chain[1]}", "4711:5f0c...": f"{seq[1]}:{chain[1]}"}
    stage.put |= {f"{DAY}T14:05:00Z": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}


async def with_a_copy_of_the_seals(stage: Stage) -> None:
    await with_a_call(stage)
    (stage.folder / "copy.jsonl").write_text("")


async def with_an_estimate(stage: Stage) -> None:
    """A call whose real cost nobody has said."""
    await stage.sh("purse hold --id call-1 --amount usd=0.05 --label provider=jev")
    await stage.sh("purse settle call-1 --amount usd=0.05 --estimated")


async def with_another_plan(stage: Stage) -> None:
    await with_a_call(stage)
    plan = (ROOT / "engine" / "plans" / "default.toml").read_text().replace('"1.00"', '"2.00"')
    (stage.folder / "other.toml").write_text(plan)


async def with_two_plans(stage: Stage) -> None:
    for team in ("team-a.toml", "team-b.toml"):
        (stage.folder / team).write_text((ROOT / "engine" / "plans" / "default.toml").read_text())


async def with_a_key(stage: Stage) -> None:
    """A key to replace and to revoke; `purse key` prints its short id to whom a script does not read."""
    key = await stage.sh("purse key new --role spend --user bob")
    stage.put |= {"7f3qk2m5xa": key.split("_")[1]}


SETUPS: dict[str, Setup] = {
    "README.md": Setup(
        config=GUARDED,
        nats=True,
        names=(
            "import os\nfrom types import SimpleNamespace\nfrom openai import OpenAI\n"
            "purse_key, nats_url = os.environ['PURSE_KEY'], os.environ['NATS_URL']\n"
            "async def call_the_model(): return SimpleNamespace(cost='0.004')\n"
        ),
        after=(
            "question = [{'role': 'user', 'content': 'What is a purse?'}]\n"
            "assert ask(model='gpt-4o-mini', max_tokens=50, messages=question).usage.total_tokens\n"
        ),
    ),
    "docs/operating.md": Setup(before=with_a_key),
    "docs/testing.md": Setup(
        wallet=False,
        put={"2026-11-30": "2026-11-30"},
        names=(
            "from openai import AsyncOpenAI\nfrom providers.fake_openai import fake_openai\n"
            "from providers.faults import Fault\nfrom providers.production import Reply, words\n"
            "from wallets import Books\n"
            "ask = {'model': 'gpt-4o-mini', 'messages': [{'role': 'user', 'content': 'what is a purse'}]}\n"
        ),
        after="test_a_late_settle_is_charged_to_the_day_of_its_hold()\n",
    ),
    "docs/scaling.md": Setup(wallet=False),
    "docs/guides/cycles-clients.md": Setup(elsewhere="tests/sdk/test_cycles_guide.py"),
    "docs/reference/http.md": Setup(elsewhere="tests/reference/test_curl_examples.py"),
    "docs/guides/kubernetes.md": Setup(elsewhere="tests/unit/test_kubernetes.py"),
    "docs/guides/guard-a-program.md": Setup(
        config=GUARDED,
        put={"https://purse.example.org": "http://127.0.0.1:8080"},
        names=(
            "import os\nfrom decimal import Decimal\nfrom types import SimpleNamespace\nfrom openai import OpenAI\n"
            "purse_key = os.environ['PURSE_KEY']\n"
            "client = OpenAI(base_url='http://127.0.0.1:8080/openai/v1', api_key=purse_key)\n"
            "call_the_model = lambda: SimpleNamespace(cost='0.004')\nocr = lambda pages: {'cost': '0.01'}\n"
        ),
        after=(
            "question = [{'role': 'user', 'content': 'What is a purse?'}]\n"
            "assert ask(model='gpt-4o-mini', max_tokens=50, messages=question).usage.total_tokens\n"
            "assert scan(3) == {'cost': '0.01'}\n"
        ),
    ),
    "docs/guides/cloudflare-neurons.md": Setup(
        put={'source = "cloudflare"\nbudget': 'source = "cloudflare"\nbase_url = "http://127.0.0.1:9"\nbudget'}
    ),
    "docs/guides/audit-a-day.md": Setup(before=with_a_copy_of_the_seals),
    "docs/guides/backfill-after-a-crash.md": Setup(before=with_an_estimate),
    "docs/guides/what-if.md": Setup(before=with_another_plan),
    "docs/guides/many-wallets.md": Setup(nats=True, before=with_two_plans),
    "docs/guides/run-a-cluster.md": Setup(wallet=False, nats=True, put={"nats://...": "$NATS_URL"}),
    "examples/README.md": Setup(before=with_a_call),
}
"""A page that is not here has a wallet with the default plan, if something on it is run and nothing starts one."""

PUT = {"2026-11-30": DAY, "sk-...": "sk-of-the-provider", "TOKEN=...": "TOKEN=of-nobody"}
"""What stands for what on every page."""


def setup_of(page: str) -> Setup:
    return SETUPS.get(page, Setup())
