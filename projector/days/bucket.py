"""Where documents stand: a key-value bucket beside the stream. It writes what changed and reads nothing into the fold.

<budget>.<period>           the totals, small, written within a quarter of a second
<budget>.<period>.detail    who spent it, and when: larger, once a second at most
<day>.wallet.day            what was decided on a day of the wallet and is of no one budget
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec
import structlog
from nats.js.errors import BucketNotFoundError

from engine.errors import NoAnswer, StreamRefused
from engine.journal import Journal
from projector.days.details import DetailKey
from projector.days.totals import TotalsKey
from projector.projection import Projection

WRITE_WAIT_S = 5.0

Key = TypeVar("Key")

log = structlog.get_logger()

_encoder = msgspec.json.Encoder()
_KEY_CHARACTERS = str.maketrans({".": "=", ":": "_", "+": "="})


def document_key(key: TotalsKey) -> str:
    """Where a period's document stands in the bucket: `<budget>.<period>`, in the characters a key may have.

    A dot in a budget's name would be a level of its own, and at its end an empty one, which no key may have.
    """
    budget, period = key
    return f"{budget.translate(_KEY_CHARACTERS)}.{period.translate(_KEY_CHARACTERS)}"


def detail_key(key: DetailKey) -> str:
    return f"{document_key(key)}.detail"


def day_key(day: str) -> str:
    return f"{day}.wallet.day"


def is_totals(key: str) -> bool:
    """Whether the document at this key is that of a period's totals."""
    return key.count(".") == 1


def documents(projection: Projection) -> dict[str, bytes]:
    """Every document of a projection, but for those that were final and written."""
    details = ((key, projection.details.document(key)) for key in projection.details.in_memory())
    return {
        **{document_key(key): _encoder.encode(totals) for key, totals in projection.totals.items()},
        **{detail_key(key): document for key, document in details if document is not None},
        **{day_key(day): _encoder.encode(one) for day, one in projection.wallet_days.days.items()},
    }


def bucket_name(wallet: str) -> str:
    return f"PURSE_{wallet}_days"


class Bucket:
    """Writes the documents of one projection. What could not be written stays dirty."""

    def __init__(self, journal: Journal, projection: Projection) -> None:
        self.name = bucket_name(journal.names.wallet)
        self._journal, self._projection = journal, projection

    async def open(self) -> None:
        """Make it if there is none."""
        jetstream = self._journal.client.jetstream()
        try:
            await jetstream.key_value(self.name)
        except BucketNotFoundError:
            await jetstream.create_key_value(bucket=self.name, history=1, replicas=await self._journal.replicas())

    async def write_totals(self) -> bool:
        """What changed of totals and days. Whether all of it is written now."""
        books, days = self._projection.books, self._projection.wallet_days
        dirty, books.dirty = books.dirty, set()
        written = True
        for key in dirty:
            if not await self._put(document_key(key), _encoder.encode(books.by_key[key])):
                books.dirty.add(key)
                written = False
        dirty_days, days.dirty = days.dirty, set()
        for day in dirty_days:
            if not await self._put(day_key(day), _encoder.encode(days.days[day])):
                days.dirty.add(day)
                written = False
        return written

    async def write_final(self) -> None:
        """Details that will never change again; then only the bucket has them."""
        final = self._projection.details.final
        for key in list(final):
            if await self._put(detail_key(key), final[key]):
                del final[key]

    async def write_details(self) -> None:
        details = self._projection.details
        for key in details.unwritten():
            document = details.document(key)
            if document is None:  # it became final meanwhile
                continue
            seq = details.upto(key)
            if await self._put(detail_key(key), document):
                details.written(key, seq)

    async def details(self, keys: Iterable[DetailKey]) -> list[msgspec.Raw]:
        """As of now, all of the same moment. Raises `NoAnswer` and `StreamRefused` where only the bucket has one."""
        found = {key: self._projection.details.document(key) for key in keys}
        for key in [key for key, document in found.items() if document is None]:
            kept = await self._journal.last_kept(self.name, detail_key(key))
            found[key] = kept.data if kept is not None else None
        return [msgspec.Raw(document) for document in found.values() if document]

    async def _put(self, key: str, document: bytes) -> bool:
        try:
            await self._journal.keep(self.name, key, document, wait_s=WRITE_WAIT_S)
        except (NoAnswer, StreamRefused) as error:
            log.warning("document_not_written", why=str(error))
            return False
        return True
