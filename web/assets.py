"""The bundled assets and the headers that guard every answer. Nothing is served that was not in the package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Final

import msgspec
from aiohttp import web

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

# Written out: what a machine's own table says of .js differs, and browsers refuse a module of another type.
_CONTENT_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class _Asset(msgspec.Struct, frozen=True):
    body: bytes
    content_type: str
    digest: str


def add_assets(app: web.Application) -> None:
    """Register the assets. Every response of the app gets `SECURITY_HEADERS` where it has none of its own."""
    app.router.add_get("/static/{file}", _static)
    app.on_response_prepare.append(_guard)


async def _guard(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)


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


def is_there(name: str) -> bool:
    """Whether this package came with it: the charts' library is fetched when it is built."""
    return name in _assets()


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
