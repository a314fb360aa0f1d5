"""What only a later release could have written is told apart from what was changed."""

from __future__ import annotations

import msgspec
import pytest

from engine.core.messages import ApplyPlan, AskMessage, Entry, Invalid, Planned
from engine.core.plan import RULES, Plan, digest
from engine.errors import LaterRelease
from engine.later import check_rules, check_version, version_of
from projector.projection import Projection

LATER = msgspec.structs.replace(Plan({}), rules=RULES + 1)
ASK = ApplyPlan("p", LATER, "")
PLANNED = Planned("p", digest(LATER))


def test_a_plan_with_unknown_rules_is_a_later_release_s_only_if_it_was_put_in_force() -> None:
    with pytest.raises(
        LaterRelease, match=r"plan in force since message 7 asks for rules 2, this release knows rules 1: a la"
    ):
        check_rules(7, [ASK], [PLANNED])
    check_rules(7, [ASK], [Invalid("p", "rules", "this release knows rules 1")])
    check_rules(7, [ApplyPlan("p", Plan({}), "")], [PLANNED])


def test_a_projector_shows_nothing_by_rules_it_does_not_know() -> None:
    with pytest.raises(LaterRelease, match="a later release"):
        Projection("main").fold(seq=1, asks=[ASK], entry=Entry(1, 1, out=[PLANNED]))


def test_a_message_of_a_higher_number_is_a_later_release_s() -> None:
    raw = msgspec.json.encode(AskMessage(v=2, asks=[]))
    assert (version_of(raw), version_of(b'{"asks":[]}'), version_of(b"\xff")) == (2, 1, 1)
    check_version(9, 1)
    with pytest.raises(LaterRelease, match="9 is a message of version 2, this release reads 1: a later release"):
        check_version(9, version_of(raw))
