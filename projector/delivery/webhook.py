"""A signed POST of JSON. It never follows a redirect and never repeats address, secret or answer.

    Purse-Id: seal:main:2026-11-30              the same whenever the same thing is sent
    Purse-Timestamp: 1796083200                 seconds since 1970, as it was sent
    Purse-Signature: v1=<hex>                   HMAC-SHA256 of "<id>.<timestamp>.<body>" with the secret

Whoever receives computes the signature over the bytes of the body as they came, compares in constant time, refuses what
is older than a few minutes, and answers with any 2xx once it has kept the document.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable

import aiohttp

from projector.delivery.parcel import NotTaken, Parcel
from projector.observers.fetch import retry_after_s

ANSWER_S = 15.0


def signature(secret: str, parcel: Parcel, timestamp: int) -> str:
    """What stands in `Purse-Signature`."""
    signed = f"{parcel.id}.{timestamp}.".encode() + parcel.body
    return f"v1={hmac.digest(secret.encode(), signed, 'sha256').hex()}"


class Webhook:
    """One address. `now`: seconds since 1970. Without a secret nothing is signed."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        url: str,
        secret: str,
        now: Callable[[], float],
        answer_s: float = ANSWER_S,
    ) -> None:
        self._session, self._url, self._secret, self._now, self._answer_s = session, url, secret, now, answer_s

    async def carry(self, parcel: Parcel) -> None:
        timestamp = int(self._now())
        headers = {
            "Content-Type": "application/json",
            "Purse-Id": parcel.id,
            "Purse-Timestamp": str(timestamp),
        }
        if self._secret:
            headers["Purse-Signature"] = signature(self._secret, parcel, timestamp)
        try:
            async with self._session.post(
                self._url,
                data=parcel.body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=self._answer_s),
            ) as answer:
                status, wait_s = answer.status, retry_after_s(answer.headers)  # the body is nobody's business
        except TimeoutError:
            raise NotTaken("it does not answer in time") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotTaken(f"it cannot be reached ({type(error).__name__})") from None
        if 300 <= status < 400:
            raise NotTaken(f"it sends us elsewhere, where nothing is sent (status {status})")
        if not 200 <= status < 300:
            raise NotTaken(f"it answers with status {status}", retry_after_s=wait_s)
