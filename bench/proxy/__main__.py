"""`python -m bench.proxy`: what a proxy adds to a call, and nothing else. It leaves `results.json` as it is."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console

from bench import machine, report
from bench.loop import run_until_signalled
from bench.proxy import measure as proxy
from bench.proxy import show

SECONDS = 2.5


@click.command()
@click.option("--seconds", default=SECONDS, show_default=True, help="How long each measurement counts.")
@click.option("--rounds", default=proxy.ROUNDS_LEAST, show_default=True, help="Of which the median is told.")
@click.option("--only", default="", metavar="TEXT", help='Only what has this in its name: "stream", "64", "purse".')
@click.option("--install", is_flag=True, help="Install the others under .venv first, as far as needed.")
def main(seconds: float, rounds: int, only: str, install: bool) -> None:
    """What a proxy adds to a call: p50 and p99, at 1 and 64 callers."""
    console = report.console()
    if install:
        for said in proxy.install():
            console.print(said)
    failed: list[str] = []
    status = run_until_signalled(_bench(console, seconds, rounds, only, failed))
    sys.exit(status or (1 if failed else 0))


async def _bench(console: Console, seconds: float, rounds: int, only: str, failed: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="purse-bench-") as folder:
        root = Path(folder)
        report.show_machine(console, machine.look(root), machine.syncs(root))
        measured = await proxy.measure_proxies(
            console, root, wants=lambda name: only.casefold() in name.casefold(), seconds=seconds, rounds=rounds,
            quick=False, say=_say,
        )  # fmt: skip
    show.show(console, measured, rounds)
    failed += [who.name for who in measured.failed]


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
