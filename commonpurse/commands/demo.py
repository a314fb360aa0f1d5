"""`purse demo`: the whole idea in under a minute. A wallet of its own, a dozen callers, a refusal, the proof.

What is sent stands in `commonpurse.demo`, what is concluded in `commonpurse.verdict`; here it is started, shown, ended.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import click
import msgspec

from commonpurse.commands import EXIT_ERROR, Face, on_terminal, plain
from commonpurse.demo import BUDGET, CALLERS, LIMIT, PLAN, UNIT, Traffic
from commonpurse.http import Api
from commonpurse.proof import prove
from commonpurse.said import BudgetNow, Wallet
from commonpurse.show import bar
from commonpurse.up import Opened, UpOptions, up
from commonpurse.verdict import Verdict, refusal_lines
from engine.errors import NoAnswer

LINE_EVERY_S = 1.0
DRAW_EVERY_S = 0.25


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, help="Where the page is; any free port if not given."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed, other calls.")
@click.option("--keep", is_flag=True, help="Keep the data folder, and say where it is.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary for programs; the story goes to standard error.")
@click.pass_context
def demo(ctx: click.Context, port: int, seed: int, keep: bool, as_json: bool) -> None:
    """Watch a budget run out: made-up calls on a wallet of its own, in under a minute.

    Nothing is spent and no model is called. Exit code 0 says that the callers' own books and the wallet's stream agree
    to the nano-dollar, and that what was settled and held together was never above the limit.
    """
    as_json = as_json or ctx.ensure_object(Face).as_json
    with _folder(keep) as folder:
        config = folder / "purse.toml"
        config.write_text(PLAN, encoding="utf-8")
        show = Show(seed, as_json=as_json)
        options = UpOptions(data=folder / "data", port=port, config=config, open=True)
        code = asyncio.run(up(options, show.run))
        if keep:
            show.say(f"kept: {folder}")
    if show.verdict is None and code == 0:
        click.echo("purse: ended before there was a verdict", err=True)
        code = EXIT_ERROR
    ctx.exit(code)


@contextmanager
def _folder(keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="purse-demo-"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


class Show:
    """One run, told as it goes."""

    def __init__(self, seed: int, *, as_json: bool) -> None:
        self.verdict: Verdict | None = None
        self._seed, self._as_json = seed, as_json

    async def run(self, opened: Opened) -> int:
        """From the first call to the verdict. Returns the exit code; raises `PurseError`."""
        started_at = time.monotonic()
        self._introduce(opened)
        async with Api.open(opened.page.rstrip("/"), None, connections=CALLERS + 1) as api:
            traffic = Traffic(api, seed=self._seed)
            async with _shown(api):
                await traffic.run()
            refusal = await traffic.look()
        self.say(
            "The budget is used up. This is what the next caller hears:", "", *_indented(refusal_lines(refusal)), ""
        )
        self.verdict = Verdict(traffic.books, await prove(opened.nats_url))
        self._conclude(self.verdict)
        if self._as_json:
            summary = self.verdict.document(refusal, seconds=time.monotonic() - started_at)
            click.echo(msgspec.json.encode(summary).decode())
        return 0 if self.verdict.good else EXIT_ERROR

    def say(self, *lines: str, colour: str | None = None) -> None:
        """Tell the story: on standard output, unless a program reads there."""
        for line in lines:
            click.echo(click.style(plain(line), fg=colour) if colour else plain(line), err=self._as_json)

    def _introduce(self, opened: Opened) -> None:
        self.say(
            "",
            f"One budget of {LIMIT} {UNIT} a day, shared by {CALLERS} callers. Before each call they hold the most it",
            "could cost, afterwards they settle what it did cost. The calls are made up: nothing is spent.",
            "",
            f"  watch it live   {opened.page}",
            "",
        )

    def _conclude(self, verdict: Verdict) -> None:
        self.say("The verdict, from the stream itself:", "", *_indented(verdict.lines()), "")
        if verdict.good:
            self.say("The books agree.", colour="green")
        else:
            self.say("THE BOOKS DO NOT AGREE. (Did somebody else use this wallet? Try --keep.)", colour="red")


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


# --- while it runs ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _shown(api: Api) -> AsyncIterator[None]:
    """Show how full the budget is, on standard error: a bar where a person watches, else a line a second."""
    written = Lines()
    showing = asyncio.create_task(_draw(api) if on_terminal() else _follow(api, written.show, every_s=LINE_EVERY_S))
    try:
        yield
    finally:
        showing.cancel()
        with suppress(asyncio.CancelledError):
            await showing
    budget = await _budget(api)
    if budget is not None:
        written.show(budget)
    click.echo(err=True)


class Lines:
    """Writes how full the budget is, a line each time it has changed."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, budget: BudgetNow) -> None:
        line = f"  {bar(budget)}  {_said(budget)}"
        if line != self._last:
            click.echo(plain(line), err=True)
        self._last = line


async def _draw(api: Api) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn(" "), BarColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        task = progress.add_task("", total=100.0)

        def show(budget: BudgetNow) -> None:
            progress.update(task, completed=budget.used_pct, description=_said(budget), refresh=True)

        await _follow(api, show, every_s=DRAW_EVERY_S)


async def _follow(api: Api, show: Callable[[BudgetNow], None], *, every_s: float) -> None:
    while True:
        budget = await _budget(api)
        if budget is not None:
            show(budget)
        await asyncio.sleep(every_s)


async def _budget(api: Api) -> BudgetNow | None:
    """The budget as anybody may read it; None while nobody answers, since a picture is not worth a failure."""
    with suppress(NoAnswer, msgspec.MsgspecError):
        answer = await api.get("/v1/status")
        if answer.status == 200:
            budgets = msgspec.json.decode(answer.body, type=Wallet).budgets
            return next((budget for budget in budgets if budget.name == BUDGET), None)
    return None


def _said(budget: BudgetNow) -> str:
    amounts = {"spent": budget.settled, "held": budget.held, "left": budget.remaining}
    columns = (f"{word} {amount or '':<10}" for word, amount in amounts.items())
    return f"{'  '.join(columns)}  of {budget.limit} {budget.unit}"
