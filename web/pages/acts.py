"""What an admin does on these pages: asked for by a form, shown once more, and done only when it is confirmed.

Each goes through the same reader as over the API, with an id that is made before it is confirmed:
sent twice, it is done once.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from engine.core.messages import AnyAsk
from engine.errors import BadAsk
from web.answers import Answer
from web.asks import Reader
from web.bodies import convert
from web.desk import Desk
from web.html import Html, element, fill, hidden_field, joined
from web.keeping import end_key
from web.moments import NS_PER_S, format_moment
from web.pages.acts_words import ACTS
from web.pages.frame import SignedIn, show
from web.pages.serving import Page, read_form
from web.problems import Problem
from web.requests import (
    AdjustmentBody,
    FreezeBody,
    RestoreBody,
    RevokeBody,
    ThawBody,
)  # fmt: skip

FREEZE_HOURS: Final = (1, 4, 24)
_ID_BYTES = 12


@dataclass(frozen=True, slots=True)
class Act:
    """`fields`: of the form that become the body. `title`, `says`, `do`: what is asked before it is done.

    `read`: the form's fields into an ask; None where it is no ask: then it is the end of a key.
    """

    name: str
    fields: tuple[str, ...]
    title: str
    says: str
    do: str
    body: type[msgspec.Struct] | None = None
    read: Callable[[Reader, Any, str], AnyAsk] | None = None
    danger: bool = False


_ALL: Final = {
    act.name: act
    for act in (
        Act(
            "freeze", ("scope", "reason", "until"), ACTS.freeze_title, ACTS.freeze_says, ACTS.freeze_do, FreezeBody,
            lambda reader, body, id: reader.freeze(body, id=id), danger=True,
        ),
        Act(
            "thaw", ("scope", "reason"), ACTS.thaw_title, ACTS.thaw_says, ACTS.thaw_do, ThawBody,
            lambda reader, body, id: reader.thaw(body, id=id),
        ),
        Act(
            "revoke", ("label", "value", "reason"), ACTS.revoke_title, ACTS.revoke_says, ACTS.revoke_do, RevokeBody,
            lambda reader, body, id: reader.revoke(body, id=id), danger=True,
        ),
        Act(
            "restore", ("label", "value", "reason"), ACTS.restore_title, ACTS.restore_says, ACTS.restore_do,
            RestoreBody,
            lambda reader, body, id: reader.restore(body, id=id),
        ),
        Act(
            "adjust", ("budget", "period", "amount", "hold", "reason"), ACTS.adjust_title, ACTS.adjust_says,
            ACTS.adjust_do, AdjustmentBody, lambda reader, body, id: reader.adjust(body, id=id),
        ),
        Act(
            "revoke-key", ("key", "reason"), ACTS.revoke_key_title, ACTS.revoke_key_says, ACTS.revoke_key_do,
            danger=True,
        ),
    )
}  # fmt: skip


async def _act(request: web.Request, desk: Desk, visitor: SignedIn) -> web.Response:
    act = _ALL.get(request.match_info["act"])
    if act is None:
        raise web.HTTPNotFound
    form = await read_form(request)
    said = {name: form[name].strip() for name in act.fields if form.get(name, "").strip()}
    if hours := form.get("hours", ""):
        said["until"] = _after(hours, desk.purse.now())
    id = form.get("id") or f"page-{secrets.token_hex(_ID_BYTES)}"
    if act.read is None:
        return await _end_key(desk, visitor, act, said, form)
    body = convert(said, act.body) if act.body is not None else None
    read = act.read
    ask = await desk.known.understand(lambda terms: read(desk.reader(terms, visitor.caller), body, id))
    if form.get("sure") != "yes":
        return confirmation(visitor, act, said, id=id, back=_back(form))
    _must_be_done(desk.answer(ask, await desk.purse.ask(ask), visitor.caller))
    raise _done(act, form)


async def _end_key(
    desk: Desk, visitor: SignedIn, act: Act, said: Mapping[str, str], form: Mapping[str, str]
) -> web.Response:
    if form.get("sure") != "yes":
        return confirmation(visitor, act, said, id="", back="/keys")
    _, answer = await end_key(desk, visitor.caller, said.get("key", ""), said.get("reason", ""))
    _must_be_done(answer)
    raise _done(act, {**form, "back": "/keys"})


def _must_be_done(answer: Answer) -> None:
    """Raises `Problem` in the answer's own words if the wallet said no."""
    if answer.status >= 400:
        body = answer.body
        raise Problem(answer.status, str(body.get("outcome", "refused")), str(body.get("detail", "")))


def _after(hours: str, now: int) -> str:
    if not hours.isascii() or not hours.isdigit() or int(hours) not in FREEZE_HOURS:
        raise BadAsk("hours", f"expected one of {', '.join(map(str, FREEZE_HOURS))}")
    return format_moment(now + int(hours) * 3600 * NS_PER_S)


def _back(form: Mapping[str, str]) -> str:
    """Where to go on: the page about a budget, as it was."""
    back = form.get("back", "")
    return back if back.startswith("/budget") and back.isascii() and back.isprintable() else "/budget"


def _done(act: Act, form: Mapping[str, str]) -> web.HTTPSeeOther:
    back = "/keys" if form.get("back") == "/keys" else _back(form)
    return web.HTTPSeeOther(f"{back}{'&' if '?' in back else '?'}{urlencode({'done': act.name})}")


# --- HTML -------------------------------------------------------------------------------------------------------------


def confirmation(visitor: SignedIn, act: Act, said: Mapping[str, str], *, id: str, back: str) -> web.Response:
    """The question before it is done: what exactly, and a form that says yes."""
    known = {"key": "", "scope": "", "label": "", "value": "", "budget": "", "period": "", **said}
    title = act.title.format(**{**known, "id": known["key"]})
    body = fill(
        "confirm.html",
        title=title,
        says=f"{act.says} {ACTS.restore_key_says}" if _restores_key(act, said) else act.says,
        action=f"/acts/{act.name}",
        facts=joined(_fact(name, value) for name, value in said.items()),
        fields=joined([visitor.token_field, *(hidden_field(name, value) for name, value in said.items()),
                       hidden_field("id", id), hidden_field("back", back)]),
        reason=_reason_field(required=act.read is None) if "reason" not in said else Html(""),
        do=act.do,
        kind="danger" if act.danger else "main",
        back=back,
        cancel=ACTS.cancel,
        on_record=ACTS.on_record,
    )  # fmt: skip
    return show(visitor, title=title, body=body, here="/keys" if back == "/keys" else "/budget")


def _restores_key(act: Act, said: Mapping[str, str]) -> bool:
    """Whether a key is to be restored: what the engine refuses is lifted, what an operator ended stays so."""
    return act.name == "restore" and said.get("label") == "key"


def _fact(name: str, value: str) -> Html:
    return element("div", element("dt", ACTS.fields.get(name, name.title())), element("dd", value))


def _reason_field(*, required: bool) -> Html:
    """Why it is done: for whoever reads the record."""
    label = element("label", ACTS.reason if required else ACTS.reason_optional, for_="reason")
    must = Html(" required" if required else "")
    return joined([label, Html(f'<input id="reason" name="reason" maxlength="256" autocomplete="off"{must}>')])


PAGES = (Page(method="POST", path="/acts/{act}", access="admin", handler=_act),)
