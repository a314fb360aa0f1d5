"""What one drive came to: as a document for programs and as lines for people. Pure; the two sums stand side by side."""

from __future__ import annotations

from commonpurse.drive import UNIT, Tally
from engine.core.amounts import SCALES, format_amount


def summary(tally: Tally, *, run: str, seconds: float) -> dict[str, object]:
    """All counts and sums. Money is exact decimal strings; only the stopwatch is a float."""
    return {
        "run": run,
        "rows": tally.rows,
        "held": tally.held,
        "already": tally.already,
        "refused": dict(sorted(tally.refused.items())),
        "trace": _usd(tally.trace_nanos),
        "due": _usd(tally.due_nanos),
        "settled": _usd(tally.settled_nanos),
        "unit": UNIT,
        "exact": tally.exact,
        "overruns": tally.overruns,
        "strays": tally.strays,
        "unequal": tally.unequal,
        "unsettled": tally.unsettled,
        "errors": tally.errors,
        "retries": tally.retries,
        "seconds": round(seconds, 3),
        "calls_per_s": _rate(tally, seconds),
        "stopped": tally.stopped,
        "complaints": tally.complaints,
    }


def progress_line(tally: Tally, *, seconds: float) -> str:
    """How far it is, in one line."""
    parts = [
        f"{tally.rows:,} rows",
        f"{tally.held:,} held",
        f"{tally.refused.total():,} refused",
        f"{_rate(tally, seconds):,} calls/s",
        *(f"{count:,} {what}" for count, what in ((tally.retries, "retries"), (tally.errors, "errors")) if count),
    ]
    return ", ".join(parts)


def report_lines(tally: Tally, *, run: str, seconds: float) -> list[str]:
    """The run for a person, the sums last: `trace 5.8074795 usd, settled 5.8074795 usd`."""
    return [
        f"{progress_line(tally, seconds=seconds)} in {seconds:.1f} s",
        *_details(tally),
        *(f"  {why}" for why in tally.complaints),
        *_ending(tally, run),
        _sums(tally),
    ]


def _details(tally: Tally) -> list[str]:
    refused = ", ".join(f"{count:,} {why}" for why, count in sorted(tally.refused.items()))
    told = (
        (tally.refused.total(), f"refused: {refused}"),
        (tally.already, f"{tally.already:,} done by an earlier try of this run"),
        (tally.overruns, f"{tally.overruns:,} overruns, charged in full"),
        (tally.strays, f"{tally.strays:,} strays: the wallet did not know the hold and charged it all the same"),
        (tally.unequal, f"{tally.unequal:,} calls stand at another charge than the trace's"),
        (tally.unsettled, f"{tally.unsettled:,} held calls are not settled yet"),
    )
    return [line for count, line in told if count]


def _ending(tally: Tally, run: str) -> list[str]:
    if tally.stopped:
        return [f"stopped: {tally.stopped}", f"go on with --run {run}"]
    return [f"finish what got no answer with --run {run}"] if tally.errors or tally.unsettled else []


def _sums(tally: Tally) -> str:
    trace, due, settled = (_usd(nanos) for nanos in (tally.trace_nanos, tally.due_nanos, tally.settled_nanos))
    of_held = "" if trace == due else f" ({due} {UNIT} of it let pass)"
    wrong = "" if due == settled else " - these differ"
    return f"trace {trace} {UNIT}{of_held}, settled {settled} {UNIT}{wrong}"


def _usd(nanos: int) -> str:
    return format_amount(nanos, scale=SCALES[UNIT])


def _rate(tally: Tally, seconds: float) -> int:
    """Calls that are through, a second."""
    return round(tally.answered / seconds) if seconds > 0 else 0
