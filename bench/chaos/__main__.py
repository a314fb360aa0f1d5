"""`python -m bench.chaos`: is anything lost when everything dies? Exit code 0 only if not the least thing differs.

Client processes hold and settle while nats-server, engine, projector and web of a whole `purse up` are killed with
SIGKILL every two seconds, at random. Then three books must agree to the last nano-dollar: what the callers wrote down,
what the record proves, what the projector and the web show.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import click

from bench.chaos.deeds import NARROW, WIDE, Deed, kept
from bench.chaos.over_http import settled_shown
from bench.chaos.storm import PARTS, Storm
from bench.chaos.verdict import differences, told_to_the_end
from commonpurse.up import Opened, UpOptions, up

DIFFERENCES_SHOWN = 20
END_WAIT_S = 120.0
WEB_WITHIN_S = 30.0
ROOT = Path(__file__).parents[2]


class Trial:
    """One storm over one wallet: what it is given, and its verdict."""

    def __init__(self, folder: Path, *, asks: int, seconds: float, processes: int, seed: int) -> None:
        self._folder, self._asks, self._seconds = folder, asks, seconds
        self._processes, self._seed = processes, seed

    async def run(self) -> int:
        """The exit code."""
        config = self._folder / "purse.toml"
        config.write_text(self._plan())
        return await up(UpOptions(data=self._folder / "data", port=0, config=config), visit=self._visit)

    def _plan(self) -> str:
        """The wide budget is for all, the narrow one pays for half of what its lane would hold."""
        return f"""
[budgets.{WIDE}]
unit = "usd"
limit = "1000000"
per = "total"
where = {{ lane = "{WIDE}" }}
[budgets.{NARROW}]
unit = "usd"
limit = "{self._asks * 0.2 * 0.0055 / 4:.4f}"
per = "total"
where = {{ lane = "{NARROW}" }}
"""

    async def _visit(self, opened: Opened) -> int:
        storm, began = Storm(random.Random(self._seed)), time.monotonic()
        killing = asyncio.create_task(storm.run())
        try:
            deeds = await self._call(opened.nats_url)
        finally:
            killing.cancel()
        took_s = time.monotonic() - began
        record, proof, status = await told_to_the_end(opened.nats_url, self._folder)
        found = list(differences(deeds, record, proof, status))
        found += await _web(opened, {budget.name: budget.settled for budget in status.budgets})
        _show(deeds, storm, proof.messages, took_s)
        for line in found[:DIFFERENCES_SHOWN]:
            print(f"  differs: {line}")
        print(f"{len(found)} differences" if found else "No difference.", flush=True)
        return 1 if found else 0

    async def _call(self, url: str) -> list[Deed]:
        names = [f"c{number}" for number in range(self._processes)]
        files = await asyncio.gather(*[self._caller(url, name) for name in names])
        return [deed for file in files for deed in kept(file)]

    async def _caller(self, url: str, name: str) -> Path:
        file = self._folder / f"{name}.json"
        calls = self._asks // self._processes
        said = [str(file), name, str(calls), str(self._seconds), str(self._seed)]
        with open(file.with_suffix(".log"), "wb") as log:  # noqa: ASYNC230  opened once, on a local disk
            process = await asyncio.create_subprocess_exec(
                *[sys.executable, "-m", "bench.chaos.caller", *said],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PURSE_NATS_URL": url},
                stdout=log,
                stderr=log,
            )
        async with asyncio.timeout(self._seconds + END_WAIT_S):
            status = await process.wait()
        assert status == 0, f"client process {name} ended with status {status}: {file.with_suffix('.log').read_text()}"
        return file


async def _web(opened: Opened, settled: dict[str, int]) -> list[str]:
    """The web shows what the projector does, as soon as it is back from the last kill."""
    shown: dict[str, int] | None = None
    until = time.monotonic() + WEB_WITHIN_S
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {opened.key}"}) as session:
        while shown != settled and time.monotonic() < until:
            with contextlib.suppress(aiohttp.ClientConnectionError):
                shown = await settled_shown(session, opened.page.rstrip("/"))
            await asyncio.sleep(0.1)
    return [] if shown == settled else [f"the web shows {shown}, the projector {settled}"]


def _show(deeds: Sequence[Deed], storm: Storm, messages: int, took_s: float) -> None:
    answers = [deed.held for deed in deeds] + [deed.settled for deed in deeds if deed.cost is not None]
    handed = [deed for deed in deeds if deed.cost is not None]
    refused = sum(deed.held is not None and deed.cost is None for deed in deeds)
    unheard = [deed for deed in deeds if deed.held is None]
    waits = [deed.hold_wait_s for deed in deeds if deed.held] + [deed.settle_wait_s for deed in deeds if deed.settled]
    print(f"{len(deeds):,} holds and {len(handed):,} settles in {took_s:.0f} s; {messages:,} messages on the stream")
    print(f"  kills          {', '.join(f'{part} {storm.kills[part]}' for part in PARTS)}")
    print(f"  acknowledged   {sum(heard is not None for heard in answers):,} ({refused:,} of them refused)")
    print(f"  unanswered     {sum(deed.patient for deed in unheard):,} holds of patient callers, "
          f"{sum(not deed.patient for deed in unheard):,} of impatient ones, "
          f"{sum(deed.settled is None for deed in handed):,} settles")  # fmt: skip
    print(f"  longest wait   {max(waits, default=0):.2f} s")


@click.command()
@click.option("--asks", default=10_000, show_default=True, help="Holds, each with its settle.")
@click.option("--seconds", default=60.0, show_default=True, help="Over which they begin.")
@click.option("--processes", default=8, show_default=True, help="Client processes.")
@click.option("--runs", default=3, show_default=True, help="One after the other, each with the next seed.")
@click.option("--seed", default=1, show_default=True, help="Of amounts and kills in the first run.")
@click.option("--keep", type=click.Path(path_type=Path), help="A new folder to keep everything in.")
def main(asks: int, seconds: float, processes: int, runs: int, seed: int, keep: Path | None) -> None:
    """Kill everything, again and again, and compare the books."""
    exact = 0
    with tempfile.TemporaryDirectory(prefix="purse-chaos-") as scratch:
        for number in range(seed, seed + runs):
            folder = (keep or Path(scratch)) / f"seed-{number}"
            folder.mkdir(parents=True)
            trial = Trial(folder, asks=asks, seconds=seconds, processes=processes, seed=number)
            exact += asyncio.run(trial.run()) == 0
    print(f"{exact} of {runs} runs without a difference")
    sys.exit(0 if exact == runs else 1)


if __name__ == "__main__":
    main()
