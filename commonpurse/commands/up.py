"""`purse up`: the options of a whole wallet on this machine. What it does stands in `commonpurse.up`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from commonpurse.commands import DEFAULT_DATA
from commonpurse.up import UpOptions
from commonpurse.up import up as run_wallet
from engine.errors import Misconfigured
from engine.plan_file import Local, read
from engine.prices.own import read_own


@click.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT_DATA, envvar="PURSE_DATA",
              show_envvar=True, show_default=True, help="The folder everything is kept in.")  # fmt: skip
@click.option("--host", envvar="PURSE_HOST", show_envvar=True,
              help="The address the page and the API listen on; else that of the config, else 127.0.0.1.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65_535), envvar="PURSE_PORT", show_envvar=True,
              help="The port they listen on, 0 for any free one; else that of the config, else 8080.")  # fmt: skip
@click.option("--config", type=click.Path(path_type=Path, exists=True, dir_okay=False), envvar="PURSE_CONFIG",
              show_envvar=True, help="A purse.toml with the plan; a small default plan if not given.")  # fmt: skip
@click.option("--nats", metavar="URL", envvar="PURSE_NATS_URL", show_envvar=True,
              help="Join this nats-server or cluster instead of starting one.")  # fmt: skip
@click.option("--wallet", default="main", envvar="PURSE_WALLET", show_envvar=True, show_default=True,
              help="The wallet's name on the stream.")  # fmt: skip
@click.option("--open", "open_", is_flag=True, envvar="PURSE_OPEN", show_envvar=True,
              help="Take holds without a key: for a demonstration on your own machine.")  # fmt: skip
@click.pass_context
def up(
    ctx: click.Context,
    data: Path,
    host: str | None,
    port: int | None,
    config: Path | None,
    nats: str | None,
    wallet: str,
    open_: bool,
) -> None:
    """Start a wallet on this machine: server, engine and web page, kept running until Ctrl-C.

    Everything is kept in the data folder; the next start goes on with the same day.
    """
    try:
        local = read(config).local if config is not None else Local()
        read_own(local.prices)  # said here, and not by a web process that does not start
    except Misconfigured as error:
        raise click.ClickException(str(error)) from error
    options = UpOptions(
        data=data,
        host=local.web.host if host is None else host,
        port=local.web.port if port is None else port,
        config=config,
        nats=nats,
        open=open_,
        wallet=wallet,
    )
    ctx.exit(asyncio.run(run_wallet(options)))
