"""F: prices. A call costs what its model costs where it is served, and what has no price is not called."""

import pytest

from engine.errors import Misconfigured
from engine.prices import Price, Usage, cost, load_book, worst

LLAMA = "@cf/meta/llama-3.1-8b-instruct"


def price(provider: str, model: str) -> Price:
    found = load_book().find(provider, model)
    assert found is not None
    return found


def test_f1_half_of_a_price_makes_no_model_free() -> None:
    for half in ({"input_usd_per_mtok": "1"}, {"output_usd_per_mtok": "1"}, {"cache_read_usd_per_mtok": "1"}, {}):
        with pytest.raises(Misconfigured, match=r'prices\."mine"'):
            load_book({"mine": half})


def test_f1_only_a_written_zero_is_free() -> None:
    free = load_book({"mine": {"input_usd_per_mtok": "0", "output_usd_per_mtok": "0"}}).find("openai", "mine")
    assert free is not None
    assert free.free
    assert worst(free, input_tokens=1000, output_tokens=1000) == {"usd": 0}


def test_f2_an_unknown_model_has_no_price() -> None:
    assert load_book().find("openai", "gpt-99") is None


def test_f2_with_a_stated_ceiling_an_unknown_model_costs_that() -> None:
    book = load_book({"ceiling": {"input_usd_per_mtok": "100", "output_usd_per_mtok": "600"}})
    found = book.find("openai", "gpt-99")
    assert found is not None
    assert cost(found, Usage(input_tokens=10, output_tokens=10)) == {"usd": 10 * 100_000 + 10 * 600_000}


@pytest.mark.parametrize("slip", ["claude-opus-4.11", "claude-opus-41", "claude-opus-4-1-thinking", "cluade-opus-4-1"])
def test_f3_a_misspelt_model_has_no_price(slip: str) -> None:
    assert price("anthropic", "claude-opus-4.1").model == "claude-opus-4-1"
    assert load_book().find("anthropic", slip) is None


@pytest.mark.parametrize("per_token", ["0.0000025", "0.00001", "0.0006"])
def test_f4_a_price_per_token_is_refused_where_one_per_million_is_meant(per_token: str) -> None:
    with pytest.raises(Misconfigured, match="Prices are dollars for a million tokens here"):
        load_book({"mine": {"input_usd_per_mtok": per_token, "output_usd_per_mtok": "1"}})


def test_f4_a_price_of_a_million_millions_is_refused_too() -> None:
    with pytest.raises(
        Misconfigured, match=r'2500000 cannot be dollars for a million tokens: expected "0" or 0\.001 to 10000'
    ):
        load_book({"mine": {"input_usd_per_mtok": "2500000", "output_usd_per_mtok": "1"}})


def test_f6_cached_tokens_cost_the_price_of_reading_the_cache() -> None:
    usage = Usage(input_tokens=100_000, cache_read_tokens=95_000, output_tokens=1_000)
    assert cost(price("anthropic", "claude-3-5-sonnet"), usage) == {"usd": 5_000 * 3000 + 95_000 * 300 + 1_000 * 15_000}


def test_f9_tokens_of_images_and_sound_have_their_own_prices() -> None:
    image = cost(price("openai", "gpt-image-1"), Usage(input_tokens=1000, input_image_tokens=900))
    assert image == {"usd": 100 * 5_000 + 900 * 10_000}
    sound = cost(price("openai", "gpt-audio"), Usage(output_tokens=1000, output_audio_tokens=900))
    assert sound == {"usd": 100 * 10_000 + 900 * 64_000}


def test_f10_a_model_costs_what_it_costs_where_it_is_served() -> None:
    usage = Usage(input_tokens=1000, output_tokens=1000)
    model = "anthropic.claude-haiku-4-5-20251001-v1:0"
    assert cost(price("aws", f"global.{model}"), usage) == {"usd": 6_000_000}
    assert cost(price("aws", f"eu.{model}"), usage) == {"usd": 6_600_000}
    assert cost(price("anthropic", "claude-haiku-4-5"), usage) == {"usd": 6_000_000}
    assert load_book().find("openai", "claude-haiku-4-5") is None


def test_f11_a_hold_in_neurons_has_a_margin_for_what_was_measured() -> None:
    documented = cost(price("cloudflare", LLAMA), Usage(input_tokens=800, output_tokens=400))["neurons"]
    held = worst(price("cloudflare", LLAMA), input_tokens=800, output_tokens=400)["neurons"]
    assert held >= documented * 1728 // 576 - 2  # which are the roundings of the documented figure, three times


def test_f11_the_figure_that_the_provider_reports_is_what_is_settled() -> None:
    reported = Usage(input_tokens=800, output_tokens=400, neurons=172_800_000)
    assert cost(price("cloudflare", LLAMA), reported)["neurons"] == 172_800_000
