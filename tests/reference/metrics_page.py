"""`metrics.md`: every metric that `/metrics` has, from the table that writes it."""

from __future__ import annotations

from reference.markdown import page, table

from web.metrics import KINDS

_BEGINS = """
`GET /metrics` says them as OpenMetrics text, to a key with the role observe or admin. What to look at:
[operating](../operating.md). A part that is silent has no values: a missing figure is not zero. Values of labels come
from the plan, the configuration and fixed lists of words, never from a caller. Amounts are floats here, in whole units,
and only to be drawn.
"""

_VALUES = """
`ask` and `outcome` are those of [asks and outcomes](asks-and-outcomes.md). `part` is engine, projector or web; `what`
is settled, held, extra, used, limit or remaining; `kind` is ask or estimate; `answer` is the class of the upstream's
answer. A histogram has `_bucket` (with `le`), `_sum` and `_count`.
"""


def metrics_page() -> str:
    rows = [(f"`{kind.shown}`", kind.type, ", ".join(f"`{name}`" for name in kind.labels), kind.says) for kind in KINDS]
    return page("Metrics", _BEGINS, table(("name", "type", "labels", "meaning"), rows), _VALUES)
