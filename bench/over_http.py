"""`python -m bench.over_http`: what the web adds to a hold, next to a bare handler that only awaits the client's own.

A real `purse up`, and beside it `bench.bare` with a client of its own on the same wallet. By turns the same calls go to
either, from 1 caller and from 64, each with one hold under way. With `--json` it prints its figures as `python -m
bench` reads them.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import click
import msgspec
from rich.console import Console
from yarl import URL

from bench import machine, report
from bench.child import child, free_port
from bench.core import Figure
from bench.drive import cpu_s
from bench.proxy.load import Load, drive
from bench.proxy.processes import below
from commonpurse.up import Opened as Wallet
from commonpurse.up import UpOptions, up
from engine.errors import NoAnswer

ROOT = Path(__file__).parents[1]
CALLERS = (1, 64)
ROUNDS, SECONDS, WARM_UP_S = 5, 2.0, 0.5
SECONDS_QUICK = 1.0
NAME = "over HTTP: "
RATIO_MAX = 1.6
"""What is wanted of the web's p50 over the bare handler's, at one caller."""
READY_WAIT_S, POLL_S = 20.0, 0.02

PLAN = """
[budgets.shared]
unit = "usd"
limit = "9000000"

[budgets.user-daily]
unit = "usd"
limit = "9000000"
each = "user"
"""
BODY = msgspec.json.encode(
    {"amounts": {"usd": "0.01"}, "labels": {"user": "u00001", "provider": "openai", "model": "gpt-4.1-mini"}}
)


class Way(msgspec.Struct, frozen=True):
    """One of the two: where it listens, who works there, what it wants to hear of its caller."""

    name: str
    port: int
    pid: int
    authorization: str

    def request(self) -> bytes:
        head = (
            f"POST /v1/holds HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: {self.authorization}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
        )
        return head.encode() + BODY


class Stretch(msgspec.Struct, frozen=True):
    """What one way did in one round. CPU in microseconds a hold, of the process that was asked."""

    holds_per_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float


Taken = dict[tuple[str, int], list[Stretch]]


@click.command()
@click.option("--rounds", default=ROUNDS, show_default=True, help="Of which the median is told.")
@click.option("--seconds", default=SECONDS, show_default=True, help="How long each measurement counts.")
@click.option("--quick", is_flag=True, help=f"One round of {SECONDS_QUICK:g} s each.")
@click.option("--json", "as_json", is_flag=True, help="Figures for programs.")
def main(rounds: int, seconds: float, quick: bool, as_json: bool) -> None:
    """A hold over HTTP: through the web, and through a bare handler."""
    if quick:
        rounds, seconds = 1, SECONDS_QUICK
    console = Console(stderr=as_json)
    taken: Taken = {}
    with tempfile.TemporaryDirectory(prefix="purse-http-") as folder:
        root = Path(folder)
        report.show_machine(console, machine.look(root), machine.syncs(root))
        (root / "purse.toml").write_text(PLAN)

        async def visit(wallet: Wallet) -> int:
            async with _ways(wallet, root) as ways:
                await _measure(ways, taken, rounds, seconds)
            return 0

        status = asyncio.run(up(UpOptions(data=root / "data", port=0, config=root / "purse.toml"), visit))
    if status or not taken:
        sys.exit(status or 1)
    for figure in figures(taken):
        print(msgspec.json.encode(figure).decode() if as_json else _line(figure), flush=True)


def _line(figure: Figure) -> str:
    wanted = f"   (at most {figure.at_most:g})" if figure.at_most is not None else ""
    return f"{figure.value:10.2f} {figure.unit:9} {figure.name.removeprefix(NAME)}{wanted}"


@asynccontextmanager
async def _ways(wallet: Wallet, root: Path) -> AsyncIterator[Sequence[Way]]:
    port, env = free_port(), {"PURSE_NATS_URL": wallet.nats_url, "PYTHONPATH": str(ROOT)}
    async with child("bare", [sys.executable, "-m", "bench.bare", str(port)], folder=root, env=env) as bare:
        await _listens(port)
        (web,) = [pid for pid, command in below(os.getpid()).items() if command[-2:] == ["-m", "web"]]
        known = f"Bearer {wallet.key}"
        yield Way("the web", URL(wallet.page).port or 0, web, known), Way("a bare handler", port, bare.pid, known)


async def _listens(port: int) -> None:
    gives_up_at = time.monotonic() + READY_WAIT_S
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < gives_up_at:
            try:
                async with session.get(f"http://127.0.0.1:{port}/"):
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(POLL_S)
    raise NoAnswer("the bare handler does not listen")


async def _measure(ways: Sequence[Way], taken: Taken, rounds: int, seconds: float) -> None:
    for _ in range(rounds):
        for callers in CALLERS:
            for way in ways:
                taken.setdefault((way.name, callers), []).append(await _stretch(way, callers, seconds))


async def _stretch(way: Way, callers: int, seconds: float) -> Stretch:
    load = Load(way.port, way.request(), False, callers, WARM_UP_S, seconds)
    used_s = cpu_s([way.pid])
    heard = await drive(load)
    used_s = cpu_s([way.pid]) - used_s
    if heard.errors:
        raise AssertionError(f"{way.name}: {heard.errors}")
    return Stretch(heard.answers / heard.took_s, heard.total.p50_ms, heard.total.p99_ms, 1e6 * used_s / heard.calls)


def figures(taken: Taken) -> Iterator[Figure]:
    """Medians over the rounds; ratios within a round."""
    for callers in CALLERS:
        web, bare = (taken[name, callers] for name in ("the web", "a bare handler"))
        who = f"{NAME}{callers} caller{'s' if callers > 1 else ''}"
        for name, those in (("the web", web), ("a bare handler", bare)):
            yield Figure(f"{who}, {name}, holds", statistics.median(one.holds_per_s for one in those), "1/s")
            yield Figure(f"{who}, {name}, p50", statistics.median(one.p50_ms for one in those), "ms")
            yield Figure(f"{who}, {name}, p99", statistics.median(one.p99_ms for one in those), "ms")
            yield Figure(f"{who}, {name}, CPU", statistics.median(one.cpu_us for one in those), "us a hold")
        ratio = statistics.median(one.p50_ms / other.p50_ms for one, other in zip(web, bare, strict=True))
        yield Figure(f"{who}, p50 through the web over the bare one's", ratio, "x", RATIO_MAX if callers == 1 else None)


if __name__ == "__main__":
    main()
