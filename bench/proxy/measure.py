"""Drives every contender in every shape, in rounds, and takes from each figure what the direct way took in its round.

All of them are up at the same time and take turns, so that a noisy minute hits all of them. Whoever answered one call
wrongly, left one out, or has books that do not say what was called, has no figures.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

import aiohttp
import msgspec
from rich.console import Console

from bench.child import child, free_port
from bench.drive import WARM_UP_S, WARM_UP_S_QUICK, WrongBooksError, cpu_s
from bench.proxy import litellm, portkey
from bench.proxy.contender import Address, Contender, Shape, body
from bench.proxy.direct import DIRECT
from bench.proxy.load import Heard, Load, called
from bench.proxy.purse import PURSE
from bench.proxy.upstream import Pace
from engine.errors import PurseError

ROOT = Path(__file__).parents[2]
CONTENDERS = (DIRECT, PURSE, litellm.LITELLM, litellm.TWO_WORKERS, portkey.PORTKEY)
SHAPES = (
    Shape(1, 20), Shape(64, 20), Shape(64, 0),
    Shape(1, 20, stream=True, event_ms=20), Shape(64, 20, stream=True, event_ms=20),
)  # fmt: skip
ROUNDS_LEAST = 3
"""Of which the median is told: one round that somebody else disturbed does not count then."""
START_WAIT_S, POLL_S = 10.0, 0.02
FAILED_CHARS = 300


@dataclass(frozen=True)
class Sample:
    """One contender in one shape and round. Times in ms; of a whole answer its first byte comes with its last.

    `proxy_ms`, `rest_ms`: CPU a call, of the process that calls pass through, and of all that it needs besides.
    """

    calls_per_s: float
    p50_ms: float
    p99_ms: float
    first_p50_ms: float
    first_p99_ms: float
    proxy_ms: float
    rest_ms: float
    client_ms: float


@dataclass(frozen=True)
class Figures:
    """Medians over the rounds. `added`: over the direct way in the same round, None for that itself."""

    taken: Sample
    added: Sample | None
    errors: Mapping[str, int]


@dataclass(frozen=True)
class Books:
    """How many calls were answered, and how many of them the contender's books were charged for."""

    calls: int
    charged: float


@dataclass(frozen=True)
class Measured:
    """`books`: of those who have any, and had no errors. `failed`: who gave up, and of what."""

    figures: Mapping[tuple[Contender, Shape], Figures] = field(default_factory=dict)
    books: Mapping[Contender, Books] = field(default_factory=dict)
    failed: Mapping[Contender, str] = field(default_factory=dict)


def install() -> Iterator[str]:
    """Put everybody who can be installed under `.venv`; a line for each who could not be."""
    for each in (litellm, portkey):
        if (failed := each.install()) is not None:
            yield failed


async def measure_proxies(
    console: Console,
    root: Path,
    *,
    wants: Callable[[str], bool],
    seconds: float,
    rounds: int,
    quick: bool,
    say: Callable[[str], None],
) -> Measured:
    """What is wanted by its name (`shape: contender`), and a line for everybody who is there or is not.

    `root`: an empty folder.
    """
    able = []
    for who in CONTENDERS:
        missing = who.missing()
        console.print(f"{who.name}, as a proxy: {f'not measured, {missing}' if missing else who.about}", markup=False)
        if not missing:
            able.append(who)
    shapes = {
        shape: [who for who in able if wants(f"{shape.title}: {who.name}") and (who.streams or not shape.stream)]
        for shape in SHAPES
    }
    shapes = {shape: whos for shape, whos in shapes.items() if whos}
    if not shapes:
        return Measured()
    return await _measure(shapes, root, seconds=seconds, rounds=rounds, quick=quick, say=say)


async def _measure(
    shapes: Mapping[Shape, Sequence[Contender]], root: Path, *, seconds: float, rounds: int, quick: bool,
    say: Callable[[str], None],
) -> Measured:  # fmt: skip
    """In each shape the direct way as well, whether it is wanted or not."""
    wanted = list(dict.fromkeys(who for whos in shapes.values() for who in (DIRECT, *whos)))
    taken: dict[tuple[Contender, Shape], list[tuple[Sample, Heard]]] = {}
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(_provider(root))
        runners: dict[Contender, _Runner] = {}
        failed: dict[Contender, str] = {}
        for who in wanted:
            say(f"starting {who.name}, as a proxy")
            with _apart(who, failed):
                runners[who] = await stack.enter_async_context(_runner(who, root, provider))
        for number in range(rounds):
            for shape, whos in shapes.items():
                await provider.take(Pace(shape.service_ms, shape.event_ms))
                for who in dict.fromkeys((DIRECT, *whos)):
                    if who in failed:
                        continue
                    say(f"round {number + 1} of {rounds}: {who.name}, {shape.title}")
                    warm_up_s = WARM_UP_S_QUICK if quick else WARM_UP_S
                    with _apart(who, failed):
                        sample = await runners[who].drive(shape, seconds=seconds, warm_up_s=warm_up_s)
                        taken.setdefault((who, shape), []).append(sample)
        books: dict[Contender, Books] = {}
        for who, runner in runners.items():
            with _apart(who, failed):
                if who not in failed and (found := await runner.books()) is not None:
                    books[who] = found
    whole = {key: samples for key, samples in taken.items() if key[0] not in failed}
    figures = {(who, shape): _figures(samples, taken[DIRECT, shape], who) for (who, shape), samples in whole.items()}
    return Measured(figures, books, failed)


@contextmanager
def _apart(who: Contender, failed: dict[Contender, str]) -> Iterator[None]:
    """Who fails is told, and the others are measured; without the direct way there is nothing to measure by."""
    try:
        yield
    except (OSError, PurseError, RuntimeError, AssertionError, aiohttp.ClientError, TimeoutError) as error:
        if who is DIRECT:
            raise
        failed[who] = f"{type(error).__name__}: {str(error)[-FAILED_CHARS:]}"


def _figures(
    samples: Sequence[tuple[Sample, Heard]], direct: Sequence[tuple[Sample, Heard]], who: Contender
) -> Figures:
    errors: dict[str, int] = {}
    for _, heard in samples:
        for what, count in heard.errors.items():
            errors[what] = errors.get(what, 0) + count
    over = [_each(lambda mine, theirs: mine - theirs, [one, other])
            for (one, _), (other, _) in zip(samples, direct, strict=True)]  # fmt: skip
    return Figures(_median([one for one, _ in samples]), None if who is DIRECT else _median(over), errors)


def _median(samples: Sequence[Sample]) -> Sample:
    return _each(lambda *values: statistics.median(values), samples)


def _each(of: Callable[..., float], samples: Sequence[Sample]) -> Sample:
    """Field by field."""
    return Sample(*[of(*[getattr(sample, one.name) for sample in samples]) for one in fields(Sample)])


# --- one of each ------------------------------------------------------------------------------------------------------


class _Provider:
    def __init__(self, port: int, session: aiohttp.ClientSession) -> None:
        self.port, self._session = port, session

    async def take(self, pace: Pace) -> None:
        async with self._session.post("/pace", data=msgspec.json.encode(pace)) as answer:
            answer.raise_for_status()

    async def calls(self) -> int:
        async with self._session.get("/count") as answer:
            calls: int = (await answer.json())["calls"]
            return calls


@asynccontextmanager
async def _provider(root: Path) -> AsyncIterator[_Provider]:
    port = free_port()
    command = [sys.executable, "-m", "bench.proxy.upstream", str(port)]
    async with (
        child("provider", command, folder=root, env={"PYTHONPATH": str(ROOT)}) as process,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        provider = _Provider(port, session)
        async with asyncio.timeout(START_WAIT_S):
            while True:
                try:
                    await provider.calls()
                    break
                except aiohttp.ClientError:
                    process.check()
                    await asyncio.sleep(POLL_S)
        yield provider


@asynccontextmanager
async def _runner(who: Contender, root: Path, provider: _Provider) -> AsyncIterator[_Runner]:
    folder = root / who.name.replace(" ", "-").lower()
    folder.mkdir()
    async with who.open(folder, provider.port) as address:
        yield _Runner(who, address, provider)


class _Runner:
    """One contender that is up."""

    def __init__(self, who: Contender, address: Address, provider: _Provider) -> None:
        self._who, self._address, self._provider = who, address, provider
        self._calls = 0
        self._clean = True

    async def drive(self, shape: Shape, *, seconds: float, warm_up_s: float) -> tuple[Sample, Heard]:
        address = self._address
        load = Load(address.port, _request(address, shape), shape.stream, shape.callers, warm_up_s, seconds)
        pids = dict(address.pids())
        before = {what: cpu_s(those) for what, those in pids.items()}
        counted = await self._provider.calls()
        heard = await called(load)
        counted = await self._provider.calls() - counted
        used = {what: cpu_s(those) - before[what] for what, those in pids.items()}
        self._calls += heard.calls
        self._clean = self._clean and not heard.errors
        if not heard.errors and counted != heard.calls:
            raise WrongBooksError(f"{self._who.name} answered {heard.calls:,} calls, the provider {counted:,}")
        if not heard.answers:
            raise WrongBooksError(f"{self._who.name} answered nothing while it was measured: {heard.errors}")
        return _sample(heard, used.get("the proxy", 0.0), used.get("the wallet", 0.0)), heard

    async def books(self) -> Books | None:
        """After an error nobody knows what they should say. Ours must be exact."""
        if self._address.charged is None or not self._clean:
            return None
        books = Books(self._calls, await self._address.charged(self._calls))
        if self._who is PURSE and books.charged != books.calls:
            raise WrongBooksError(f"{books.calls:,} calls were answered, {books.charged:,} are charged")
        return books


def _request(address: Address, shape: Shape) -> bytes:
    said = msgspec.json.encode(body(shape))
    headers = {"Host": f"127.0.0.1:{address.port}", "Content-Type": "application/json",
               "Content-Length": str(len(said)), **address.headers}  # fmt: skip
    lines = [f"POST {address.path} HTTP/1.1", *[f"{name}: {value}" for name, value in headers.items()]]
    return "\r\n".join([*lines, "", ""]).encode() + said


def _sample(heard: Heard, proxy_s: float, rest_s: float) -> Sample:
    return Sample(
        calls_per_s=heard.answers / heard.took_s,
        p50_ms=heard.total.p50_ms, p99_ms=heard.total.p99_ms,
        first_p50_ms=heard.first.p50_ms, first_p99_ms=heard.first.p99_ms,
        proxy_ms=1e3 * proxy_s / heard.calls, rest_ms=1e3 * rest_s / heard.calls,
        client_ms=1e3 * heard.cpu_s / heard.calls,
    )  # fmt: skip
