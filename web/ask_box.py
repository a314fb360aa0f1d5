"""The page's ask box: a stranger's question, counted, held, streamed and settled like any guarded call.

Whoever asks here has no key and is nobody: how often is counted in memory by `web.slowing`, how much by the budgets.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from engine.core.documents import Status
from engine.core.plan import digest
from engine.plan_file import DEFAULT_PLAN
from web.ask_settings import QUESTION_CHARS_MAX, AskSettings
from web.auth import ANYBODY
from web.desk import DESK
from web.proxy.bodies import Body, read_body
from web.proxy.dialect import Incoming
from web.proxy.flow import answering, spend
from web.proxy.guard import GUARD
from web.proxy.openai import OPENAI
from web.proxy.openai_chat import CHAT
from web.proxy.refusals import Declined, Refusal, bad
from web.words import WORDS

PATH = "/ask"


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the box sends."""

    question: Annotated[str, Meta(min_length=1, max_length=QUESTION_CHARS_MAX)]


def add_ask_box(app: web.Application) -> None:
    app.router.add_post(PATH, answering(OPENAI, _ask))


def offered(ask: AskSettings | None, status: Status | None) -> AskSettings | None:
    """What the box asks while the wallet is as `status` says (None: not known yet), None where the page has none."""
    if ask is None or (ask.default_plan_only and status is not None and status.plan != _DEFAULT):
        return None
    return ask


_DEFAULT = digest(DEFAULT_PLAN)


async def _ask(request: web.Request) -> web.StreamResponse:
    desk = request.app[DESK]
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise Declined(Refusal(status=403, reason="cross_site", message="Questions are asked on this page only."))
    ask = desk.settings.ask
    if ask is not None and ask.default_plan_only:
        ask = offered(ask, await desk.board.now())
    if ask is None:
        raise Declined(Refusal(status=404, reason="no_ask_box", message="Nothing is asked here."))
    if seconds := await desk.slowing.wait_s(request, "ask"):
        said = {"reason": "slow_down", "seconds": seconds}
        message = WORDS.slow_down.format(seconds=seconds)
        raise Declined(Refusal(status=429, reason="slow_down", message=message, metadata=said))
    body = await read_body(request)
    try:
        question = msgspec.convert(body.value, Question).question
    except msgspec.ValidationError:
        raise bad("question", f"expected a text of 1 to {QUESTION_CHARS_MAX} characters") from None
    chat = {
        "model": ask.model, "messages": [{"role": "user", "content": question}],
        "max_completion_tokens": ask.max_tokens, "stream": True,
    }  # fmt: skip
    upstream = request.app[GUARD].upstream(ask.upstream)
    with desk.crowd.admitted("call"):
        return await spend(request, CHAT, upstream, Incoming(body=Body(msgspec.json.encode(chat))), ANYBODY)
