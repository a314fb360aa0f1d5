"""One what-if from the record's first message to its report."""

from __future__ import annotations

from projector.audit.running import Progress
from projector.day_range import DayRange
from projector.reading import Source
from projector.replay import replay
from projector.whatif.change import Change
from projector.whatif.differences import SHOWN_MAX
from projector.whatif.report import WhatIf, report_of
from projector.whatif.worlds import Worlds


async def what_if(
    source: Source, day: DayRange, change: Change, *, shown: int = SHOWN_MAX, progress: Progress | None = None
) -> WhatIf:
    """Replay a day twice: as it was, and changed. `shown`: how many differences are told one by one.

    The chain is proved, the record's own decisions are not: that is `audit`'s. Raises `Misconfigured` where the other
    plan cannot be put in force, `BrokenRecord` where the record contradicts itself, `Untrusted`, `NoAnswer`,
    `StreamRefused`.
    """
    worlds = Worlds(day, change, wallet=source.wallet, shown=shown)
    reading = await replay(source, worlds.fold, progress=progress)
    worlds.finish()
    return report_of(worlds, reading, wallet=source.wallet)
