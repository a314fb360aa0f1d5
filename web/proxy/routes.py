"""Every address under the providers' names. What is not named here is not there, whatever method it is asked with.

A route that spends is a dialect, so that none can be added without a hold before it.
"""

from __future__ import annotations

from aiohttp import web

from web.proxy.anthropic import ANTHROPIC, passed_headers
from web.proxy.anthropic_messages import MESSAGES
from web.proxy.dialect import Dialect, Provider
from web.proxy.flow import Handler, answering, guarded
from web.proxy.guard import add_guard
from web.proxy.openai import OPENAI
from web.proxy.openai_chat import CHAT
from web.proxy.openai_embeddings import EMBEDDINGS
from web.proxy.openai_models import models
from web.proxy.openai_responses import RESPONSES
from web.proxy.passing import free
from web.proxy.refusals import Declined, Refusal
from web.proxy.workers_ai import WORKERS_AI
from web.proxy.workers_ai_openai import WORKERS_CHAT, WORKERS_EMBEDDINGS
from web.proxy.workers_ai_run import RUN
from web.settings import Settings

GUARDED: tuple[tuple[str, Dialect], ...] = (
    ("/openai/v1/chat/completions", CHAT),
    ("/openai/v1/responses", RESPONSES),
    ("/openai/v1/embeddings", EMBEDDINGS),
    ("/anthropic/v1/messages", MESSAGES),
    ("/workers-ai/run/{model:.+}", RUN),
    ("/workers-ai/v1/chat/completions", WORKERS_CHAT),
    ("/workers-ai/v1/embeddings", WORKERS_EMBEDDINGS),
)
"""Every address that spends."""

LOOKS: tuple[tuple[str, Provider, Handler], ...] = (
    ("/openai/v1/models", OPENAI, models),
    ("/openai/v1/models/{id:.+}", OPENAI, models),
)
"""Addresses that only read, and cost nothing."""

FREE: tuple[tuple[str, Provider, Handler], ...] = (
    ("/anthropic/v1/messages/count_tokens", ANTHROPIC, free(ANTHROPIC, "/v1/messages/count_tokens", passed_headers)),
)
"""Addresses whose answers the provider does not bill."""

PREFIXES: tuple[tuple[str, Provider], ...] = (
    ("/openai", OPENAI),
    ("/anthropic", ANTHROPIC),
    ("/workers-ai", WORKERS_AI),
)


def add_proxies(app: web.Application, settings: Settings) -> None:
    """Beside the desk of the application, which must be there before."""
    add_guard(app, settings)
    for path, dialect in GUARDED:
        app.router.add_post(path, guarded(dialect))
    for path, provider, handler in LOOKS:
        app.router.add_get(path, answering(provider, handler), allow_head=False)
    for path, provider, handler in FREE:
        app.router.add_post(path, answering(provider, handler))
    for prefix, provider in PREFIXES:
        nothing = answering(provider, _nothing)
        app.router.add_route("*", prefix, nothing)
        app.router.add_route("*", prefix + "/{tail:.*}", nothing)


async def _nothing(request: web.Request) -> web.StreamResponse:
    known = ", ".join(path for path, _ in GUARDED if path.split("/")[1] == request.path.split("/")[1])
    message = f"Nothing is guarded at this address, so nothing was sent. POST {known}."
    raise Declined(Refusal(status=404, reason="unknown_url", message=message))
