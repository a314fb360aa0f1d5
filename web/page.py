"""The page a stranger sees: the shared budget in words and meters, from the newest Status document.

It serves `GET /` and nothing that could change the wallet. The figures are in the HTML, to be
read without JavaScript; `static/page.js` keeps them current. No inline style or script: the policy forbids both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from html import escape
from typing import Final

import msgspec
from aiohttp import web

from engine.core.documents import BudgetStatus, Status
from web import statement
from web.ask_settings import QUESTION_CHARS_MAX, AskSettings
from web.assets import add_assets, asset_url
from web.html import Html, fill, hidden
from web.statement import Shares, tenths
from web.status import document
from web.words import WORDS

STATUS: Final[web.AppKey[Callable[[], Status | None]]] = web.AppKey("status")
"""What the app knows of the wallet: the newest Status document, or None while there is none."""

NOW: Final[web.AppKey[Callable[[], int]]] = web.AppKey("now")
"""Nanoseconds since 1970, for countdowns and ages on the page. An app may set its own; `time.time_ns` otherwise."""

ASK: Final[web.AppKey[Callable[[], AskSettings | None]]] = web.AppKey("ask")
"""What the page's ask box asks, or None where there is none. An app without it has no box."""

_NO_FIGURE: Final = "\N{EN DASH}"


def add_page(app: web.Application) -> None:
    """Register the page and all assets. The app sets `app[STATUS]` before it is started."""
    app.router.add_get("/", _page)
    add_assets(app)


async def _page(request: web.Request) -> web.Response:
    status = request.app[STATUS]()
    now = request.app.get(NOW, time.time_ns)()
    ask = request.app[ASK]() if ASK in request.app else None
    html = render(status, now=now, origin=f"{request.scheme}://{request.host}", ask=ask)
    return web.Response(text=html, content_type="text/html", headers={"Cache-Control": "no-store"})


def render(status: Status | None, *, now: int, origin: str, ask: AskSettings | None = None) -> str:
    """The whole page as of `now` (nanoseconds since 1970). `origin`: this server's address as the visitor wrote it."""
    unit = status.budgets[0].unit if status and status.budgets else "usd"
    return fill(
        "page.html",
        title=WORDS.title,
        lead=WORDS.lead,
        mark=asset_url("mark.svg"),
        drawing=fill("mark.html"),
        patterns=fill("patterns.html"),
        tokens=asset_url("tokens.css"),
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


def _ask_box(ask: AskSettings | None) -> Html:
    if ask is None:
        return Html("")
    return fill(
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


def _ask_script(ask: AskSettings | None) -> Html:
    if ask is None:
        return Html("")
    return Html(f'<script type="module" blocking="render" src="{asset_url("ask.js")}"></script>\n')


def _curl(url: str, body: Mapping[str, object]) -> str:
    return f"curl {url} \\\n  -H \"Authorization: Bearer $PURSE_KEY\" \\\n  --json '{json.dumps(body)}'"


def _window(status: Status | None, *, now: int) -> Html:
    frozen = statement.frozen_words(statement.freeze_shown(status), now) if status else ""
    earlier = statement.earlier_words(status) if status else ""
    return fill(
        "window.html",
        status=_document(status),
        shared=WORDS.shared,
        connecting=WORDS.connecting,
        as_of=statement.as_of_words(status, now) if status else "",
        reload=WORDS.reload,
        frozen=frozen,
        frozen_hidden=hidden(not frozen),
        budgets=_budgets(status, now=now),
        earlier=earlier,
        earlier_hidden=hidden(not earlier),
    )


def _document(status: Status | None) -> str:
    """What the script starts from: the same document that the stream sends to strangers."""
    return msgspec.json.encode(status and document(status, audience="public", live=True)).decode()


def _budgets(status: Status | None, *, now: int) -> Html:
    if status is None or not status.budgets:
        return Html(f'      <p class="empty">{escape(WORDS.no_figures if status is None else WORDS.no_budgets)}</p>')
    return Html("".join(_budget(budget, now=now) for budget in status.budgets).rstrip("\n"))


def _budget(budget: BudgetStatus, *, now: int) -> Html:
    over = statement.ended(budget, now)
    full, refused = statement.full_words(budget, now), statement.refused_words(budget, now)
    own_calls = statement.own_calls_words(budget, now)
    share = Shares(0, 0, 0, 0) if over else statement.shares(budget)
    return fill(
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
        full_hidden=hidden(not full),
        operator=_operator(budget),
        refused=refused,
        refused_hidden=hidden(not refused),
        own_calls=own_calls,
        own_calls_hidden=hidden(not own_calls),
        others_hidden=hidden(not (share.others or budget.source)),
        **bar_edges(share),
        **_lines(budget, share, blank=over),
    )


def _operator(budget: BudgetStatus) -> Html:
    """What the plan wants said where the budget is used up. Only a web address becomes a link."""
    if not budget.link.startswith(("https://", "http://")):
        return Html(escape(budget.note))
    return Html(f'<a href="{escape(budget.link)}" rel="noopener">{escape(budget.note or budget.link)}</a>')


def bar_edges(share: Shares) -> dict[str, str]:
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


def _lines(budget: BudgetStatus, share: Shares, *, blank: bool) -> dict[str, str | Html]:
    """The lines of the table: what each is called, its share, and its amount where the plan shows amounts."""
    column = statement.amounts(budget)
    filled: dict[str, str | Html] = {
        "caption": WORDS.table.format(name=budget.name),
        "line": WORDS.line,
        "amount": WORDS.amount,
        "share": WORDS.share,
        "amounts_hidden": hidden(column is None),
        "limit": WORDS.limit.format(limit=column.limit, unit=budget.unit) if column else "",
    }
    for line in ("spent", "others", "held", "left"):
        filled[line] = getattr(WORDS, line)
        filled[f"{line}_share"] = _NO_FIGURE if blank else WORDS.percent.format(share=tenths(getattr(share, line)))
        filled[f"{line}_amount"] = "" if column is None else _NO_FIGURE if blank else getattr(column, line)
    return filled | {"others_hint": WORDS.others_hint, "held_hint": WORDS.held_hint}
