"""`python -m bench`: measures Common Purse and its peers in turn, prints tables, writes `bench/results.json` and plots.

Every measurement gets a contender of its own, started on an empty folder and ended after it: nothing one left behind
weighs on the next. Contenders take turns shape by shape, so that a noisy minute hits all of them. It runs unattended:
whoever fails is told and left out, and the exit status says so at the end.
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

from bench import machine, plots, report, rows
from bench.contender import Contender, Shape
from bench.core import Figure
from bench.drive import WARM_UP_S, WARM_UP_S_QUICK, Sample, drive
from bench.loop import run_until_signalled
from bench.peers import PEERS
from bench.plan import Plan, Progress
from bench.proxy import measure as proxy
from bench.proxy import show
from bench.purse import PURSE
from bench.targets import with_targets
from bench.troubles import Troubles

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results.json")
QUICK_S = 1.0
FOLDER_PREFIX = "purse-bench-"
FAILED = 1

ALONE: dict[str, tuple[str, Sequence[str]]] = {
    "core": ("The pure core alone, one process, CPU time", ()),
    "users": ("Users with guards of their own, one process, CPU time", ()),
    "growth": ("Whether it gets slower by knowing more, one process, CPU time", ()),
    "restart": ("How soon an engine is ready again", ("--json", "--rounds", "{runs}", "--folder", "{folder}")),
    "http": (
        "A hold over HTTP",
        ("--json", "--rounds", "{runs}", "--seconds", "{seconds}", "--folder", "{folder}"),
    ),
    "viewers": ("Holds while others watch live, and what that costs", ("--json",)),
}
"""Modules that measure something by themselves, each in a process of its own: what one fills would weigh on the others.
What their tables are called, and how they are run."""


class ChildFailedError(RuntimeError):
    """A child that measures something by itself ended with an error of its own."""


@click.command()
@click.option("--seconds", default=2.5, show_default=True, help="How long each measurement counts.")
@click.option("--quick", is_flag=True, help=f"{QUICK_S:g} s each, and less of everything.")
@click.option(
    "--runs", default=1, show_default=True, help="Rounds over everything; the median is told. 5 for the record."
)
@click.option(
    "--only",
    default="",
    metavar="TEXT",
    help=f'Only what has this in its name: "256", "redis", "proxy", {", ".join(f"{name!r}" for name in ALONE)}.',
)
@click.option(
    "--install", is_flag=True, help="Install the proxies to compare with under .venv first, as far as needed."
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(tempfile.gettempdir()),
    show_default=True,
    help="On which disk the contenders keep their data, for as long as it takes.",
)
def main(seconds: float, quick: bool, runs: int, only: str, install: bool, folder: Path) -> None:
    """Common Purse next to its durable peers and to other proxies, in one run."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(30),  # warnings
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
    console = report.console()
    troubles = Troubles(console)
    if install:
        for failed in proxy.install():
            console.print(failed)
    bench = Bench(Plan(QUICK_S if quick else seconds, quick, runs, only, folder), console, troubles)
    status = run_until_signalled(bench.run())
    troubles.show()
    sys.exit(status or (FAILED if troubles.failed else 0))


class Bench:
    """One run over everything that is wanted."""

    def __init__(self, plan: Plan, console: Console, troubles: Troubles) -> None:
        self._plan, self._console, self._troubles = plan, console, troubles
        self._progress = Progress()

    async def run(self) -> None:
        with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, dir=self._plan.folder) as folder:
            root = Path(folder)
            here, before = machine.look(root), machine.syncs(root)
            report.show_machine(self._console, here, before)
            contenders = self._contenders()
            measured = await self._measure(contenders, root)
            figures = {name: await self._alone(name) for name in ALONE if self._plan.wants(name)}
            proxies = await self._proxies(root)
            after = machine.syncs(root)
        made = [
            *report.rows(measured, [figure for those in figures.values() for figure in those], PURSE),
            *show.rows(proxies),
        ]
        made = list(with_targets(made))
        report.show_targets(self._console, made)
        report.show(self._console, measured, PURSE)
        for name, those in figures.items():
            report.show_figures(self._console, ALONE[name][0], those)
        show.show(self._console, proxies, self._proxy_rounds)
        self._console.print(f"fdatasync of 4 KiB afterwards: p50 {after.p50_ms:.2f} ms, p99 {after.p99_ms:.2f} ms")
        facts = report.machine_facts(here, before, after)
        took_s = round(self._progress.took_s)
        self._keep(rows.Results(made, facts, self._plan.seconds, self._plan.runs, took_s, self._troubles.failed))

    def _keep(self, results: rows.Results) -> None:
        """What was measured in part leaves the last whole run as it was; a quick run leaves its pictures."""
        minutes = f"median of {results.runs}, {results.took_s / 60:.0f} minutes"
        if self._plan.only:
            self._console.print(f"{minutes}; only a part was measured: {RESULTS.name} and the plots stay as they were")
            return
        rows.write(RESULTS, results)
        if self._plan.quick:
            self._console.print(f"{minutes}; written to {RESULTS}; the plots stay as they were")
            return
        plots.draw_all(results, plots.FOLDER)
        self._console.print(f"{minutes}; written to {RESULTS} and {plots.FOLDER}")

    def _contenders(self) -> list[Contender]:
        """Who can run here; one line for each that cannot, and one for what the others are."""
        able: list[Contender] = []
        for contender in (PURSE, *PEERS):
            missing = contender.missing()
            said = f"not measured, {missing}" if missing else contender.about
            self._console.print(f"{contender.name}: {said}", markup=False)
            if not missing:
                able.append(contender)
        return able

    # --- side by side -------------------------------------------------------------------------------------------------

    async def _measure(self, contenders: Sequence[Contender], root: Path) -> dict[tuple[Contender, Shape], Sample]:
        turns = [(who, shape) for who, shape in _turns(contenders) if self._plan.wants(f"{who.name}, {shape.title}")]
        samples: dict[tuple[Contender, Shape], list[Sample]] = {turn: [] for turn in turns}
        done, runs = 0, self._plan.runs
        for run in range(runs):
            for contender, shape in turns:
                done += 1
                name = f"{contender.name}, {shape.title}"
                if self._troubles.has(name):
                    continue
                self._progress.say(f"{done} of {runs * len(turns)}, run {run + 1}: {name}")
                with self._troubles.of(name):
                    samples[contender, shape].append(await self._one(contender, shape, root))
        failed = {turn for turn in turns if self._troubles.has(f"{turn[0].name}, {turn[1].title}")}
        return {turn: report.median(taken) for turn, taken in samples.items() if taken and turn not in failed}

    async def _one(self, contender: Contender, shape: Shape, root: Path) -> Sample:
        gc.collect()
        gc.freeze()  # what is here already is nobody's garbage
        gc.set_threshold(20_000, 20, 50)  # as a web process of ours does; for every contender's client alike
        with tempfile.TemporaryDirectory(dir=root) as folder:
            async with contender.open(Path(folder)) as client:
                warm_up_s = WARM_UP_S_QUICK if self._plan.quick else WARM_UP_S
                return await drive(client, shape, seconds=self._plan.seconds, warm_up_s=warm_up_s)

    # --- by themselves ------------------------------------------------------------------------------------------------

    async def _alone(self, name: str) -> list[Figure]:
        self._progress.say(f"bench.{name}")
        with self._troubles.of(name):
            return await self._figures(name)
        return []

    async def _figures(self, name: str) -> list[Figure]:
        _, options = ALONE[name]
        words = [option.format_map(msgspec.structs.asdict(self._plan)) for option in options]
        if self._plan.quick:
            words.append("--quick")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", f"bench.{name}", *words, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        try:
            said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
        if process.returncode != 0:
            raise ChildFailedError(f"bench.{name} ended with status {process.returncode}")
        return [msgspec.json.decode(line, type=Figure) for line in said.splitlines()]

    # --- proxies ------------------------------------------------------------------------------------------------------

    @property
    def _proxy_rounds(self) -> int:
        return 1 if self._plan.quick else max(proxy.ROUNDS_LEAST, self._plan.runs)

    async def _proxies(self, root: Path) -> proxy.Measured:
        measured = proxy.Measured()
        with self._troubles.of("proxies"):
            measured = await proxy.measure_proxies(
                self._console, root, wants=self._plan.wants, seconds=self._plan.seconds, rounds=self._proxy_rounds,
                quick=self._plan.quick, say=self._progress.say,
            )  # fmt: skip
        for who, why in measured.failed.items():
            self._troubles.add(f"{who.name}, as a proxy", why)
        return measured


def _turns(contenders: Sequence[Contender]) -> list[tuple[Contender, Shape]]:
    """Shapes of one group directly after each other."""
    pairs = [(contender, shape) for contender in contenders for shape in contender.shapes]
    groups = list(dict.fromkeys(shape.group for _, shape in pairs))
    return sorted(pairs, key=lambda pair: groups.index(pair[1].group))


if __name__ == "__main__":
    main()
