"""What an operator does at her desk: record a provider's figure, correct the books, stop and allow spending."""

from __future__ import annotations

import secrets

import click

from commonpurse.commands import AMOUNT, ApiCommand, Face, fields, plain
from commonpurse.commands.asking import ask

NEGATIVE_NUMBERS = {"ignore_unknown_options": True}  # else -0.5 is read as an option

_reason = click.option("--reason", required=True, help="Why; it goes on the record.")
_maybe_reason = click.option("--reason", help="Why; it goes on the record.")


def _label(_: click.Context, __: click.Parameter, written: str) -> tuple[str, str]:
    label, equals, value = written.partition("=")
    if not (label and equals and value):
        raise click.BadParameter(f"expected NAME=VALUE like user=alice, got {plain(written)!r}")
    return label, value


def _signed(_: click.Context, __: click.Parameter, written: str) -> str:
    if not AMOUNT.fullmatch(written.removeprefix("-")):
        raise click.BadParameter(f"an amount is plain digits like 0.25 or -0.25, got {plain(written)!r}")
    return written


@click.command(cls=ApiCommand)
@click.argument("budget")
@click.argument("figure")
@click.option("--period", metavar="PERIOD", help="What it is for, like 2026-11-30; the current period if not given.")
@click.option("--each", metavar="VALUE", help="Whose, in a budget that is kept for each user or other label.")
@click.option("--as-of", metavar="TIME", help="When the provider said it, like 2026-11-30T14:05:00Z; now if not given.")
@click.option("--source", help="Who said it; the budget's source if not given.")
@click.pass_obj
def observe(
    face: Face, budget: str, figure: str, period: str | None, each: str | None, as_of: str | None, source: str | None
) -> None:
    """Record the provider's own FIGURE for BUDGET.

    It can only raise what counts as used.

        purse observe neurons 4300
    """
    body = {"budget": budget, "figure": figure, **fields(period=period, each=each, as_of=as_of, source=source)}
    ask(face, "/v1/observations", body, verb="observe")


@click.command(cls=ApiCommand, context_settings=NEGATIVE_NUMBERS)
@click.argument("budget")
@click.argument("amount", callback=_signed)
@click.option("--period", required=True, metavar="PERIOD", help="Which period to correct, like 2026-11-30.")
@click.option("--each", metavar="VALUE", help="Whose, in a budget that is kept for each user or other label.")
@click.option("--hold", metavar="HOLD", help="The call it is about.")
@click.option("--id", "id_", metavar="ID", help="Names this correction: asked twice it counts once.")
@_reason
@click.pass_obj
def adjust(
    face: Face,
    budget: str,
    amount: str,
    period: str,
    each: str | None,
    hold: str | None,
    id_: str | None,
    reason: str,
) -> None:
    """Correct what was settled in BUDGET by AMOUNT, up or down.

    The reason goes on the record with it.

        purse adjust jev -0.25 --period 2026-11-30 --reason "refunded by the provider"
    """
    id = id_ or f"cli-{secrets.token_hex(6)}"
    body = {"id": id, "budget": budget, "period": period, "amount": amount, "reason": reason}
    unheard = f" - whether it was done is not known; asking again with --id {id} counts once"
    ask(face, "/v1/adjustments", {**body, **fields(each=each, hold=hold)}, verb="adjust", unheard=unheard)


_scope = click.argument("scope", required=False)
_budget = click.option("--budget", metavar="BUDGET", help="The scope is this budget.")
_of_label = click.option("--label", metavar="NAME=VALUE", help="The scope is this label, like user=alice.")


def _one_scope(scope: str | None, budget: str | None, label: str | None) -> str:
    """All that is said of the scope: exactly one of three. Without any it must not be everything by accident."""
    given = [each for each in (scope, budget, label) if each]
    if len(given) != 1:
        raise click.UsageError("say one scope: all, a budget (--budget NAME), or a label (--label NAME=VALUE)")
    if label is not None and "=" not in label.strip("="):
        raise click.BadParameter(f"expected NAME=VALUE like user=alice, got {plain(label)!r}", param_hint="--label")
    return given[0]


@click.command(cls=ApiCommand)
@_scope
@_budget
@_of_label
@click.option("--until", metavar="TIME", help="When it ends by itself, like 2026-11-30T18:00:00Z.")
@_reason
@click.pass_obj
def freeze(
    face: Face, scope: str | None, budget: str | None, label: str | None, until: str | None, reason: str
) -> None:
    """Refuse new holds in SCOPE: all, a budget, or a label like user=alice.

    At once, and until `purse thaw` with the same scope, or --until. Calls that already run are settled as always.

        purse freeze all --reason "a key leaked"

        purse freeze --label user=alice --until 2026-11-30T18:00:00Z --reason "runs wild"
    """
    one = _one_scope(scope, budget, label)
    ask(face, "/v1/freeze", {"scope": one, "reason": reason, **fields(until=until)}, verb="freeze")


@click.command(cls=ApiCommand)
@_scope
@_budget
@_of_label
@_maybe_reason
@click.pass_obj
def thaw(face: Face, scope: str | None, budget: str | None, label: str | None, reason: str | None) -> None:
    """Lift the freeze of exactly SCOPE; `purse status` names those in force.

    A freeze of all and one of a budget are two: lifting one leaves the other.
    """
    ask(face, "/v1/thaw", {"scope": _one_scope(scope, budget, label), **fields(reason=reason)}, verb="thaw")


@click.command(cls=ApiCommand)
@click.argument("label", callback=_label, metavar="NAME=VALUE")
@_reason
@click.pass_obj
def revoke(face: Face, label: tuple[str, str], reason: str) -> None:
    """Refuse new holds that carry a label, like user=alice or key=k3.

    What it already holds may still be settled and released.
    """
    ask(face, "/v1/revoke", {"label": label[0], "value": label[1], "reason": reason}, verb="revoke")


@click.command(cls=ApiCommand)
@click.argument("label", callback=_label, metavar="NAME=VALUE")
@_maybe_reason
@click.pass_obj
def restore(face: Face, label: tuple[str, str], reason: str | None) -> None:
    """Undo a revocation."""
    ask(face, "/v1/restore", {"label": label[0], "value": label[1], **fields(reason=reason)}, verb="restore")
