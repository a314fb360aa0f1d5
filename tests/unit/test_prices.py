"""The price book: exact prices, ids as people write them, an operator's own prices, and nothing free by accident."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.limits import AMOUNT_MAX
from engine.errors import Misconfigured
from engine.plan_file import parse_toml
from engine.prices import Price, PriceBook, Usage, affordable_output_tokens, cost, load_book, worst
from engine.prices.book import BOOK_BYTES_MAX, read_book, shipped_book
from engine.prices.cost import NEURONS_MARGIN, OUTPUT_TOKENS_MAX
from engine.prices.own import FIELDS
from engine.prices.shelf import keep, kept

ROOT = Path(__file__).parents[2]
MILLION = 1_000_000
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"


def price(model: str, provider: str = "") -> Price:
    found = load_book().find(provider, model)
    assert found is not None, f"{model} has no price"
    return found


def own(**fields: object) -> Price:
    found = load_book({"mine": fields}).find("somebody", "mine")
    assert found is not None
    return found


# --- what a call costs ------------------------------------------------------------------------------------------------


def test_a_cost_is_rounded_up_once_at_the_end() -> None:
    model = own(input_usd_per_mtok="0.0015", output_usd_per_mtok="0.0025")  # 1.5 and 2.5 nano-dollars a token
    assert cost(model, Usage(input_tokens=1)) == {"usd": 2}
    assert cost(model, Usage(input_tokens=1, output_tokens=1)) == {"usd": 4}
    assert cost(model, Usage(input_tokens=3)) == {"usd": 5}
    assert cost(model, Usage()) == {"usd": 0}


def test_a_tier_reprices_every_token_of_the_call() -> None:
    model = price("claude-sonnet-4-5")
    at = cost(model, Usage(input_tokens=200_000, output_tokens=1000))
    above = cost(model, Usage(input_tokens=200_001, output_tokens=1000))
    assert at == {"usd": 200_000 * 3000 + 1000 * 15_000}
    assert above == {"usd": 200_001 * 6000 + 1000 * 22_500}


def test_cached_input_costs_what_it_costs_and_not_the_price_of_input_too() -> None:
    usage = Usage(input_tokens=1000, cache_read_tokens=600, cache_write_tokens=200, cache_write_1h_tokens=100)
    assert cost(price("claude-3-5-sonnet"), usage) == {"usd": 100 * 3000 + 600 * 300 + 200 * 3750 + 100 * 6000}


def test_a_part_without_a_price_of_its_own_costs_what_its_whole_does() -> None:
    model = own(input_usd_per_mtok="2", output_usd_per_mtok="4")
    usage = Usage(input_tokens=1000, cache_read_tokens=900, input_image_tokens=50, output_tokens=9, web_searches=3)
    assert cost(model, usage) == {"usd": 1000 * 2000 + 9 * 4000}


def test_batch_and_service_tiers_have_their_own_prices() -> None:
    model, usage = price("gpt-4o"), Usage(input_tokens=1000, output_tokens=1000)
    assert cost(model, usage) == {"usd": 12_500_000}
    assert cost(model, msgspec.structs.replace(usage, batch=True)) == {"usd": 6_250_000}
    assert cost(model, msgspec.structs.replace(usage, service="priority")) == {"usd": 21_250_000}
    assert model.offers("priority")
    assert not model.offers("flex")


def test_images_and_sound_have_the_price_of_their_kind() -> None:
    usage = Usage(input_tokens=100, input_audio_tokens=60, output_tokens=50, output_audio_tokens=20)
    assert cost(price("gpt-audio"), usage) == {"usd": 40 * 2500 + 60 * 32_000 + 30 * 10_000 + 20 * 64_000}
    usage = Usage(input_tokens=100, input_image_tokens=80, cache_read_tokens=10, cache_image_read_tokens=10)
    assert cost(price("gpt-image-1.5"), usage) == {"usd": 20 * 5000 + 70 * 8000 + 10 * 2000}


def test_a_model_for_sound_of_which_only_the_price_of_text_is_known_has_none() -> None:
    assert load_book().find("openai", "gpt-4o-audio-preview") is None
    assert price("gpt-audio").hears
    assert not price("gpt-4o").hears
    fields = {"input_usd_per_mtok": "2.5", "output_usd_per_mtok": "10", "input_audio_usd_per_mtok": "40"}
    assert own(**fields).hears


def test_what_the_provider_reports_itself_beats_any_computed_figure() -> None:
    assert cost(price("gpt-4o"), Usage(input_tokens=1000, usd=7)) == {"usd": 7}
    assert cost(price("gpt-4o"), Usage(input_tokens=1000, usd=0)) == {"usd": 0}
    reported = cost(price(LLAMA), Usage(input_tokens=1000, output_tokens=9, neurons=172_800_000))
    assert reported == {"neurons": 172_800_000, "usd": 1_900_800}  # at $0.011 for a thousand
    assert cost(price(LLAMA), Usage(input_tokens=1000, neurons=0)) == {"neurons": 0, "usd": 0}


def test_neurons_are_computed_from_dollars_and_rounded_up() -> None:
    computed = cost(price(LLAMA), Usage(input_tokens=1))  # $0.293 for a million: 0.0266363... neurons for one
    assert computed == {"neurons": 26_637, "usd": 293}


def test_a_price_for_a_call_counts_calls() -> None:
    model = own(usd_per_call="0.04", neurons_per_call="2.5")
    assert cost(model, Usage(input_tokens=500, calls=3)) == {"usd": 120_000_000, "neurons": 7_500_000}
    assert worst(model, input_tokens=500, output_tokens=100)["usd"] == 40_000_000 * NEURONS_MARGIN


_wild = st.integers(-(2**70), 2**70)


@settings(deadline=None)
@given(
    st.sampled_from(["gpt-4o", "claude-sonnet-4-5", LLAMA, "gpt-image-1"]),
    st.builds(
        Usage, input_tokens=_wild, cache_read_tokens=_wild, cache_write_1h_tokens=_wild, output_tokens=_wild,
        input_image_tokens=_wild, web_searches=_wild, calls=_wild, neurons=st.none() | _wild, usd=st.none() | _wild,
        batch=st.booleans(), service=st.sampled_from(["", "priority", "made-up"]),
    ),
)  # fmt: skip
def test_whatever_a_provider_reports_becomes_an_amount_that_the_wallet_takes(model: str, usage: Usage) -> None:
    for amount in cost(price(model), usage).values():
        assert 0 <= amount <= AMOUNT_MAX


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_the_worst_case_is_the_dearest_way_to_use_so_many_tokens() -> None:
    model = price("claude-sonnet-4-5")
    assert worst(model, input_tokens=1000, output_tokens=100) == {
        "usd": 1000 * 6000 + 100 * 15_000
    }  # all written for 1 h
    assert worst(model, input_tokens=200_001, output_tokens=0) == {"usd": 200_001 * 12_000}


def test_a_batch_price_that_is_dearer_is_in_the_worst_case_too() -> None:
    odd = Price(provider="p", model="m", usd={"input": 1000, "output": 1000}, variants={"batch": {"output": 7000}})
    assert worst(odd, input_tokens=1, output_tokens=1) == {"usd": 8}


def test_sound_is_in_the_worst_case_only_where_there_may_be_some() -> None:
    model = price("gpt-audio")
    assert worst(model, input_tokens=100, output_tokens=10)["usd"] == 100 * 2500 + 10 * 10_000
    assert worst(model, input_tokens=100, output_tokens=10, audio=True)["usd"] == 100 * 32_000 + 10 * 64_000


def test_searches_of_the_provider_are_in_the_worst_case_by_their_number() -> None:
    more = worst(price("gpt-4o"), input_tokens=0, output_tokens=0, web_searches=2, storage_searches=3)
    assert more == {"usd": 2 * 10_000_000 + 3 * 2_500_000}


def test_where_neurons_are_counted_a_hold_has_a_margin() -> None:
    exact = cost(price(LLAMA), Usage(input_tokens=100, output_tokens=100))
    held = worst(price(LLAMA), input_tokens=100, output_tokens=100)
    assert held["usd"] == NEURONS_MARGIN * exact["usd"]
    assert abs(held["neurons"] - NEURONS_MARGIN * exact["neurons"]) < NEURONS_MARGIN


def test_the_affordable_output_counts_tokens_too() -> None:
    model = price("gpt-4o")
    assert affordable_output_tokens(model, {"usd": 1_250_000}, input_tokens=100) == 100
    assert affordable_output_tokens(model, {"usd": 1_250_000, "tokens": 150}, input_tokens=100) == 50
    assert affordable_output_tokens(model, {"usd": 249_999}, input_tokens=100) == -1
    assert affordable_output_tokens(model, {"usd": 250_000}, input_tokens=100) == 0
    assert affordable_output_tokens(model, {"jpy": 1}, input_tokens=100) == OUTPUT_TOKENS_MAX


# --- finding a model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "asked", "model"),
    [
        ("openai", "gpt-4o-2024-08-06", "gpt-4o"),
        ("openai", "gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("openai", "GPT-4o-Mini", "gpt-4o-mini"),
        ("openai", " gpt-4o ", "gpt-4o"),
        ("openai", "gpt-5-nano-2025-08-07", "gpt-5-nano"),
        ("openai", "ft:gpt-4o-mini-2024-07-18:acme::id", "ft:gpt-4o-mini"),
        ("anthropic", "claude-3-5-sonnet-20241022", "claude-3-5-sonnet"),
        ("anthropic", "claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("anthropic", "claude-3-5-haiku-20241022", "claude-3-5-haiku-latest"),
        ("anthropic", "claude-haiku-5-5-20991231", "claude-haiku-5-5"),
        ("cloudflare", LLAMA, LLAMA),
        ("azure", "gpt-4o", "gpt-4o"),
        ("", "gpt-4o", "gpt-4o"),
        ("", "claude-3-haiku-20240307", "claude-3-haiku"),
        ("", LLAMA, LLAMA),
    ],
)
def test_a_model_is_found_by_its_dated_and_other_ids(provider: str, asked: str, model: str) -> None:
    assert price(asked, provider).model == model


def test_a_model_that_another_serves_has_its_makers_price_but_not_its_makers_service_tiers() -> None:
    maker, azure = price("gpt-4o", "openai"), price("gpt-4o", "azure")
    assert azure.usd == maker.usd
    assert (azure.provider, maker.offers("priority"), azure.offers("priority")) == ("azure", True, False)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-4o-turbo"),
        ("openai", "gpt-4o-2024-08-06-x"),
        ("openai", "my-gpt-4o"),
        ("openai", "claude-3-haiku"),
        ("anthropic", "claude-3-5-sonnet-enormous"),
        ("anthropic", "claude"),
        ("nobody", "gpt-4o"),
        ("openai", ""),
        ("openai", "x" * 10_000),
        ("openrouter", "deepseek/deepseek-r1:free"),
    ],
)
def test_what_is_not_in_the_book_has_no_price(provider: str, model: str) -> None:
    assert load_book().find(provider, model) is None


def test_models_that_strangers_make_up_are_not_remembered_without_end() -> None:
    book = PriceBook(shipped_book().raw)
    for number in range(10_000):
        book.find("openai", f"made-up-{number}")
        book.find(f"made-up-{number}", "gpt-4o")
    assert book.find("openai", "x" * 1000) is book.find("x" * 1000, "gpt-4o") is None
    assert max(len(name) for key in book._found for name in key) < 100
    assert len(book._found) < 5_000
    assert len(book._providers) < 100


def test_nothing_in_the_shipped_book_is_free() -> None:
    book = shipped_book()
    assert [model for name in book.providers for model, found in book.prices(name).items() if found.free] == []


# --- an operator's own prices -----------------------------------------------------------------------------------------

TOML = """
[prices."My-Model"]
input_usd_per_mtok = "1.00"
output_usd_per_mtok = "2.5"
cache_read_usd_per_mtok = "0.1"
cache_write_usd_per_mtok = "1.25"
cache_write_1h_usd_per_mtok = 2
[prices."@cf/acme/draw"]
provider = "cloudflare"
neurons_per_call = "4.5"
[prices."@cf/acme/talk"]
neurons_per_mtok_input = "26668"
neurons_per_mtok_output = "204805"
"""


def test_prices_are_read_from_purse_toml_exactly() -> None:
    book = load_book(parse_toml(TOML).local.prices)
    mine, draw, talk = (book.find("cloudflare", model) for model in ("my-model", "@cf/acme/draw", "@cf/acme/talk"))
    assert mine is not None
    assert mine.usd == {
        "input": 1_000_000, "output": 2_500_000, "cache_read": 100_000, "cache_write": 1_250_000,
        "cache_write_1h": 2_000_000,
    }  # fmt: skip
    assert draw is not None
    assert cost(draw, Usage(calls=2)) == {"neurons": 9_000_000}
    assert talk is not None
    assert cost(talk, Usage(input_tokens=1000, output_tokens=10)) == {"neurons": 26_668_000 + 2_048_050}
    assert book.find("openai", "@cf/acme/draw") is None


def test_an_own_price_goes_before_the_books_under_every_id_of_the_model() -> None:
    book = load_book({"gpt-4o": {"input_usd_per_mtok": "7", "output_usd_per_mtok": "8"}})
    for id in ("gpt-4o", "gpt-4o-2024-08-06", "GPT-4O"):
        found = book.find("openai", id)
        assert found is not None
        assert found.usd == {"input": 7_000_000, "output": 8_000_000}, id
    other = book.find("openai", "gpt-4o-2024-05-13")  # a model of its own, with a dearer price
    assert other == load_book().find("openai", "gpt-4o-2024-05-13")


def test_an_own_model_is_found_by_a_dated_id_too() -> None:
    book = load_book({"mine": {"usd_per_call": "1"}})
    assert book.find("somebody", "mine-2026-01-31") is not None
    assert book.find("somebody", "mine-31") is None


def test_a_written_zero_is_free() -> None:
    free = own(input_usd_per_mtok="0", output_usd_per_mtok="0.0")
    assert free.free
    assert cost(free, Usage(input_tokens=MILLION, output_tokens=MILLION)) == {"usd": 0}
    assert affordable_output_tokens(free, {"usd": 0}, input_tokens=5) == OUTPUT_TOKENS_MAX


def test_a_ceiling_is_the_price_of_whatever_has_none() -> None:
    book = load_book({"ceiling": {"input_usd_per_mtok": "100", "output_usd_per_mtok": "600"}})
    found = book.find("openai", "gpt-99")
    assert found is not None
    assert (found.provider, found.model, found.usd) == ("openai", "gpt-99", {"input": 10**8, "output": 6 * 10**8})
    assert book.find("openai", "gpt-4o") == load_book().find("openai", "gpt-4o")
    assert book.find("openai", "") is None
    assert book.find("openai", "x" * 10_000) is None


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"mine": {"input_usd_per_mtoks": "1"}}, 'prices."mine".input_usd_per_mtoks: unknown; did you mean'),
        ({"mine": {"costs": "1"}}, 'prices."mine".costs: unknown; known here: input_usd_per_mtok'),
        ({"mine": {}}, 'prices."mine": has no price; write "0"'),
        ({"mine": {"provider": "openai"}}, 'prices."mine": has no price'),
        ({"mine": {"input_usd_per_mtok": "1"}}, 'prices."mine".output_usd_per_mtok: is required beside'),
        ({"mine": {"cache_read_usd_per_mtok": "1"}}, 'prices."mine".input_usd_per_mtok: is required beside'),
        ({"mine": {"neurons_per_mtok_output": "100"}}, 'prices."mine".neurons_per_mtok_input: is required beside'),
        ({"mine": {"usd_per_call": "-1"}}, 'prices."mine".usd_per_call: usd must not be negative'),
        ({"mine": {"usd_per_call": 0.5}}, 'prices."mine".usd_per_call: expected a decimal string'),
        ({"mine": {"usd_per_call": True}}, 'prices."mine".usd_per_call: expected a decimal string'),
        ({"mine": {"usd_per_call": "a lot"}}, 'prices."mine".usd_per_call: expected a decimal string'),
        ({"mine": {"usd_per_call": "101"}}, 'prices."mine".usd_per_call: 101 cannot be dollars for a call'),
        ({"mine": {"provider": 7, "usd_per_call": "1"}}, 'prices."mine".provider: expected the name of a provider'),
        ({"mine": {"provider": "*", "usd_per_call": "1"}}, 'prices."mine".provider: expected the name of a provider'),
        ({"mine": "1.00"}, 'prices."mine": expected a table'),
        (
            {"Mine": {"usd_per_call": "1"}, "mine": {"usd_per_call": "1"}},
            'prices."mine": the same model is given twice',
        ),
        ({"": {"usd_per_call": "1"}}, 'prices."": expected the id of a model'),
        ({"x" * 300: {"usd_per_call": "1"}}, "expected the id of a model, 1 to 256 characters"),
        ({"ceiling": {"provider": "openai", "usd_per_call": "1"}}, "prices.ceiling.provider: unknown"),
    ],
)
def test_what_could_be_a_slip_is_refused_by_its_place(table: dict[str, object], said: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        load_book(table)
    assert said in str(refused.value)


# --- the book itself --------------------------------------------------------------------------------------------------


def test_a_book_is_named_by_the_hash_of_its_canonical_json() -> None:
    book = shipped_book()
    assert book.digest == hashlib.sha256(book.raw).hexdigest()
    assert msgspec.json.encode(msgspec.json.decode(book.raw), order="sorted") == book.raw
    assert load_book().digest == book.digest


def test_an_own_price_gives_a_book_another_name_whatever_the_order_it_is_written_in() -> None:
    mine = {"usd_per_call": "1"}
    one = load_book({"a": mine, "b": {"usd_per_call": "2"}})
    other = load_book({"b": {"usd_per_call": "2.0"}, "a": mine})
    assert one.digest == other.digest != shipped_book().digest
    assert one.digest == hashlib.sha256(one.raw).hexdigest()


def test_the_same_book_answers_the_same_from_its_bytes_alone() -> None:
    book = load_book({"mine": {"usd_per_call": "1"}, "ceiling": {"usd_per_call": "9"}})
    again = PriceBook(book.raw)
    for asked in (("openai", "gpt-4o"), ("x", "mine"), ("x", "y"), ("", "claude-3-haiku")):
        assert again.find(*asked) == book.find(*asked) is not None


def test_a_book_that_was_in_force_is_found_again_by_its_digest(tmp_path: Path) -> None:
    book = load_book({"mine": {"usd_per_call": "1"}})
    path = keep(book, tmp_path)
    assert keep(book, tmp_path) == path
    found = kept(tmp_path, book.digest)
    assert found is not None
    assert found.raw == book.raw
    assert [each.name for each in path.parent.iterdir()] == [f"{book.digest}.json.gz"]
    assert kept(tmp_path, shipped_book().digest) is None
    assert kept(tmp_path, "../../etc/passwd") is None


def test_a_kept_book_that_was_changed_is_not_believed(tmp_path: Path) -> None:
    path = keep(load_book({"mine": {"usd_per_call": "1"}}), tmp_path)
    path.write_bytes(gzip.compress(load_book({"mine": {"usd_per_call": "0.1"}}).raw))
    with pytest.raises(Misconfigured, match="is not the book that it is named for"):
        kept(tmp_path, path.name.removesuffix(".json.gz"))


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{}", b"[1]", b"\x1f\x8b\x08 torn", gzip.compress(b"{", mtime=0)[:-9],
        b'{"v":2,"source":"x","as_of":"2026-12-01","providers":{}}', b" " * (BOOK_BYTES_MAX + 1),
    ],
)  # fmt: skip
def test_what_is_no_book_is_refused_by_its_file(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    path.write_bytes(raw)
    with pytest.raises(Misconfigured, match=r"book\.json"):
        read_book(path)


def test_no_book_is_read_by_a_process_that_prices_nothing() -> None:
    code = (
        "import sys, web.app; from engine.prices.book import shipped_book; sys.exit(shipped_book.cache_info().currsize)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_catalogues_package_is_needed_by_nobody_who_does_not_import_a_book() -> None:
    code = "import sys, web.app, commonpurse.commands.prices; sys.exit('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_examples_of_the_operating_guide_are_prices_that_are_taken() -> None:
    guide = (ROOT / "docs" / "operating.md").read_text()
    (example,) = [part for part in guide.split("```toml\n")[1:] if "[prices." in part]
    toml, said = example.split("```", 1)
    book = load_book(parse_toml(toml).local.prices)
    assert book.find("openai", "my-model") is not None
    assert book.find("cloudflare", "@cf/acme/draw") is not None
    assert all(f"`{name}`" in said or f"{name} =" in toml for name in FIELDS)
