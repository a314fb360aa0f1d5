"""`python -m bench.http`: what a hold costs over HTTP, through our web process and through a bare handler beside it.

A real `purse up`, every append synced. The same client process calls both by turns, with 1 caller and with 64, a
connection each: `POST /v1/holds` with a key at our web process, and the same body at `bench.bare`, which does nothing
but await the client's own hold at the same engine. With `--json` it prints its figures as `python -m bench` reads them.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec
from yarl import URL

from bench import machine, report
from bench.answering import until_answering
from bench.child import child, free_port
from bench.contender import HELD
from bench.core import Figure
from bench.drive import WARM_UP_S, WARM_UP_S_QUICK, WrongBooksError, cpu_s
from bench.proxy.load import Heard, Load, called
from bench.proxy.processes import below
from bench.purse import PurseClient
from commonpurse.up import Opened as Wallet
from commonpurse.up import UpOptions, up
from engine.client import Purse

ROOT = Path(__file__).parents[1]
ROUNDS, SECONDS, SECONDS_QUICK = 3, 3.0, 0.5
CALLERS = (1, 64)
OURS, BARE = "Common Purse", "bare aiohttp handler"
PLAN = """
[budgets.shared]
unit = "usd"
limit = "9000000"

[budgets.user-daily]
unit = "usd"
limit = "9000000"
each = "user"
"""
BODY = {"amounts": {"usd": "0.01"}, "labels": {"provider": "openai", "model": "gpt-4.1-mini"}}
CREATED = "201"
READY_WAIT_S = 30.0


@dataclass(frozen=True)
class Way:
    """One of the two: where it listens, what a call looks like there, whose CPU it takes."""

    name: str
    port: int
    request: bytes
    pid: int


@dataclass(frozen=True)
class Round:
    """What one round heard, and CPU of the way's own process a hold, us."""

    heard: Heard
    cpu_us: float


@click.command()
@click.option("--rounds", default=ROUNDS, show_default=True, help="Of which the median is told.")
@click.option("--seconds", default=SECONDS, show_default=True, help="How long each measurement counts.")
@click.option("--quick", is_flag=True, help=f"One round of {SECONDS_QUICK:g} s each.")
@click.option("--json", "as_json", is_flag=True, help="Figures for programs.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=tempfile.gettempdir())
def main(rounds: int, seconds: float, quick: bool, as_json: bool, folder: Path) -> None:
    """A hold over HTTP: p50 at 1 caller, holds a second at 64, over a bare handler's."""
    if quick:
        rounds, seconds = 1, SECONDS_QUICK
    console = report.console()
    made: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="purse-http-", dir=folder) as there:
        root = Path(there)
        if not as_json:
            report.show_machine(console, machine.look(root), machine.syncs(root))
        (root / "purse.toml").write_text(PLAN)

        async def visit(wallet: Wallet) -> int:
            made.extend(await measure(wallet, root, rounds=rounds, seconds=seconds, quick=quick))
            return 0

        status = asyncio.run(up(UpOptions(data=root / "data", port=0, config=root / "purse.toml"), visit))
    if status or not made:
        sys.exit(status or 1)
    report.say_figures(console, "A hold over HTTP", made, as_json=as_json)


async def measure(wallet: Wallet, root: Path, *, rounds: int, seconds: float, quick: bool) -> list[Figure]:
    """Both ways by turns. Raises `WrongBooksError` if not exactly what was granted is held."""
    taken: dict[tuple[int, str], list[Round]] = {}
    granted = 0
    async with _bare(wallet, root) as bare, Purse.connect(wallet.nats_url) as purse:
        ways = (_ours(wallet), bare)
        for number in range(rounds):
            for callers in CALLERS:
                for way in ways:
                    _say(f"http: round {number + 1} of {rounds}, {_title(callers)}, {way.name}")
                    heard = await _call(way, callers, seconds, WARM_UP_S_QUICK if quick else WARM_UP_S)
                    taken.setdefault((callers, way.name), []).append(heard)
                    granted += heard.heard.calls
        used = await PurseClient(purse, ()).used()
        if used != granted * HELD:
            raise WrongBooksError(f"{granted:,} holds were answered, {used / HELD:,.2f} are on the books")
    return [figure for (callers, name), heard in taken.items() for figure in _figures(callers, name, heard)]


async def _call(way: Way, callers: int, seconds: float, warm_up_s: float) -> Round:
    busy_s = cpu_s([way.pid])
    heard = await called(Load(way.port, way.request, False, callers, warm_up_s, seconds, CREATED))
    busy_s = cpu_s([way.pid]) - busy_s
    if heard.errors or not heard.answers:
        raise WrongBooksError(f"{way.name} with {_title(callers)} did not hold: {heard.errors}")
    return Round(heard, 1e6 * busy_s / heard.calls)


def _figures(callers: int, name: str, rounds: Sequence[Round]) -> Iterator[Figure]:
    heard = [one.heard for one in rounds]
    row = f"HTTP, {_title(callers)}: {name}"
    yield Figure(f"{row}: decisions", statistics.median(one.answers / one.took_s for one in heard), "1/s")
    yield Figure(f"{row}: p50", statistics.median(one.total.p50_ms for one in heard), "ms")
    yield Figure(f"{row}: p99", statistics.median(one.total.p99_ms for one in heard), "ms")
    yield Figure(f"{row}: CPU of its process", statistics.median(one.cpu_us for one in rounds), "us")


def _title(callers: int) -> str:
    return f"{callers} caller{'s' if callers > 1 else ''}"


# --- the two ways -----------------------------------------------------------------------------------------------------


def _ours(wallet: Wallet) -> Way:
    port = URL(wallet.page).port or 0
    (pid,) = [pid for pid, command in below(os.getpid()).items() if command[-2:] == ["-m", "web"]]
    return Way(OURS, port, _request(port, {"Authorization": f"Bearer {wallet.key}"}), pid)


@asynccontextmanager
async def _bare(wallet: Wallet, root: Path) -> AsyncIterator[Way]:
    port = free_port()
    command = [sys.executable, "-m", "bench.bare", str(port)]
    env = {"PYTHONPATH": str(ROOT), "BENCH_NATS_URL": wallet.nats_url}
    async with child("bare", command, folder=root, env=env) as bare:
        await until_answering(f"http://127.0.0.1:{port}/readyz", bare, wait_s=READY_WAIT_S)
        yield Way(BARE, port, _request(port, {}), bare.pid)


def _request(port: int, headers: Mapping[str, str]) -> bytes:
    """A hold of one cent. Neither way is told an id: each makes one."""
    said = msgspec.json.encode(BODY)
    all_headers = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", "Content-Length": str(len(said))}
    lines = ["POST /v1/holds HTTP/1.1", *[f"{name}: {value}" for name, value in {**all_headers, **headers}.items()]]
    return "\r\n".join([*lines, "", ""]).encode() + said


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
