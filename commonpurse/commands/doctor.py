"""`purse doctor`: look at everything, say in plain words what is wrong, and offer the ways out."""

from __future__ import annotations

import asyncio
import getpass
import logging
import sys
from pathlib import Path

import click
import msgspec
import structlog

from commonpurse.aside import restore
from commonpurse.commands import DEFAULT_DATA, Face, Failed, say
from commonpurse.doctor import examine
from commonpurse.findings import Finding, Patient, Report
from engine.errors import PurseError

MARKS = {
    "ok": ("ok", "green"), "warning": ("warn", "yellow"), "problem": ("fail", "red"), "untrusted": ("fail", "red"),
}  # fmt: skip
NEWEST = "newest"


@click.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT_DATA, envvar="PURSE_DATA",
              show_envvar=True, show_default=True, help="The folder everything is kept in.")  # fmt: skip
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), envvar="PURSE_CONFIG", show_envvar=True,
              help="The purse.toml to check.")  # fmt: skip
@click.option("--nats", metavar="URL", envvar="PURSE_NATS_URL", show_envvar=True,
              help="The nats-server or cluster, if it is not the one in the data folder.")  # fmt: skip
@click.option("--wallet", default="main", envvar="PURSE_WALLET", show_envvar=True, show_default=True,
              help="The wallet's name on the stream.")  # fmt: skip
@click.option("--restore-aside", metavar="[COPY]", is_flag=False, flag_value=NEWEST,
              help="Put back a store that was set aside (the newest, or COPY) while nothing runs.")  # fmt: skip
@click.option("--accept-loss", is_flag=True,
              help="Go on without what is lost, with what is still known, on the record.")  # fmt: skip
@click.option("--skip-time", is_flag=True,
              help="Go on past untold stamps that are ahead, at the moment before them, on the record.")  # fmt: skip
@click.option("--reason", default="accepted with purse doctor", show_default=True,
              help="Why, for the record.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def doctor(
    ctx: click.Context,
    data: Path,
    config: Path | None,
    nats: str | None,
    wallet: str,
    restore_aside: str | None,
    accept_loss: bool,
    skip_time: bool,
    reason: str,
    as_json: bool,
) -> None:
    """Check config, keys, disk, snapshots, spool, server, stream and clock, and say what to do about what is wrong.

    Exit codes: 0 all is well but for warnings, 1 something fails, 4 the stream cannot be trusted.
    """
    if (restore_aside is not None) + accept_loss + skip_time > 1:
        raise click.UsageError("choose one way out: --restore-aside, --accept-loss or --skip-time")
    _log_errors_only()
    as_json = as_json or ctx.ensure_object(Face).as_json
    if restore_aside is not None:
        _restore(data, wallet, "" if restore_aside == NEWEST else restore_aside, as_json=as_json)
        return
    patient = Patient(data=data, wallet=wallet, nats=nats, config=config)
    report = asyncio.run(
        examine(patient, accept_loss=accept_loss, skip_time=skip_time, by_whom=_by_whom(), reason=reason)
    )
    _print(report, as_json=as_json)
    ctx.exit(report.exit_code)


def _log_errors_only() -> None:
    """What the parts have to say is in the findings; standard output is for those alone."""
    logging.getLogger("nats").setLevel(logging.CRITICAL)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("error"),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _restore(data: Path, wallet: str, name: str, *, as_json: bool) -> None:
    try:
        copy, held, present, kept = asyncio.run(restore(data, wallet, name))
    except PurseError as error:
        raise Failed(str(error)) from error
    if as_json:
        document = {"restored": copy.name, "last_seq": held, "replaced_last_seq": present, "kept": str(kept)}
        return click.echo(msgspec.json.encode(document).decode())
    say(f"The store is now the copy {copy.name}, which ends at sequence {held:,}.")
    say(f"The one it replaces ended at {present:,} and is kept in {kept}.")
    return say("Look again with `purse doctor` before you start the wallet.")


def _print(report: Report, *, as_json: bool) -> None:
    if as_json:
        return click.echo(msgspec.json.encode({"exit_code": report.exit_code, **msgspec.to_builtins(report)}).decode())
    for finding in report.findings:
        say(_line(finding), colour=MARKS[finding.state][1])
    return None


def _line(finding: Finding) -> str:
    return f"{MARKS[finding.state][0]:<4}  {finding.check:<9} {finding.says}"


def _by_whom() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
