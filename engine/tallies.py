"""What one engine counts of its own work, for whoever watches it. Never on the stream, and nothing is decided by it."""

from __future__ import annotations

from bisect import bisect_left

from engine.core.documents import EngineFigures

LATENCY_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Tallies:
    """`latency`: messages by how long they took from being read to their told, a bucket a bound and one more."""

    def __init__(self) -> None:
        self.latency = [0] * (len(LATENCY_BOUNDS_S) + 1)
        self.latency_sum_s = 0.0

    def took(self, seconds: float) -> None:
        """One message was told so long after it was read."""
        self.latency[bisect_left(LATENCY_BOUNDS_S, seconds)] += 1
        self.latency_sum_s += seconds

    def figures(self, *, told_upto: int, waiting: int, visits_slowed: int) -> EngineFigures:
        """All of it, beside what only the engine knows."""
        return EngineFigures(
            told_upto=told_upto,
            waiting=waiting,
            visits_slowed=visits_slowed,
            latency_bounds_s=list(LATENCY_BOUNDS_S),
            latency=list(self.latency),
            latency_sum_s=self.latency_sum_s,
        )
