"""The page a stranger sees: the shared budget in words and meters, from the newest Status document.

It serves `GET /` and `GET /static/{file}`, and nothing that could change the wallet. The figures are in the HTML, to be
read without JavaScript; `static/page.js` keeps them current. No inline style or script: the policy forbids both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import blake2b
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

import msgspec
from aiohttp import web

from engine.core.documents import BudgetStatus, Status
from web import statement
from web.ask_settings import QUESTION_CHARS_MAX, AskSettings
from web.statement import Shares, tenths
from web.status import document
from web.words import WORDS

STATUS: Final[web.AppKey[Callable[[], Status | None]]] = web.AppKey("status")
"""What the app knows of the wallet: the newest Status document, or None while there is none."""

NOW: Final[web.AppKey[Callable[[], int]]] = web.AppKey("now")
"""Nanoseconds since 1970, for countdowns and ages on the page. An app may set its own; `time.time_ns` otherwise."""

ASK: Final[web.AppKey[Callable[[], AskSettings | None]]] = web.AppKey("ask")
"""What the page's ask box asks, or None where there is none. An app without it has no box."""

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

_YEAR_S = 365 * 24 * 3600
_NO_FIGURE: Final = "\N{EN DASH}"


def add_page(app: web.Application) -> None:
    """Register the page and its assets. The app sets `app[STATUS]` before it is started.

    Every response of the app gets `SECURITY_HEADERS` where it has none of its own, event streams included.
    """
    app.router.add_get("/", _page)
    app.router.add_get("/static/{file}", _static)
    app.on_response_prepare.append(_guard)


async def _page(request: web.Request) -> web.Response:
    status = request.app[STATUS]()
    now = request.app.get(NOW, time.time_ns)()
    ask = request.app[ASK]() if ASK in request.app else None
    html = render(status, now=now, origin=f"{request.scheme}://{request.host}", ask=ask)
    return web.Response(text=html, content_type="text/html", headers={"Cache-Control": "no-store"})


async def _guard(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)


# --- assets -----------------------------------------------------------------------------------------------------------


# Written out: what a machine's own table says of .js differs, and browsers refuse a module of another type.
_CONTENT_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class _Asset(msgspec.Struct, frozen=True):
    body: bytes
    content_type: str
    digest: str


@cache
def _assets() -> Mapping[str, _Asset]:
    """Every bundled asset by its file name, read once. What is not in here does not exist: no path is put together."""
    found = {}
    for file in files("web").joinpath("static").iterdir():
        content_type = _CONTENT_TYPES.get(file.name.rpartition(".")[2])
        if content_type is not None:
            body = file.read_bytes()
            found[file.name] = _Asset(body, content_type, blake2b(body, digest_size=8).hexdigest())
    return found


def asset_url(name: str) -> str:
    """Where a bundled asset stands. The address changes with its content, so that browsers may keep it for ever."""
    return f"/static/{name}?v={_assets()[name].digest}"


async def _static(request: web.Request) -> web.Response:
    asset = _assets().get(request.match_info["file"])
    if asset is None:
        raise web.HTTPNotFound
    pinned = request.query.get("v") == asset.digest
    headers = {
        "ETag": f'"{asset.digest}"',
        "Cache-Control": f"public, max-age={_YEAR_S}, immutable" if pinned else "no-cache",
    }
    if any(tag.value in (asset.digest, "*") for tag in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    return web.Response(body=asset.body, content_type=asset.content_type, charset=_charset(asset), headers=headers)


def _charset(asset: _Asset) -> str | None:
    return "utf-8" if asset.content_type.startswith("text/") else None


# --- HTML -------------------------------------------------------------------------------------------------------------


class _Html(str):
    """Text that is HTML already. Everything else that goes into a template is escaped."""

    __slots__ = ()


@cache
def _template(name: str) -> Template:
    return Template(files("web").joinpath("templates", name).read_text(encoding="utf-8"))


def _fill(template: str, /, **values: str | int) -> _Html:
    safe = {key: value if isinstance(value, _Html) else escape(str(value)) for key, value in values.items()}
    return _Html(_template(template).substitute(safe))


def _hidden(hide: bool) -> _Html:
    return _Html(" hidden" if hide else "")


def render(status: Status | None, *, now: int, origin: str, ask: AskSettings | None = None) -> str:
    """The whole page as of `now` (nanoseconds since 1970). `origin`: this server's address as the visitor wrote it."""
    unit = status.budgets[0].unit if status and status.budgets else "usd"
    return _fill(
        "page.html",
        title=WORDS.title,
        lead=WORDS.lead,
        mark=asset_url("mark.svg"),
        style=asset_url("page.css"),
        script=asset_url("page.js"),
        ask=_ask_box(ask),
        ask_script=_ask_script(ask),
        words=msgspec.json.encode(WORDS).decode(),
        now=now // 1_000_000,
        window=_window(status, now=now),
        what=WORDS.what,
        how=WORDS.how,
        how_hold=WORDS.how_hold,
        how_settle=WORDS.how_settle,
        how_refused=WORDS.how_refused,
        curl_hold=_curl(f"{origin}/v1/holds", {"id": "call-1", "amounts": {unit: "0.25"}}),
        curl_settle=_curl(f"{origin}/v1/holds/call-1/settle", {"amounts": {unit: "0.07"}}),
        openapi=WORDS.openapi,
    )


def _ask_box(ask: AskSettings | None) -> _Html:
    if ask is None:
        return _Html("")
    return _fill(
        "ask.html",
        model=ask.model,
        provider=ask.provider,
        max_tokens=ask.max_tokens,
        chars_max=QUESTION_CHARS_MAX,
        title=WORDS.ask_title,
        question=WORDS.ask_question,
        placeholder=WORDS.ask_placeholder,
        send=WORDS.ask_send,
        needs_script=WORDS.ask_needs_script,
    )


def _ask_script(ask: AskSettings | None) -> _Html:
    if ask is None:
        return _Html("")
    return _Html(f'<script type="module" blocking="render" src="{asset_url("ask.js")}"></script>\n')


def _curl(url: str, body: Mapping[str, object]) -> str:
    return f"curl {url} \\\n  -H \"Authorization: Bearer $PURSE_KEY\" \\\n  --json '{json.dumps(body)}'"


def _window(status: Status | None, *, now: int) -> _Html:
    frozen = statement.frozen_words(statement.freeze_shown(status), now) if status else ""
    earlier = statement.earlier_words(status) if status else ""
    return _fill(
        "window.html",
        status=_document(status),
        shared=WORDS.shared,
        connecting=WORDS.connecting,
        as_of=statement.as_of_words(status, now) if status else "",
        reload=WORDS.reload,
        frozen=frozen,
        frozen_hidden=_hidden(not frozen),
        budgets=_budgets(status, now=now),
        earlier=earlier,
        earlier_hidden=_hidden(not earlier),
    )


def _document(status: Status | None) -> str:
    """What the script starts from: the same document that the stream sends to strangers."""
    return msgspec.json.encode(status and document(status, audience="public", live=True)).decode()


def _budgets(status: Status | None, *, now: int) -> _Html:
    if status is None or not status.budgets:
        return _Html(f'      <p class="empty">{escape(WORDS.no_figures if status is None else WORDS.no_budgets)}</p>')
    return _Html("".join(_budget(budget, now=now) for budget in status.budgets).rstrip("\n"))


def _budget(budget: BudgetStatus, *, now: int) -> _Html:
    over = statement.ended(budget, now)
    full, refused = statement.full_words(budget, now), statement.refused_words(budget, now)
    own_calls = statement.own_calls_words(budget, now)
    share = Shares(0, 0, 0, 0) if over else statement.shares(budget)
    return _fill(
        "budget.html",
        name=budget.name,
        unit=budget.unit,
        per=budget.per,
        source=budget.source,
        ended="yes" if over else "no",
        per_words=WORDS.per[budget.per],
        period="" if budget.per == "total" else budget.period,
        used=statement.used_words(budget, now),
        resets=statement.resets_words(budget, now),
        resets_in=statement.resets_in_words(budget, now),
        value=tenths(min(1000, share.used)),
        meter=WORDS.unknown if over else statement.meter_words(share),
        full=full,
        full_hidden=_hidden(not full),
        operator=_operator(budget),
        refused=refused,
        refused_hidden=_hidden(not refused),
        own_calls=own_calls,
        own_calls_hidden=_hidden(not own_calls),
        others_hidden=_hidden(not (share.others or budget.source)),
        **_bar(share),
        **_lines(budget, share, blank=over),
    )


def _operator(budget: BudgetStatus) -> _Html:
    """What the plan wants said where the budget is used up. Only a web address becomes a link."""
    if not budget.link.startswith(("https://", "http://")):
        return _Html(escape(budget.note))
    return _Html(f'<a href="{escape(budget.link)}" rel="noopener">{escape(budget.note or budget.link)}</a>')


def _bar(share: Shares) -> dict[str, str]:
    """Where the meter's segments begin and how wide they are, in percent. Past the limit the bar is what was used."""
    whole = max(1000, share.used)
    edges = (0, share.spent, share.base, share.base + share.held)
    at = [f"{100 * edge / whole:.2f}" for edge in edges]
    wide = [f"{100 * width / whole:.2f}" for width in (share.spent, share.others, share.held)]
    return {
        "spent_x": at[0], "spent_width": wide[0],
        "others_x": at[1], "others_width": wide[1],
        "held_x": at[2], "held_width": wide[2],
        "limit_x": f"{100 * 1000 / whole:.2f}", "limit_width": "3" if whole > 1000 else "0",
    }  # fmt: skip


def _lines(budget: BudgetStatus, share: Shares, *, blank: bool) -> dict[str, str | _Html]:
    """The lines of the table: what each is called, its share, and its amount where the plan shows amounts."""
    column = statement.amounts(budget)
    filled: dict[str, str | _Html] = {
        "caption": WORDS.table.format(name=budget.name),
        "line": WORDS.line,
        "amount": WORDS.amount,
        "share": WORDS.share,
        "amounts_hidden": _hidden(column is None),
        "limit": WORDS.limit.format(limit=column.limit, unit=budget.unit) if column else "",
    }
    for line in ("spent", "others", "held", "left"):
        filled[line] = getattr(WORDS, line)
        filled[f"{line}_share"] = _NO_FIGURE if blank else WORDS.percent.format(share=tenths(getattr(share, line)))
        filled[f"{line}_amount"] = "" if column is None else _NO_FIGURE if blank else getattr(column, line)
    return filled | {"others_hint": WORDS.others_hint, "held_hint": WORDS.held_hint}
