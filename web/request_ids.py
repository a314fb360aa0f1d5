"""The id of a request: the caller's own, if it is one, else a fresh one. It goes on every answer and into every log."""

from __future__ import annotations

import os
import re

from aiohttp import web

REQUEST_ID = web.RequestKey("request_id", str)

_CALLERS_OWN = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)


def request_id_of(request: web.Request) -> str:
    known = request.get(REQUEST_ID)
    if known is None:
        said = request.headers.get("x-request-id")
        known = said if said is not None and _CALLERS_OWN.fullmatch(said) else os.urandom(16).hex()
        request[REQUEST_ID] = known
    return known
