"""`purse whatif`: a day of the record beside the same day under another plan, with other worst cases or prices."""

from __future__ import annotations

import asyncio
import gc
from fractions import Fraction
from pathlib import Path
from typing import get_args

import click
import msgspec

from commonpurse.commands import Face, on_terminal, pairs, say
from commonpurse.commands.plan import plan_in
from commonpurse.reading import Whence, days_of, ends_plainly, log_errors_only, opened, progress_shown, record_options
from projector.whatif.change import FACTORS_MAX, Assume, Change, FactorError, factor
from projector.whatif.differences import SHOWN_MAX, SHOWN_MOST
from projector.whatif.report import WhatIf
from projector.whatif.running import what_if
from projector.whatif.shown import lines


def _factor(_: click.Context, __: click.Parameter, written: str) -> Fraction:
    try:
        return factor(written)
    except FactorError as error:
        raise click.BadParameter(str(error)) from error


def _prices(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, Fraction]:
    if len(values) > FACTORS_MAX:
        raise click.BadParameter(f"expected at most {FACTORS_MAX} models")
    taken = pairs("MODEL=FACTOR like gpt-5=0.5")(ctx, parameter, values)
    return {model: _factor(ctx, parameter, written) for model, written in taken.items()}


@click.command()
@click.argument("day")
@click.option("--plan", "plan", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE.toml",
              help="The other plan, in force from the start of the day: limits, budgets, tiers.")  # fmt: skip
@click.option("--hold-factor", metavar="FACTOR", default="1", callback=_factor,
              help="Hold so many times what was held, such as 1.5 or 0.8.")  # fmt: skip
@click.option("--price", "prices", multiple=True, metavar="MODEL=FACTOR", callback=_prices,
              help="This model costs so many times what it did; may be given several times.")  # fmt: skip
@click.option("--assume", type=click.Choice(get_args(Assume)), default="mean", show_default=True,
              help="What a call costs that was refused in reality: as others of its model, or its grant.")  # fmt: skip
@click.option("--first", type=click.IntRange(0, SHOWN_MOST), default=SHOWN_MAX, show_default=True,
              help="Name so many holds that differ.")  # fmt: skip
@record_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def whatif(
    ctx: click.Context,
    day: str,
    plan: Path | None,
    hold_factor: Fraction,
    prices: dict[str, Fraction],
    assume: Assume,
    first: int,
    data: Path,
    nats: str | None,
    wallet: str,
    record: Path | None,
    as_json: bool,
) -> None:
    """Replay a DAY (2026-11-30, today, yesterday, 2026-11-01..2026-11-30) as it was and as it would have been.

    Shows both side by side: who would have been refused or served, what it would have cost. Reads the whole record,
    while the wallet runs or while it does not, and changes nothing.

    Exit codes: 0 shown, 1 an error, 2 usage, 4 the stream cannot be trusted.
    """
    if plan is None and hold_factor == 1 and not prices:
        raise click.UsageError("say what is otherwise: --plan FILE, --hold-factor FACTOR or --price MODEL=FACTOR")
    log_errors_only()
    change = Change(plan_in(plan) if plan is not None else None, hold_factor, prices, assume)
    with ends_plainly():
        report = asyncio.run(_what_if(Whence(data, wallet, nats, record), day, change, first))
    if as_json or ctx.ensure_object(Face).as_json:
        return click.echo(msgspec.json.encode(report).decode())
    for line in lines(report):
        say(line)
    return None


async def _what_if(whence: Whence, day: str, change: Change, first: int) -> WhatIf:
    gc.disable()  # as in an audit: what is read makes no cycles
    async with opened(whence) as found:
        days = await days_of(found, day)
        with progress_shown(drawn=on_terminal()) as progress:
            return await what_if(found.source, days, change, shown=first, progress=progress)
