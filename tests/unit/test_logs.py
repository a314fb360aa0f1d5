"""Log lines: one event a line, as JSON or as key=value, with the id of the request they are about."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import structlog
from structlog.contextvars import bind_contextvars, clear_contextvars

from engine.errors import Misconfigured
from engine.process import configure_logs


@pytest.fixture(autouse=True)
def no_request() -> Iterator[None]:
    yield
    clear_contextvars()


def logged(capsys: pytest.CaptureFixture[str], **environment: str) -> list[str]:
    configure_logs(environment)
    bind_contextvars(request_id="r-1")
    log = structlog.get_logger()
    log.info("came", why="two words\nand a line")
    log.warning("stayed")
    return capsys.readouterr().err.splitlines()


def test_lines_are_json_and_bear_the_requests_id(capsys: pytest.CaptureFixture[str]) -> None:
    came, stayed = map(json.loads, logged(capsys))
    assert (came["event"], came["level"], came["request_id"]) == ("came", "info", "r-1")
    assert came["why"] == "two words\nand a line"
    assert came["timestamp"].endswith("Z")
    assert (stayed["event"], stayed["level"]) == ("stayed", "warning")


def test_text_is_one_line_an_event_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    came, stayed = logged(capsys, PURSE_LOG="text")
    assert came.startswith("timestamp=")
    assert "level=info event=came" in came
    assert "request_id=r-1" in came
    assert "level=warning event=stayed" in stayed


def test_what_is_below_the_level_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    (stayed,) = logged(capsys, PURSE_LOG_LEVEL="warning")
    assert json.loads(stayed)["event"] == "stayed"


@pytest.mark.parametrize("name", ["PURSE_LOG", "PURSE_LOG_LEVEL"])
def test_another_word_is_refused_by_the_variables_name(name: str) -> None:
    with pytest.raises(Misconfigured, match=f"^{name}: expected one of "):
        configure_logs({name: "loud"})
