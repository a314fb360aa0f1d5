"""`python -m bench.viewers`: whether hundreds who watch live slow down those who spend, and what they cost the web.

A real `purse up` in a folder of its own. Holds and settles come at an even pace (`bench.paced`), by turns without
viewers and with 500 strangers on `/v1/status/stream` and a few operators on `/budget/stream`; at last with some beside
them that never read. With `--json` it prints its figures as `python -m bench` reads them.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import click
import msgspec
from rich.console import Console
from yarl import URL

from bench import machine, report
from bench.core import Figure
from bench.drive import cpu_s, percentile
from bench.paced import Paced
from bench.proxy.processes import below
from bench.watchers import Heard, Opened, Watch
from commonpurse.up import Opened as Wallet
from commonpurse.up import UpOptions, up
from engine.client import Purse

ROOT = Path(__file__).parents[1]
STRANGERS, OPERATORS, STALLED = 500, 3, 20
PAIRS_PER_S = 100.0
ROUNDS, SECONDS, STALLED_S = 6, 3.0, 45.0
SECONDS_QUICK = 2.0
WARM_UP_S = 1.0
EVENTS_PER_S_MAX = 4.0  # and one more at the edge of a stretch
STALLED_WAIT_S = 60.0
POLL_S = 0.05

BUDGETS = {"shared": 'public = "amounts"', **{name: f'per = "{name}"' for name in ("hour", "week", "month", "year")}}
PLAN = "".join(
    f'[budgets.{name}]\nunit = "usd"\nlimit = "9000000"\n{rule}\n'
    for name, rule in {**BUDGETS, "user-daily": 'each = "user"'}.items()
)
"""Five budgets that all see, and one for each user: an event of some 2 KB."""


class Stretch(msgspec.Struct, frozen=True):
    """One stretch of paced holds: their times in ms, in order of size; CPU s of web and engine; what viewers heard."""

    straight_ms: list[float]
    through_ms: list[float]
    took_s: float
    web_s: float
    engine_s: float
    heard: Heard | None = None


class Measured(msgspec.Struct, frozen=True):
    """`stalled`: the last one, with those that never read; `let_go`: how many of them the web has let go by its end."""

    quiet: list[Stretch]
    watched: list[Stretch]
    stalled: Stretch
    opened: Opened
    let_go: int


@click.command()
@click.option("--rounds", default=ROUNDS, show_default=True, help="Without viewers and with them, in turn.")
@click.option("--seconds", default=SECONDS, show_default=True, help="Of each.")
@click.option("--stalled-seconds", default=STALLED_S, show_default=True, help="With viewers that never read, at last.")
@click.option("--strangers", default=STRANGERS, show_default=True)
@click.option("--quick", is_flag=True, help=f"One round of {SECONDS_QUICK:g} s each.")
@click.option("--json", "as_json", is_flag=True, help="Figures for programs.")
def main(rounds: int, seconds: float, stalled_seconds: float, strangers: int, quick: bool, as_json: bool) -> None:
    """What viewers cost: latency of holds, CPU of the web process, events each of them had."""
    if quick:
        rounds, seconds, stalled_seconds = 1, SECONDS_QUICK, SECONDS_QUICK
    console = Console(stderr=as_json)
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="purse-viewers-") as folder:
        root = Path(folder)
        here = machine.look(root)
        report.show_machine(console, here, machine.syncs(root))
        console.print(f"load {here.load:.1f} before")
        (root / "purse.toml").write_text(PLAN)

        async def visit(wallet: Wallet) -> int:
            async with _bench(wallet) as bench:
                measured.append(await bench.measure(rounds, seconds, stalled_seconds, strangers))
            return 0

        status = asyncio.run(up(UpOptions(data=root / "data", port=0, config=root / "purse.toml"), visit))
    if status or not measured:
        sys.exit(status or 1)
    for figure in figures(measured[0]):
        print(msgspec.json.encode(figure).decode() if as_json else _line(figure), flush=True)
    console.print(f"load {os.getloadavg()[0]:.1f} at the end")
    for line in _remarks(measured[0]):
        console.print(line)


def _line(figure: Figure) -> str:
    wanted = f"   (at most {figure.at_most:g})" if figure.at_most is not None else ""
    return f"{figure.value:10.3f} {figure.unit:8} {figure.name.removeprefix('viewers: ')}{wanted}"


class _Bench:
    """One open wallet."""

    def __init__(self, wallet: Wallet, purse: Purse, session: aiohttp.ClientSession, cookie: str) -> None:
        self._port, self._session, self._cookie = URL(wallet.page).port or 0, session, cookie
        self._paced = Paced(purse, session, rate=PAIRS_PER_S)
        self._pids = {command[-1]: pid for pid, command in below(os.getpid()).items() if command[-2:-1] == ["-m"]}

    async def measure(self, rounds: int, seconds: float, stalled_seconds: float, strangers: int) -> Measured:
        await self._paced.run(WARM_UP_S)
        quiet: list[Stretch] = []
        watched: list[Stretch] = []
        for _ in range(rounds):
            quiet.append(await self._stretch(seconds))
            async with self._watching(strangers, stalled=0) as (watchers, opened):
                watched.append(await self._stretch(seconds, watchers))
        async with self._watching(strangers, stalled=STALLED) as (watchers, all_in):
            await self._until_in(all_in.open + STALLED)
            stalled = await self._stretch(stalled_seconds, watchers)
            let_go = all_in.open + STALLED - await self._viewers()
        return Measured(quiet, watched, stalled, opened, let_go)

    async def _stretch(self, seconds: float, watchers: asyncio.subprocess.Process | None = None) -> Stretch:
        await self._paced.run(WARM_UP_S)
        loop = asyncio.get_running_loop()
        if watchers is not None:
            await _turn(watchers)
        web, engine, began = self._cpu_s("web"), self._cpu_s("engine"), loop.time()
        straight, through = await self._paced.run(seconds)
        web, engine, took_s = self._cpu_s("web") - web, self._cpu_s("engine") - engine, loop.time() - began
        heard = await _turn(watchers) if watchers is not None else None
        return Stretch(straight, through, took_s, web, engine, heard)

    def _cpu_s(self, name: str) -> float:
        return cpu_s([self._pids[name]])

    async def _viewers(self) -> int:
        """How many the web process knows of."""
        async with self._session.get("/metrics") as answer:
            (line,) = [one for one in (await answer.text()).splitlines() if one.startswith("purse_sse_viewers ")]
            return int(float(line.split()[1]))

    async def _until_in(self, count: int) -> None:
        gives_up_at = time.monotonic() + STALLED_WAIT_S
        while (there := await self._viewers()) < count:
            if time.monotonic() > gives_up_at:
                raise TimeoutError(f"the web knows of {there} viewers, {count} have come")
            await asyncio.sleep(POLL_S)

    @asynccontextmanager
    async def _watching(
        self, strangers: int, *, stalled: int
    ) -> AsyncIterator[tuple[asyncio.subprocess.Process, Opened]]:
        """Viewers who have all had their first event, in a process of their own, until the block ends."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.watchers", cwd=ROOT, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        watch = Watch(
            self._port, _request("/v1/status/stream"), _request("/budget/stream?budget=shared", self._cookie),
            strangers, OPERATORS, stalled,
        )  # fmt: skip
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(msgspec.json.encode(watch) + b"\n")
            yield process, msgspec.json.decode(await process.stdout.readline(), type=Opened)
        finally:
            process.kill()
            await process.wait()


def _request(path: str, cookie: str = "") -> bytes:
    carried = f"Cookie: {cookie}\r\n" if cookie else ""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{carried}\r\n".encode()


async def _turn(watchers: asyncio.subprocess.Process) -> Heard:
    """Let viewers begin a stretch anew; what they have heard in the one before."""
    assert watchers.stdin is not None
    assert watchers.stdout is not None
    watchers.stdin.write(b"\n")
    return msgspec.json.decode(await watchers.stdout.readline(), type=Heard)


@asynccontextmanager
async def _bench(wallet: Wallet) -> AsyncIterator[_Bench]:
    headers = {"Authorization": f"Bearer {wallet.key}"}
    async with (
        Purse.connect(wallet.nats_url) as purse,
        aiohttp.ClientSession(wallet.page, headers=headers, cookie_jar=aiohttp.DummyCookieJar()) as session,
    ):
        async with session.post("/sign-in", data={"key": wallet.key}, allow_redirects=False) as answer:
            (cookie,) = answer.cookies.values()
        yield _Bench(wallet, purse, session, f"{cookie.key}={cookie.value}")


# --- what it says -----------------------------------------------------------------------------------------------------


def figures(measured: Measured) -> Iterator[Figure]:
    """Latencies over all rounds together. The noise is the same ratio between rounds that none watched."""
    for way, of in (("straight to the engine", _straight), ("through the web", _through)):
        for share, name in ((0.50, "p50"), (0.99, "p99")):
            one, all_ = (_latency(those, of, share) for those in (measured.quiet, measured.watched))
            yield Figure(f"viewers: a hold {way}, {name}, none watch", one, "ms")
            yield Figure(f"viewers: a hold {way}, {name}, all watch", all_, "ms")
            yield Figure(f"viewers: a hold {way}, {name}, ratio", all_ / one, "x")
            if len(measured.quiet) > 1:
                noise = _latency(measured.quiet[1::2], of, share) / _latency(measured.quiet[::2], of, share)
                yield Figure(f"viewers: a hold {way}, {name}, noise of that ratio", noise, "x")
    yield from _costs(measured)
    yield from _events(measured)


def _latency(stretches: Sequence[Stretch], of: Callable[[Stretch], list[float]], share: float) -> float:
    return percentile(sorted(took_ms for stretch in stretches for took_ms in of(stretch)), share)


def _straight(stretch: Stretch) -> list[float]:
    return stretch.straight_ms


def _through(stretch: Stretch) -> list[float]:
    return stretch.through_ms


def _costs(measured: Measured) -> Iterator[Figure]:
    quiet, watched = ([stretch.web_s / stretch.took_s for stretch in those] for those in _both(measured))
    yield Figure("viewers: CPU of the web, none watch", statistics.median(quiet), "s/s")
    yield Figure("viewers: CPU of the web, all watch", statistics.median(watched), "s/s")
    more = statistics.median(two - one for one, two in zip(quiet, watched, strict=True))
    events = statistics.median(heard.events / heard.took_s for heard in _heard(measured))
    yield Figure("viewers: CPU of the web, a viewer's event", 1e6 * more / events, "us")
    engine = [[stretch.engine_s / stretch.took_s for stretch in those] for those in _both(measured)]
    yield Figure("viewers: CPU of the engine, none watch", statistics.median(engine[0]), "s/s")
    yield Figure("viewers: CPU of the engine, all watch", statistics.median(engine[1]), "s/s")


def _events(measured: Measured) -> Iterator[Figure]:
    heard, stalled = _heard(measured), measured.stalled.heard
    assert stalled is not None
    fewest, mean, operators = (
        [count / one.took_s for count, one in zip(counts, heard, strict=True)]
        for counts in zip(*[(one.fewest, one.mean, one.operator_mean) for one in heard], strict=True)
    )
    yield Figure("viewers: events a stranger, fewest", min(fewest), "events/s")
    yield Figure("viewers: events a stranger, mean", statistics.median(mean), "events/s", _events_max(heard[0]))
    yield Figure("viewers: events an operator, mean", statistics.median(operators), "events/s")
    slowed = stalled.mean / stalled.took_s
    yield Figure("viewers: events a stranger, mean, some never read", slowed, "events/s", _events_max(stalled))
    for name, those in (("all read", heard), ("some never read", [stalled])):
        p50, p99 = (statistics.median(late) for late in zip(*[_behind(one) for one in those], strict=True))
        yield Figure(f"viewers: an event behind the first viewer's, p50, {name}", p50, "ms")
        yield Figure(f"viewers: an event behind the first viewer's, p99, {name}", p99, "ms")


def _events_max(heard: Heard) -> float:
    return round(EVENTS_PER_S_MAX + 1 / heard.took_s, 2)


def _behind(heard: Heard) -> tuple[float, float]:
    return heard.behind_p50_ms, heard.behind_p99_ms


def _both(measured: Measured) -> tuple[list[Stretch], list[Stretch]]:
    return measured.quiet, measured.watched


def _heard(measured: Measured) -> list[Heard]:
    return [stretch.heard for stretch in measured.watched if stretch.heard is not None]


def _remarks(measured: Measured) -> Iterator[str]:
    yield f"{measured.opened.open} viewers had their first event"
    for why, count in measured.opened.turned_away.items():
        yield f"[red]turned away:[/] {count} with {why}; a web process takes `VIEWERS_MAX` of web/status.py"
    heard = _heard(measured)
    yield f"CPU of the viewers' own process: {statistics.median(one.cpu_s / one.took_s for one in heard):.2f} s/s"
    took_s = measured.stalled.took_s
    yield f"of {STALLED} that never read, the web let {measured.let_go} go within {took_s:.0f} s"


if __name__ == "__main__":
    main()
