"""When a source is asked next: never sooner than its interval, later by chance, much later when it refuses. Pure."""

from __future__ import annotations

from collections.abc import Callable

JITTER = 0.1  # of the wait, on top of it: many wallets that start together do not ask together
START_S_MAX = 5.0  # of chance before the very first try
BACKOFF_S_MAX = 900.0
RETRY_AFTER_S_MAX = 3_600.0  # how long a provider's own word is believed
_DOUBLINGS_MAX = 16


class Pace:
    """The waits of one observer. `chance` gives a number from 0 to 1 each time."""

    def __init__(self, every_s: int, chance: Callable[[], float]) -> None:
        self._every_s, self._chance = every_s, chance

    def first_s(self, *, since_last_s: float | None) -> float:
        """Before the first try. A restart does not ask again at once what was asked `since_last_s` ago."""
        chance_s = min(START_S_MAX, self._every_s) * self._chance()
        if since_last_s is None:
            return chance_s
        return max(0.0, min(self._every_s, self._every_s - since_last_s)) + chance_s

    def next_s(self) -> float:
        """After an answer."""
        return self._late(self._every_s)

    def again_s(self, failures: int, *, retry_after_s: float = 0.0) -> float:
        """After the `failures`th failure in a row: twice as long each time, and as long as the provider asks for."""
        doubled = self._every_s * 2.0 ** min(failures, _DOUBLINGS_MAX)
        backoff_s = max(self._every_s, min(doubled, BACKOFF_S_MAX))
        return self._late(max(backoff_s, min(retry_after_s, RETRY_AFTER_S_MAX)))

    def _late(self, wait_s: float) -> float:
        return wait_s * (1 + JITTER * self._chance())
