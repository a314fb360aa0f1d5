"""Under which tenant a request was answered, for its headers."""

from __future__ import annotations

from aiohttp import web

TENANT = web.RequestKey("cycles_tenant", str)


def note_tenant(request: web.Request, tenant: str) -> None:
    request[TENANT] = tenant
