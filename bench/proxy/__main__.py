"""`python -m bench.proxy`: what a proxy adds to a call, and nothing else. It leaves `results.json` as it is."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console

from bench import machine, report
from bench.loop import run_until_signalled
from bench.proxy import litellm, show
from bench.proxy.measure import ROUNDS_LEAST, measure_proxies

SECONDS = 3.0


@click.command()
@click.option("--seconds", default=SECONDS, show_default=True, help="How long each measurement counts.")
@click.option("--rounds", default=ROUNDS_LEAST, show_default=True, help="Of which the median is told.")
@click.option("--only", default="", metavar="TEXT", help='Only what has this in its name: "stream", "64", "purse".')
@click.option("--install", is_flag=True, help="Install LiteLLM into .venv/litellm first, if it is not there.")
def main(seconds: float, rounds: int, only: str, install: bool) -> None:
    """What a proxy adds to a call: p50 and p99, at 1 and 64 callers."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    if install and (failed := litellm.install()) is not None:
        console.print(failed)
    sys.exit(run_until_signalled(_bench(console, seconds, rounds, only)))


async def _bench(console: Console, seconds: float, rounds: int, only: str) -> None:
    with tempfile.TemporaryDirectory(prefix="purse-bench-") as folder:
        root = Path(folder)
        report.show_machine(console, machine.look(root), machine.syncs(root))
        measured = await measure_proxies(
            console, root, wants=lambda name: only.casefold() in name.casefold(), seconds=seconds, rounds=rounds,
            quick=False, say=_say,
        )  # fmt: skip
    show.show(console, measured, rounds)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
