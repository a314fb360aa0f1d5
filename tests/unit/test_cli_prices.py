"""`purse prices`: what a model costs, a new book, and what differs. It works on files and asks nobody."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from commonpurse.__main__ import purse
from engine.prices import load_book
from engine.prices.book import read_book, shipped_book
from engine.prices.shelf import keep


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PURSE_CONFIG", "PURSE_PRICE_BOOK", "PURSE_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(purse, ["prices", *arguments], catch_exceptions=False)


def test_it_shows_what_a_model_costs() -> None:
    shown = run("show", "gpt-4o-mini-2024-07-18")
    assert shown.exit_code == 0
    assert shown.output.splitlines()[:4] == [
        "openai: gpt-4o-mini",
        "  input read from cache: $0.075 for a million tokens",
        "  input: $0.15 for a million tokens",
        "  output: $0.6 for a million tokens",
    ]


def test_it_shows_tiers_and_neurons() -> None:
    tiers = run("show", "claude-sonnet-4-5").output
    assert "input: $3 for a million tokens, $6 once more than 200,000 go in" in tiers
    assert "counted in neurons too, at $0.011 for a thousand" in run("show", "@cf/meta/llama-3-8b-instruct").output


def test_as_json_prices_are_decimal_strings() -> None:
    found = json.loads(run("show", "gpt-4o", "--json").output)
    assert (found["provider"], found["model"], found["usd"]["input"]) == ("openai", "gpt-4o", "2.5")
    assert found["variants"]["batch"] == {"input": "1.25", "output": "5"}
    assert found["price_book"] == shipped_book().digest
    steps = json.loads(run("show", "claude-sonnet-4-5", "--json").output)["usd"]["input"]
    assert steps == [{"above_input_tokens": 0, "price": "3"}, {"above_input_tokens": 200_000, "price": "6"}]


def test_a_model_without_a_price_is_an_error() -> None:
    missing = run("show", "gpt-99")
    assert missing.exit_code == 1
    assert "gpt-99 has no price here" in missing.output


def test_your_own_prices_are_shown_from_your_file() -> None:
    Path("purse.toml").write_text('[prices."mine"]\ninput_usd_per_mtok = "0"\noutput_usd_per_mtok = "0"\n')
    shown = run("show", "mine", "--config", "purse.toml", "--provider", "openai").output.splitlines()
    assert shown == [
        "openai: mine",
        "  input: $0 for a million tokens",
        "  output: $0 for a million tokens",
        "  free: every price is zero",
    ]
    assert "1 price of your own" in run("show", "--config", "purse.toml").output


def test_a_slip_in_your_own_prices_is_said_with_its_place() -> None:
    Path("purse.toml").write_text('[prices."mine"]\ninput_usd_per_mtok = "0.0000025"\noutput_usd_per_mtok = "1"\n')
    refused = run("show", "mine", "--config", "purse.toml")
    assert refused.exit_code == 1
    assert 'prices."mine".input_usd_per_mtok: 0.0000025 cannot be dollars for a million tokens' in refused.output


def test_which_book_is_in_force_is_said_by_its_digest(tmp_path: Path) -> None:
    assert shipped_book().digest in run("show").output
    described = json.loads(run("show", "--json").output)
    assert described["price_book"] == shipped_book().digest
    assert described["models"]["openai"] > 80
    assert (described["own"], described["ceiling"]) == (0, False)


def test_a_book_that_was_in_force_is_shown_by_its_digest(tmp_path: Path) -> None:
    book = load_book({"mine": {"usd_per_call": "0.25"}})
    keep(book, tmp_path / "data")
    assert "a call: $0.25" in run("show", "mine", "--provider", "x", "--book", book.digest).output
    assert run("show", "mine", "--book", "0" * 64).exit_code == 1


def test_a_diff_says_what_changed(tmp_path: Path) -> None:
    mine, dearer = (load_book({"mine": {"usd_per_call": usd}}) for usd in ("0.25", "0.5"))
    for book, name in ((mine, "a.json"), (dearer, "b.json")):
        Path(name).write_bytes(book.raw)
    assert run("diff", "a.json", "a.json").output == "nothing: both say the same\n"
    assert run("diff", "a.json", "b.json").output == "own: */mine: a call: $0.25 -> a call: $0.5\n"
    assert run("diff", "shipped", "b.json").output == "own: */mine: is new\n"
    assert json.loads(run("diff", "a.json", "shipped", "--json").output) == {"changes": {"own: */mine": "is gone"}}


def test_what_is_no_book_is_an_error_that_names_the_file() -> None:
    Path("x.json").write_text("{}")
    refused = run("diff", "shipped", "x.json")
    assert refused.exit_code == 1
    assert "x.json: this is no price book" in refused.output


def test_the_shipped_book_is_what_import_makes() -> None:
    pytest.importorskip("genai_prices", reason="the catalogue is an extra: pip install commonpurse[prices]")
    made = run("import", "--output", "book.json.gz", "--as-of", shipped_book().contents.as_of)
    assert made.exit_code == 0
    source = read_book(Path("book.json.gz")).contents.source
    if source != shipped_book().contents.source:
        pytest.skip("another version of genai-prices is installed than the shipped book was made from")
    assert gzip.decompress(Path("book.json.gz").read_bytes()) == shipped_book().raw


def test_an_import_says_what_is_left_out_and_what_will_change() -> None:
    pytest.importorskip("genai_prices", reason="the catalogue is an extra: pip install commonpurse[prices]")
    made = json.loads(run("import", "--output", "book.json", "--as-of", "2026-12-01", "--json").output)
    assert made["price_book"] == read_book(Path("book.json")).digest
    assert made["models"] > 2000
    assert all(made["left_out"].values())


def test_a_wallet_does_not_start_with_a_slip_in_its_prices() -> None:
    Path("purse.toml").write_text('[prices."mine"]\ninput_usd_per_mtok = "1"\n')
    refused = CliRunner().invoke(purse, ["up", "--config", "purse.toml", "--data", "data"])
    assert refused.exit_code == 1
    assert 'prices."mine".output_usd_per_mtok: is required' in refused.output
    assert not Path("data").exists()


def test_a_day_that_is_none_is_a_usage_error() -> None:
    assert run("import", "--as-of", "yesterday").exit_code == 2
