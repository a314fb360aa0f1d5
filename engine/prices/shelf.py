"""Books that were in force here, each in a file named by its digest: whoever audits an old hold finds its prices.

A book is written once and never changed. One that does not have the digest of its name is not believed.
"""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

from engine.errors import Misconfigured
from engine.prices.book import PriceBook, read_book

FOLDER = "prices"
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


def keep(book: PriceBook, data: Path) -> Path:
    """Put a book into the data folder, unless it is there. Raises `Misconfigured` where that cannot be written."""
    path = _path(data, book.digest)
    if path.exists():
        return path
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(gzip.compress(book.raw, mtime=0))
        fresh.replace(path)
    except OSError as error:
        raise Misconfigured(f"{path.parent}: cannot keep the price book there: {error.strerror}") from error
    return path


def kept(data: Path, digest: str) -> PriceBook | None:
    """The book of this digest, None if it was not kept. Raises `Misconfigured` if it is another one."""
    path = _path(data, digest)
    if not _DIGEST.fullmatch(digest) or not path.exists():
        return None
    book = read_book(path)
    if book.digest != digest:
        raise Misconfigured(f"{path}: is not the book that it is named for")
    return book


def _path(data: Path, digest: str) -> Path:
    return data / FOLDER / f"{digest}.json.gz"
