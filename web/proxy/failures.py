"""What an upstream does when it gives no answer that can be passed on, and what its answers must not tell.

A client hears which of a few things happened, never an address, an error's own text, our key or our account there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

import aiohttp
import structlog

from web.proxy.refusals import Declined, Refusal
from web.proxy.upstreams import Upstream

Failure: TypeAlias = Literal[
    "upstream_unreachable", "upstream_timeout", "upstream_broken", "upstream_too_large", "upstream_redirects",
    "upstream_key_refused",
]  # fmt: skip

_SAID: dict[Failure, tuple[int, str]] = {
    "upstream_unreachable": (502, "The provider cannot be reached. Nothing was sent."),
    "upstream_timeout": (504, "The provider did not answer in time."),
    "upstream_broken": (502, "The provider's answer did not arrive whole."),
    "upstream_too_large": (502, "The provider's answer is larger than this wallet passes on."),
    "upstream_redirects": (502, "The provider sends this call elsewhere, where this wallet does not go."),
    "upstream_key_refused": (502, "The provider refuses this wallet's own key, or what it asks for with it."),
}
AGAIN_S = 1  # what is the upstream's fault may be tried again: every attempt is a hold of its own
KEY_REFUSED = frozenset({401, 403})
"""Their text is about our key."""

_ACCOUNT = re.compile(rb"\b(org|proj)([-_])[A-Za-z0-9]{8,}")

log = structlog.get_logger()


def failed(upstream: Upstream, reason: Failure, error: BaseException | None = None) -> Declined:
    """Logged, without what the error says: its text may have an address in it."""
    log.warning("upstream_failed", upstream=upstream.name, reason=reason, error=type(error).__name__ if error else "")
    return Declined(refusal(reason))


def refusal(reason: Failure) -> Refusal:
    status, message = _SAID[reason]
    return Refusal(status=status, reason=reason, message=message, retry_s=AGAIN_S)


@contextmanager
def failing(upstream: Upstream) -> Iterator[None]:
    """Turns what an upstream does to a request into `Declined`."""
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise failed(upstream, "upstream_unreachable", error) from None
    except TimeoutError as error:
        raise failed(upstream, "upstream_timeout", error) from None
    except aiohttp.ClientError as error:
        raise failed(upstream, "upstream_broken", error) from None


async def read(answer: aiohttp.ClientResponse, upstream: Upstream, *, most: int) -> bytes:
    """A whole body, without our key. Raises `Declined` past `most` bytes."""
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > most:
            raise failed(upstream, "upstream_too_large")
    return bytes(body).replace(upstream.key.encode(), b"***")


def without_account(raw: bytes) -> bytes:
    """The text of an error without the names of our organisation and project."""
    return _ACCOUNT.sub(rb"\1\2***", raw)
