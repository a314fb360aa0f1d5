"""Which ids were delivered: a file beside the data, a line each, synced. Without a folder, what this process knows.

The newest ids are kept; older ones are forgotten, which costs no more than a delivery that was there before.
"""

from __future__ import annotations

import os
from pathlib import Path

import structlog

from engine.snapshots import sync_folder

FOLDER = "delivered"
IDS_MAX = 10_000

log = structlog.get_logger()


class Sent:
    """The ids of one receiver. A disk that takes nothing is reported and stops nobody."""

    def __init__(self, data: Path | None, name: str) -> None:
        self._path = data / FOLDER / f"{name}.ids" if data is not None else None
        self._ids = dict.fromkeys(self._read())

    def __contains__(self, id: str) -> bool:
        return id in self._ids

    def note(self, id: str) -> None:
        """It was taken."""
        self._ids[id] = None
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if len(self._ids) > IDS_MAX:
                self._ids = dict.fromkeys(list(self._ids)[-IDS_MAX // 2 :])
                self._write_anew(self._path)
            else:
                _append(self._path, f"{id}\n")
        except OSError as error:
            log.warning("delivery_not_noted", why=error.strerror)

    def _read(self) -> list[str]:
        """What stands there. A last line that a crash cut short was not noted."""
        if self._path is None:
            return []
        try:
            return self._path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        except OSError:
            return []

    def _write_anew(self, path: Path) -> None:
        unfinished = path.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        _append(unfinished, "".join(f"{id}\n" for id in self._ids))
        unfinished.rename(path)
        sync_folder(path.parent)


def _append(path: Path, text: str) -> None:
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
            text = f"\n{text}"  # a crash has cut the last line short: it ends here
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
