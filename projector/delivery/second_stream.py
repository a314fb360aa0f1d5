"""A stream on another server, or in another account, to which each document goes once: its own subject, for ever.

`<subject>.<key>` takes one message and no second one: the first is published only if nothing stands there, so that
twice is once also long after every duplicate window. Whoever runs that account makes the stream and lets us publish
and read, no more. The connection is made when there is something to carry, and let go.
"""

from __future__ import annotations

from engine.errors import PurseError, StreamRefused
from engine.journal import Journal
from projector.delivery.parcel import NotTaken, Parcel

WAIT_S = 10.0
THERE_ALREADY = (10071, 10164)  # the subject's last sequence is not 0


class SecondStream:
    """`url` may carry user and password. The key of a parcel is what follows the last colon of its id."""

    def __init__(self, url: str, subject: str) -> None:
        self._url, self._subject = url, subject

    async def carry(self, parcel: Parcel) -> None:
        subject = f"{self._subject}.{parcel.id.rpartition(':')[2]}"
        try:
            async with Journal.connect(self._url, name="purse-delivery") as journal:
                await journal.put_once(subject, parcel.body, msg_id=parcel.id, wait_s=WAIT_S)
        except StreamRefused as refused:
            if refused.code not in THERE_ALREADY:
                raise NotTaken(f"no stream takes {self._subject} there (code {refused.code})") from None
        except PurseError as error:
            raise NotTaken(f"no server takes it ({type(error).__name__})") from None
