"""`[ask]`: which model the page asks, read strictly."""

from __future__ import annotations

import pytest

from engine.errors import Misconfigured
from web.ask_settings import AskSettings, read_ask


def test_the_table_names_a_model_and_a_cap() -> None:
    assert read_ask({"model": "gpt-5-mini"}) == AskSettings("openai", "gpt-5-mini")
    assert read_ask({"model": "gpt-5-mini", "max_tokens": 64}) == AskSettings("openai", "gpt-5-mini", 64)
    assert read_ask({"upstream": "built-in"}) == AskSettings("built-in", "built-in")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "ask.model: missing"),
        ({"model": "m", "upstream": "elsewhere"}, "upstream"),
        ({"model": "m", "max_token": 5}, "max_token"),
        ({"model": "m", "max_tokens": 0}, "max_tokens"),
        ({"model": 7}, "model"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_place(table: dict[str, object], said: str) -> None:
    with pytest.raises(Misconfigured, match=said):
        read_ask(table)
