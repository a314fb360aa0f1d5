"""What a user may say on the broker, judged from the permissions that the broker tells."""

from __future__ import annotations

import pytest

from commonpurse.broker import _Side, covers


@pytest.mark.parametrize(
    ("pattern", "subject", "means"),
    [
        ("a.b", "a.b", True), ("a.b", "a.c", False), ("a.b", "a.b.c", False), ("a.b.c", "a.b", False),
        ("a.*", "a.b", True), ("a.*", "a", False), ("a.*", "a.b.c", False), ("*.b", "a.b", True),
        ("a.>", "a.b", True), ("a.>", "a.b.c", True), ("a.>", "a", False), (">", "a", True), (">", "a.b", True),
    ],
)  # fmt: skip
def test_a_pattern_means_what_the_broker_means_by_it(pattern: str, subject: str, means: bool) -> None:
    assert covers(pattern, subject) is means


def test_what_is_denied_wins_and_without_a_list_all_is_allowed() -> None:
    assert _Side().may("a.b")
    assert not _Side(deny=["a.*"]).may("a.b")
    assert _Side(allow=["a.>"]).may("a.b")
    assert not _Side(allow=["b"]).may("a.b")
    assert not _Side(allow=["a.>"], deny=["a.b"]).may("a.b")
    assert not _Side(allow=[]).may("a.b")
