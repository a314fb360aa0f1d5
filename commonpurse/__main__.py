"""The `purse` command: which commands there are, and what to do when one fails. What they do stands in `commands/`.

A command's module is imported only when it is called: `purse --help` must answer at once.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from commonpurse.commands import API_OPTIONS_WITH_ENVIRONMENT, Face

COMMANDS = {
    "up": ("up", "Start a wallet on this machine: server, engine and web page."),
    "demo": ("demo", "Watch a small budget run out, in under a minute."),
    "hold": ("calls", "Ask whether a call may cost this much."),
    "settle": ("calls", "Say what the call really cost."),
    "release": ("calls", "Give a hold back: the call did not happen."),
    "renew": ("calls", "Hold on longer, maybe more."),
    "observe": ("desk", "Record the provider's own figure."),
    "adjust": ("desk", "Correct what was settled, with a reason."),
    "freeze": ("desk", "Refuse new holds for now."),
    "thaw": ("desk", "Lift a freeze."),
    "revoke": ("desk", "Refuse new holds of one user, key or other label."),
    "restore": ("desk", "Undo a revocation."),
    "status": ("status", "What is used, held and left."),
    "key": ("key", "Make a key, list them, end one."),
    "plan": ("plan", "Show the budgets, or change them."),
    "alerts": ("alerts", "Show what was alerted; send a test."),
    "prices": ("prices", "Show what models cost here; make a new price book."),
    "export": ("export", "Write what was decided to Parquet, CSV or JSONL, or the raw record."),
    "doctor": ("doctor", "Check everything; say what to do where it is wrong."),
    "audit": ("audit", "Replay a day, and prove every decision of it."),
    "backfill": ("backfill", "Settle what a crash left open, from a log of real costs."),
    "orphans": ("orphans", "List calls whose real cost nobody has said."),
    "whatif": ("whatif", "Replay a day as it would have been under another plan."),
    "rebuild": ("rebuild", "Fold every day's documents again and compare them."),
    "receipt": ("receipt", "Check a receipt against the record."),
    "drive": ("drive", "Send a real traffic trace through the wallet."),
}
"""Every command: its module in `commands/`, and its line in `purse --help`."""


class Purse(click.Group):
    """A group that knows its commands by name and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"commonpurse.commands.{COMMANDS[cmd_name][0]}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _print_version(*, as_json: bool) -> None:
    import msgspec

    from commonpurse.version import version_line, versions

    found = versions()
    click.echo(msgspec.json.encode(found) if as_json else version_line(found))


@click.group(cls=Purse, params=API_OPTIONS_WITH_ENVIRONMENT, invoke_without_command=True, no_args_is_help=True)
@click.option(
    "--version",
    is_flag=True,
    help="Say the version of this program, its rules, what it reads and writes, its server.",
)
@click.pass_context
def purse(ctx: click.Context, version: bool) -> None:
    """A hard cap on what AI calls may cost.

    Before each call, `purse hold` the most it could cost; afterwards, `purse settle` what it did cost. `purse up`
    starts a wallet here, `purse demo` one to watch; the other commands speak to one over HTTP.

    Exit codes: 0 done or held, 1 error, 2 usage, 3 refused, 4 the stream cannot be trusted.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    if version:
        _print_version(as_json=ctx.ensure_object(Face).as_json)
        ctx.exit()
    if ctx.invoked_subcommand is None:
        ctx.fail("Missing command.")


def main() -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit(purse.main(prog_name="purse", standalone_mode=True))


if __name__ == "__main__":
    main()
