"""What stands around every operators' page: masthead, navigation, who is signed in. It draws, and decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from web.assets import asset_url
from web.auth import Caller
from web.html import Html, element, fill, hidden_field, joined
from web.pages.words import FRAME
from web.words import WORDS

PAGES: Final = (
    ("/", FRAME.home, "public"),
    ("/budget", FRAME.budget, "audit"),
    ("/days", FRAME.days, "audit"),
    ("/keys", FRAME.keys, "admin"),
)
"""Address, name, and for whom, in the order of the navigation."""

_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
"""Under `no-referrer` a browser sends `Origin: null` with a form, and nobody could check where it came from."""


_CLASSIC = frozenset({"uplot.js"})  # not made as modules: what they define is there for the modules after them


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Who looks. `token` goes into every form, as `token_field` writes it."""

    caller: Caller
    token: str = field(repr=False)

    @property
    def acts(self) -> bool:
        """Whether buttons that change something are shown."""
        return self.caller.admin

    @property
    def token_field(self) -> Html:
        return hidden_field("token", self.token)


def show(
    visitor: SignedIn | None,
    *,
    title: str,
    body: Html,
    here: str = "",
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    status: int = 200,
) -> web.Response:
    """A whole page. `here`: the address in the navigation that it belongs to. `styles`, `scripts`: names of assets."""
    html = fill(
        "frame.html",
        title=FRAME.titled.format(title=title),
        mark=asset_url("mark.svg"),
        styles=joined(_style(name) for name in ("tokens.css", "operator.css", *styles)),
        scripts=joined(_script(name) for name in scripts),
        patterns=fill("patterns.html"),
        skip=FRAME.skip,
        drawing=fill("mark.html"),
        name=WORDS.title,
        nav=_nav(visitor, here),
        who=_who(visitor),
        body=body,
    )
    return web.Response(text=html, status=status, content_type="text/html", headers=_HEADERS)


def _style(name: str) -> Html:
    return Html(f'<link rel="stylesheet" href="{asset_url(name)}">\n')


def _script(name: str) -> Html:
    kind = "defer" if name in _CLASSIC else 'type="module"'
    return Html(f'<script {kind} src="{asset_url(name)}"></script>\n')


def _nav(visitor: SignedIn | None, here: str) -> Html:
    if visitor is None:
        return Html("")
    links = joined(
        element("li", element("a", name, href=path, aria_current="page" if path == here else None))
        for path, name, role in PAGES
        if role != "admin" or visitor.acts
    )
    return element("nav", element("ul", links), aria_label=FRAME.pages)


def _who(visitor: SignedIn | None) -> Html:
    if visitor is None:
        return Html("")
    name, role = visitor.caller.name, str(visitor.caller.role)
    said = FRAME.signed_in_admin if name == role else FRAME.signed_in.format(name=name, role=role)
    return fill("who.html", who=said, sign_out=FRAME.sign_out, token=visitor.token_field)
