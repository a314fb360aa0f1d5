"""`python -m bench`: measures Common Purse and its peers in turn, prints a table, writes `bench/results.json`.

Every measurement gets a contender of its own, started on an empty folder and ended after it: nothing one left behind
weighs on the next. Contenders take turns shape by shape, so that a noisy minute hits all of them.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
import structlog
from rich.console import Console

from bench import machine, report
from bench.contender import Contender, Shape
from bench.core import Figure
from bench.drive import WARM_UP_S, WARM_UP_S_QUICK, Sample, drive
from bench.loop import run_until_signalled
from bench.peers import PEERS
from bench.proxy import litellm as peer_proxy
from bench.proxy import show
from bench.proxy.measure import ROUNDS_LEAST, measure_proxies
from bench.purse import PURSE

RESULTS = Path(__file__).with_name("results.json")
QUICK_S = 1.0
FOLDER_PREFIX = "purse-bench-"


class ChildFailedError(RuntimeError):
    """A child that measures something by itself ended with an error of its own."""


@click.command()
@click.option("--seconds", default=3.0, show_default=True, help="How long each measurement counts.")
@click.option("--quick", is_flag=True, help=f"{QUICK_S:g} s each, and a smaller core.")
@click.option(
    "--runs", default=1, show_default=True, help="Rounds over everything; the median is told. 5 for the record."
)
@click.option(
    "--only",
    default="",
    metavar="TEXT",
    help='Only what has this in its name: "256", "redis", "core", "proxy", "viewers", "HTTP".',
)
@click.option("--litellm", is_flag=True, help="Install LiteLLM into .venv/litellm first, if it is not there.")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(tempfile.gettempdir()),
    show_default=True,
    help="On which disk the contenders keep their data, for as long as it takes.",
)
def main(seconds: float, quick: bool, runs: int, only: str, litellm: bool, folder: Path) -> None:
    """Common Purse next to its durable peers and to another proxy, in one run."""
    if quick:
        seconds = QUICK_S
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(30),  # warnings
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
    if litellm and (failed := peer_proxy.install()) is not None:
        print(failed, file=sys.stderr)
    sys.exit(run_until_signalled(_bench(Plan(seconds, quick, runs, only, folder))))


class Plan(msgspec.Struct, frozen=True):
    """What was asked for on the command line."""

    seconds: float
    quick: bool
    runs: int
    only: str
    folder: Path

    def wants(self, name: str) -> bool:
        return self.only.casefold() in name.casefold()


async def _bench(plan: Plan) -> None:
    console = Console(width=None if sys.stdout.isatty() else 140)
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, dir=plan.folder) as folder:
        root = Path(folder)
        here, before = machine.look(root), machine.syncs(root)
        report.show_machine(console, here, before)
        contenders = _contenders(console)
        figures = await _core(plan) if plan.wants("core") else []
        viewers = await _figures("bench.viewers", plan, "--json") if plan.wants("viewers") else []
        http = await _figures("bench.over_http", plan, "--json") if plan.wants("over HTTP") else []
        measured = await _measure(plan, contenders, root)
        rounds = 1 if plan.quick else max(ROUNDS_LEAST, plan.runs)
        proxies = await measure_proxies(
            console, root, wants=plan.wants, seconds=plan.seconds, rounds=rounds, quick=plan.quick, say=_say
        )
        after = machine.syncs(root)
    report.show(console, measured, figures, PURSE)
    report.show_figures(console, "Holds while others watch live, and what that costs", viewers)
    report.show_figures(console, "A hold over HTTP, through the web and through a bare handler", http)
    show.show(console, proxies, rounds)
    console.print(f"fdatasync of 4 KiB afterwards: p50 {after.p50_ms:.2f} ms, p99 {after.p99_ms:.2f} ms")
    if plan.only:
        console.print(f"only a part was measured: {RESULTS.name} stays as it was")
        return
    made = [*report.rows(measured, [*figures, *viewers, *http], PURSE), *show.rows(proxies)]
    report.write(RESULTS, report.Results(made, report.machine_facts(here, before, after), plan.seconds, plan.runs))
    console.print(f"median of {plan.runs}; written to {RESULTS}")


def _contenders(console: Console) -> list[Contender]:
    """Who can run here; one line for each that cannot, and one for what the others are."""
    able: list[Contender] = []
    for contender in (PURSE, *PEERS):
        missing = contender.missing()
        console.print(f"{contender.name}: {f'not measured, {missing}' if missing else contender.about}")
        if not missing:
            able.append(contender)
    return able


async def _core(plan: Plan) -> list[Figure]:
    """Each in a process of its own: what it fills would weigh on the others."""
    return [figure for module in ("bench.core", "bench.users") for figure in await _figures(module, plan)]


async def _figures(module: str, plan: Plan, *options: str) -> list[Figure]:
    _say(module)
    quick = ["--quick"] if plan.quick else []
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *options, *quick, cwd=RESULTS.parents[1], stdout=asyncio.subprocess.PIPE
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise ChildFailedError(f"{module} ended with status {process.returncode}")
    return [msgspec.json.decode(line, type=Figure) for line in said.splitlines()]


async def _measure(plan: Plan, contenders: Sequence[Contender], root: Path) -> dict[tuple[Contender, Shape], Sample]:
    turns = [turn for turn in _turns(contenders) if plan.wants(f"{turn[0].name}, {turn[1].title}")]
    samples: dict[tuple[Contender, Shape], list[Sample]] = {turn: [] for turn in turns}
    for run in range(plan.runs):
        for contender, shape in turns:
            _say(f"run {run + 1} of {plan.runs}: {contender.name}, {shape.title}")
            samples[contender, shape].append(await _one(plan, contender, shape, root))
    return {turn: report.median(taken) for turn, taken in samples.items()}


def _turns(contenders: Sequence[Contender]) -> list[tuple[Contender, Shape]]:
    """Shapes of one group directly after each other."""
    pairs = [(contender, shape) for contender in contenders for shape in contender.shapes]
    groups = list(dict.fromkeys(shape.group for _, shape in pairs))
    return sorted(pairs, key=lambda pair: groups.index(pair[1].group))


async def _one(plan: Plan, contender: Contender, shape: Shape, root: Path) -> Sample:
    gc.collect()
    gc.freeze()  # what is here already is nobody's garbage
    with tempfile.TemporaryDirectory(dir=root) as folder:
        async with contender.open(Path(folder)) as client:
            warm_up_s = WARM_UP_S_QUICK if plan.quick else WARM_UP_S
            return await drive(client, shape, seconds=plan.seconds, warm_up_s=warm_up_s)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
