"""`cli.md`: every command with its arguments and options, from the click commands themselves."""

from __future__ import annotations

from collections.abc import Iterator

import click
from reference.markdown import anchor, page, prose, table

from commonpurse.__main__ import COMMANDS, purse
from commonpurse.commands import ApiCommand

API_OPTIONS = ("--url", "--key", "--json")

_BEGINS = """
`purse [OPTIONS] COMMAND ...`. The commands that speak to a wallet over HTTP take the first three options before or
after their name. How a command ends: [exit codes](errors.md#how-the-command-ends). Variables:
[configuration](configuration.md#environment-variables).
"""


def cli_page() -> str:
    rows = [(f"[`purse {name}`]({anchor(f'purse {name}')})", line) for name, (_, line) in COMMANDS.items()]
    parts = [_BEGINS, _options(click.Context(purse, info_name="purse")), table(("command", "what it does"), rows)]
    with click.Context(purse, info_name="purse") as root:
        for name in COMMANDS:
            command = purse.get_command(root, name)
            assert command is not None
            parts += _command(command, click.Context(command, parent=root, info_name=name), "##")
    return page("The command", *parts)


def _command(command: click.Command, ctx: click.Context, heading: str) -> Iterator[str]:
    yield f"{heading} {ctx.command_path}"
    yield prose(command.help)
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    speaks = isinstance(command, ApiCommand)
    yield f"```text\n{usage}\n```" + ("\n\nAlso `--url`, `--key` and `--json`." if speaks else "")
    yield _options(ctx, without=API_OPTIONS if speaks else ())
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from _command(found, click.Context(found, parent=ctx, info_name=name), "###")


def _options(ctx: click.Context, *, without: tuple[str, ...] = ()) -> str:
    rows = []
    for option in ctx.command.get_params(ctx):
        if not isinstance(option, click.Option) or option.hidden or option.opts[0] in (*without, "--help"):
            continue
        record = option.get_help_record(ctx)
        assert record is not None
        notes = [text for text in (_default(option, ctx), _variable(option)) if text]
        rows.append((f"`{record[0]}`", prose(option.help), "; ".join(notes)))
    return table(("option", "meaning", ""), rows)


def _default(option: click.Option, ctx: click.Context) -> str:
    if option.required:
        return "required"
    if option.is_flag or option.multiple:
        return "again for more" if option.multiple else ""
    shown = option.get_help_extra(ctx).get("default")
    return f"default `{shown}`" if shown else ""


def _variable(option: click.Option) -> str:
    return f"`{option.envvar}`" if isinstance(option.envvar, str) else ""
