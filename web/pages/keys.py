"""The page about keys, for admins: make one, see all, revoke one. A key is shown once, in the answer to its form."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Any, Final

from aiohttp import web

from engine.errors import BadAsk
from web.bodies import convert
from web.desk import Desk
from web.html import Html, element, fill, hidden_field, joined
from web.keeping import new_key
from web.keys import Key
from web.pages.acts_words import ACTS
from web.pages.frame import SignedIn, show
from web.pages.serving import Page, read_form
from web.pages.stopped import options
from web.pages.tables import table
from web.problems import Problem
from web.requests import KeyBody
from web.statement import when

EXPIRES_DAYS: Final = (1, 7, 30, 90, 365)
FORMS_REMEMBERED_MAX: Final = 1_000
_DAY_S = 24 * 3600

_SENT: web.AppKey[OrderedDict[str, None]] = web.AppKey("key-forms-sent")
"""Forms by which a key was made, so that a page that is loaded again makes no other."""


def add_keys(app: web.Application) -> None:
    app[_SENT] = OrderedDict()


async def _page(request: web.Request, desk: Desk, visitor: SignedIn) -> web.Response:
    done = ACTS.done.get(request.query.get("done", ""))
    above = element("p", done, class_="note good", role="status") if done else Html("")
    return await _shown(desk, visitor, above)


async def _new(request: web.Request, desk: Desk, visitor: SignedIn) -> web.Response:
    form, sent = await read_form(request), request.app[_SENT]
    id = form.get("form", "")
    if not id or id in sent:
        return await _shown(desk, visitor, element("p", ACTS.made_before, class_="note", role="status"))
    body = convert(_said(form), KeyBody)
    sent[id] = None
    if len(sent) > FORMS_REMEMBERED_MAX:
        sent.popitem(last=False)
    try:
        secret, key = await new_key(desk, visitor.caller, body)
    except (BadAsk, Problem):
        sent.pop(id, None)  # none was made: the form may be put right and sent again
        raise
    made = fill("new_key.html", title=ACTS.made, once=ACTS.made_once, key=secret, id=key.id, role=key.role)
    return await _shown(desk, visitor, made)


def _said(form: dict[str, str]) -> dict[str, Any]:
    """The fields that were filled in, as the API takes them."""
    said: dict[str, Any] = {name: form[name].strip() for name in ("role", "user", "note") if form.get(name, "").strip()}
    if (days := form.get("days", "")) in map(str, EXPIRES_DAYS):
        said["expires_s"] = int(days) * _DAY_S
    if form.get("names") == "user":
        said["names"] = ["user"]
    return said


async def _shown(desk: Desk, visitor: SignedIn, above: Html) -> web.Response:
    await desk.keys.catch_up()
    now, keys = desk.purse.now(), desk.keys.all()
    days = [("", ACTS.never), *((str(n), ACTS.days_one if n == 1 else ACTS.days.format(n=n)) for n in EXPIRES_DAYS)]
    body = fill(
        "keys_page.html",
        title=ACTS.keys, lead=ACTS.keys_lead, above=above, new_key=ACTS.new_key, token=visitor.token_field,
        form=hidden_field("form", secrets.token_urlsafe(16)),
        role=ACTS.role, roles=options(ACTS.roles.items(), "spend"),
        user=ACTS.user, user_hint=ACTS.user_hint, note=ACTS.note, expires=ACTS.expires, days=options(days, ""),
        names_user=ACTS.names_user, make=ACTS.make, all_keys=ACTS.all_keys,
        keys=_table(keys, visitor, now) if keys else element("p", ACTS.no_keys, class_="quiet"),
    )  # fmt: skip
    return show(visitor, title=ACTS.keys, body=body, here="/keys", styles=("budget.css",))


def _table(keys: list[Key], visitor: SignedIn, now: int) -> Html:
    head = (ACTS.key, ACTS.role, ACTS.whose, ACTS.state, ACTS.made_at, ACTS.ends, ACTS.act)
    return table(ACTS.keys_caption, head, (_row(key, visitor, now) for key in keys), words=len(head))


def _row(key: Key, visitor: SignedIn, now: int) -> list[str]:
    state = ACTS.states[key.ended(now) or "active"]
    made = ACTS.made_by.format(at=when(key.created_at, now), by=key.made_by)
    ends = ACTS.never if key.expires_at is None else f"{when(key.expires_at, now)} UTC"
    notes = [key.note, ACTS.replaces.format(id=key.replaces) if key.replaces else "", key.reason]
    small = joined(element("small", note, class_="quiet") for note in notes if note)
    whose = joined([key.user or "", small])
    return [element("code", key.id), key.role, whose, state, made, ends, _revoke(key, visitor)]


def _revoke(key: Key, visitor: SignedIn) -> Html:
    if key.revoked_at is not None:
        return Html("")
    inside = [visitor.token_field, hidden_field("key", key.id)]
    button = element(
        "button", ACTS.revoke, type="submit", aria_label=ACTS.revoke_key_title.format(id=key.id).rstrip("?")
    )
    return element("form", *inside, button, method="post", action="/acts/revoke-key")


PAGES = (
    Page(path="/keys", access="admin", handler=_page),
    Page(method="POST", path="/keys", access="admin", handler=_new),
)
