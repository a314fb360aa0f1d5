"""What the answer to a batch looks like: for each ask the body that it would have had alone, and its status."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from web.problem_shapes import (
    BusyProblem,
    ClosedProblem,
    ConflictProblem,
    CoolingProblem,
    FrozenProblem,
    LateProblem,
    NeverProblem,
    PlanlessProblem,
    RefusedAskProblem,
    RevokedProblem,
    SpentProblem,
    TierProblem,
    UnknownProblem,
)  # fmt: skip
from web.shapes import (
    AdjustedAnswer,
    AdjustedLateAnswer,
    AgainAnswer,
    DoneAnswer,
    ForgottenAnswer,
    HeldAnswer,
    ObservedAnswer,
    SettledAnswer,
    Shape,
    StrayAnswer,
)  # fmt: skip


class BatchHeld(HeldAnswer, kw_only=True):
    status: Literal[200, 201]


class BatchSettled(SettledAnswer, kw_only=True):
    status: Literal[200]


class BatchStray(StrayAnswer, kw_only=True):
    status: Literal[200]


class BatchForgotten(ForgottenAnswer, kw_only=True):
    status: Literal[200]


class BatchAgain(AgainAnswer, kw_only=True):
    status: Literal[200]


class BatchObserved(ObservedAnswer, kw_only=True):
    status: Literal[200]


class BatchAdjusted(AdjustedAnswer, kw_only=True):
    status: Literal[200]


class BatchAdjustedLate(AdjustedLateAnswer, kw_only=True):
    status: Literal[200]


class BatchDone(DoneAnswer, kw_only=True):
    status: Literal[200]


IN_A_BATCH = (
    BatchHeld, BatchSettled, BatchStray, BatchForgotten, BatchAgain, BatchObserved, BatchAdjusted, BatchAdjustedLate,
    BatchDone, SpentProblem, TierProblem, BusyProblem, NeverProblem, FrozenProblem, RevokedProblem, CoolingProblem,
    LateProblem, ClosedProblem, ConflictProblem, RefusedAskProblem, PlanlessProblem, UnknownProblem,
)  # fmt: skip
_ONE = {"anyOf": [{"$ref": f"#/components/schemas/{shape.__name__}"} for shape in IN_A_BATCH]}


class BatchAnswer(Shape):
    """One outcome for each ask, in their order, with the `status` that it would have had alone."""

    told: Annotated[list[Any], Meta(extra_json_schema={"items": _ONE})]  # msgspec has no union of untagged Structs
