"""The bounds of what goes into a call are bounds: never below what providers say they count."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable

import pytest
import toktok
from hypothesis import given, settings
from hypothesis import strategies as st

from web.proxy import tokens
from web.proxy.intake import Intake

GPT = "gpt-4o-2024-08-06"
CLAUDE = "claude-sonnet-4-5-20250929"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"


@pytest.fixture(scope="module", autouse=True)
def tokenizers() -> None:
    """As in a web process that guards calls."""
    assert tokens.load()


def counted(text: str, encoding: str = "o200k_base") -> int:
    count: int = toktok.batch_count([text], encoding, threads=1)[0]
    return count


# --- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("chatgpt-4o-latest", "o200k_base"),
        ("gpt-4.1-nano", "o200k_base"),
        ("gpt-5.4-mini", "o200k_base"),
        ("o3", "o200k_base"),
        ("o1-pro", "o200k_base"),
        ("openai/gpt-4o", "o200k_base"),
        ("ft:gpt-4o-mini-2024-07-18:acme::1", "o200k_base"),
        ("@cf/openai/gpt-oss-20b", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-4-0613", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("text-embedding-3-small", "cl100k_base"),
        ("text-embedding-ada-002", "cl100k_base"),
        (CLAUDE, None),
        (LLAMA, None),
        ("gpt-6-luna", None),
        ("o365-clone", None),
        ("my-gpt-4o", None),
    ],
)
def test_a_model_is_counted_by_its_own_tokenizer_only_where_that_is_known(model: str, encoding: str | None) -> None:
    assert tokens.encoding_of(model) == encoding


@settings(deadline=None)
@given(st.text(), st.sampled_from(["gpt-4o", "gpt-4"]))
def test_a_text_is_counted_exactly_where_the_tokenizer_is_public(text: str, model: str) -> None:
    encoding = tokens.encoding_of(model)
    assert encoding is not None
    assert tokens.bound([text], model) == counted(text, encoding) <= len(text.encode())


@settings(deadline=None)
@given(st.text(), st.sampled_from(["NFC", "NFKC"]))
def test_no_text_has_more_bytes_than_its_bound_in_a_form_that_tokenizers_use(text: str, form: str) -> None:
    bound = tokens.bound([text], CLAUDE)
    assert bound >= len(text.encode())
    assert bound >= len(unicodedata.normalize(form, text).encode())


def test_every_character_is_within_its_bound_also_in_its_longer_form() -> None:
    for char in map(chr, [*range(0xD800), *range(0xE000, 0x110000)]):
        assert tokens.bytes_bound(char) >= len(unicodedata.normalize("NFKC", char).encode()), hex(ord(char))


def test_plain_text_is_its_bytes_where_the_tokenizer_is_not_public() -> None:
    assert tokens.bound(["hello", "wörld", ""], CLAUDE) == 5 + 6


def test_half_of_a_character_is_no_error() -> None:
    assert tokens.bound(["\ud800"], GPT) == tokens.bound(["\ud800"], CLAUDE) == 3


@settings(deadline=None)
@given(st.text(min_size=1, max_size=20), st.integers(1, 200_000))
def test_a_long_text_in_pieces_is_never_counted_lower_than_whole(text: str, times: int) -> None:
    long = (text * times)[:200_000]
    assert tokens.bound([long], GPT) >= counted(long)


def test_very_many_texts_are_bounded_by_their_bytes() -> None:
    many = ["word"] * (tokens.TEXTS_EXACT_MAX + 1)
    assert tokens.bound(many, GPT) == 4 * len(many)
    assert tokens.bound(many[1:], GPT) == len(many) - 1


def test_special_tokens_in_a_text_are_counted_as_the_text_they_look_like() -> None:
    special: int = toktok.batch_count(["<|endoftext|>"], "o200k_base", with_special=True)[0]
    assert tokens.bound(["<|endoftext|>"], GPT) > special


def test_what_is_not_loaded_at_the_start_is_bounded_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_loaded", {})
    assert tokens.bound(["hello world"], GPT) == 11


def test_without_the_tokenizers_wheel_nothing_is_loaded_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_loaded", {})
    monkeypatch.setitem(sys.modules, "toktok", None)
    assert tokens.load() is False
    assert tokens.bound(["hello world"], GPT) == 11


# --- messages and tools, by the formulas that OpenAI publishes --------------------------------------------------------

_words = st.text(max_size=60) | st.text(alphabet="abc ,.", max_size=200)
_names = st.text(alphabet="abcdefgh_", min_size=1, max_size=20)
_messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": _words})
    | st.fixed_dictionaries({"role": st.just("user"), "content": _words, "name": _names}),
    max_size=6,
)


def published_for_messages(messages: list[dict[str, str]]) -> int:
    """The cookbook's: 3 a message, its values, 1 for a name, 3 that begin the answer."""
    return 3 + sum(3 + ("name" in message) + sum(map(counted, message.values())) for message in messages)


@settings(deadline=None)
@given(_messages)
def test_messages_are_at_least_what_openai_publishes(messages: list[dict[str, str]]) -> None:
    intake = Intake(GPT)
    intake.messages(messages)
    published = published_for_messages(messages)
    assert published <= intake.most_tokens()
    assert intake.most_tokens() <= published + tokens.CALL_TOKENS_MAX + 64 * (len(messages) + 1)


def test_every_message_brings_its_frame() -> None:
    empty = {"role": "user", "content": ""}
    one, hundred = taken(GPT, messages=[empty]), taken(GPT, messages=[empty] * 100)
    assert hundred.more_tokens == 100 * one.more_tokens >= 100 * tokens.MESSAGE_TOKENS_MAX


_property = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "number"]), "description": _words},
    optional={"enum": st.lists(_names, min_size=1, max_size=4)},
)
_tools = st.lists(
    st.fixed_dictionaries(
        {
            "name": _names,
            "description": _words,
            "parameters": st.fixed_dictionaries({"properties": st.dictionaries(_names, _property, max_size=4)}),
        }
    ),
    min_size=1,
    max_size=3,
)


def published_for_tools(functions: list[dict[str, object]]) -> int:
    """The cookbook's for gpt-4 (the larger one): 10 and 12 a function, 3 a property, 3 a choice less 3."""
    total = 0
    for function in functions:
        total += 10 + counted(f"{function['name']}:{str(function['description']).removesuffix('.')}")
        parameters = function["parameters"]
        assert isinstance(parameters, dict)
        properties = parameters["properties"]
        total += 3 if properties else 0
        for key, value in properties.items():
            total += 3
            if "enum" in value:
                total += -3 + sum(3 + counted(choice) for choice in value["enum"])
            total += counted(f"{key}:{value['type']}:{value['description'].removesuffix('.')}")
        total += 12
    return total


@settings(deadline=None)
@given(_tools)
def test_tools_are_at_least_what_openai_publishes(functions: list[dict[str, object]]) -> None:
    intake = Intake(GPT, more_tokens=0)
    intake.tools([{"type": "function", "function": function} for function in functions])
    without_the_prompt = intake.most_tokens() - tokens.TOOLS_TOKENS_MAX
    assert published_for_tools(functions) <= without_the_prompt


def test_a_tool_that_the_provider_describes_has_a_constant_of_its_own() -> None:
    intake = Intake(CLAUDE, more_tokens=0)
    intake.tools([{"type": "bash_20250124", "name": "bash"}])
    assert intake.most_tokens() >= 346 + 245


# --- images, by the formulas that providers publish -------------------------------------------------------------------

_sides = st.integers(1, 20_000)


def tiles(width: float, height: float) -> int:
    """OpenAI: into 2048 by 2048, then the shorter side to 768, then in squares of 512."""
    shrink = min(1, 2048 / max(width, height))
    width, height = width * shrink, height * shrink
    shrink = min(1, 768 / min(width, height))
    return -(-round(width * shrink) // 512) * -(-round(height * shrink) // 512)


@settings(deadline=None)
@given(_sides, _sides)
def test_no_image_is_more_than_its_bound_where_openai_counts_tiles(width: int, height: int) -> None:
    most = tiles(width, height)
    assert 85 + 170 * most <= tokens.image_tokens("gpt-4o")
    assert 2833 + 5667 * most <= tokens.image_tokens("gpt-4o-mini")
    assert 75 + 150 * most <= tokens.image_tokens("o1")
    assert 70 + 140 * most <= tokens.image_tokens("gpt-5")


@pytest.mark.parametrize(("model", "times"), [("gpt-4.1-mini", 162), ("gpt-4.1-nano", 246), ("o4-mini", 172)])
def test_no_image_is_more_than_its_bound_where_openai_counts_patches(model: str, times: int) -> None:
    assert -(-1536 * times // 100) <= tokens.image_tokens(model)


@settings(deadline=None)
@given(_sides, _sides, st.sampled_from([1568, 2576]))
def test_no_image_is_more_than_its_bound_at_anthropic(width: int, height: int, longest: int) -> None:
    """Anthropic: the longer side shrunk, then width times height by 750, at most 1,600 or 4,784."""
    shrink = min(1, longest / max(width, height))
    published = min(width * height * shrink * shrink / 750, 1_600 if longest == 1568 else 4_784)
    assert published <= tokens.image_tokens(CLAUDE)


def test_an_image_for_a_model_nobody_knows_has_the_largest_bound() -> None:
    known = ["gpt-4o", "gpt-4o-mini", "gpt-4.1-nano", "o1", CLAUDE, "@cf/meta/llama-3.2-11b-vision-instruct"]
    assert max(map(tokens.image_tokens, known)) <= tokens.image_tokens("somebodys-model") == tokens.IMAGE_TOKENS_MAX


# --- shapes -----------------------------------------------------------------------------------------------------------

BASE64 = "A" * 400_000


def taken(model: str, **body: object) -> Intake:
    intake = Intake(model, more_tokens=0)
    for name, value in body.items():
        getattr(intake, name)(value)
    return intake


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64}", "detail": "high"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{BASE64}"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}},
    ],
)
def test_the_bytes_of_an_image_are_not_text(part: dict[str, object]) -> None:
    intake = taken(GPT, messages=[{"role": "user", "content": [{"type": "text", "text": "What is it?"}, part]}])
    assert intake.images == 1
    assert intake.texts == ["user", "What is it?"]
    assert tokens.image_tokens(GPT) < intake.most_tokens() < tokens.image_tokens(GPT) + 100


def test_an_image_in_the_result_of_a_tool_is_an_image() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": BASE64}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "image", "source": source}]}
    intake = taken(CLAUDE, messages=[{"role": "user", "content": [result]}])
    assert intake.images == 1
    assert intake.most_tokens() < tokens.image_tokens(CLAUDE) + 200


@pytest.mark.parametrize(
    "part",
    [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": BASE64}},
        {"type": "input_file", "file_id": "file-1"},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": BASE64}},
    ],
)
def test_a_file_is_bounded_by_what_a_model_takes_at_all(part: dict[str, object]) -> None:
    intake = taken(GPT, messages=[{"role": "user", "content": [part]}])
    assert intake.files == 1
    assert intake.most_tokens() >= tokens.FILE_TOKENS_MAX


def test_a_document_of_plain_text_is_text() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "The whole story."}
    intake = taken(CLAUDE, messages=[{"role": "user", "content": [{"type": "document", "source": source}]}])
    assert intake.files == 0
    assert "The whole story." in intake.texts


def test_sound_is_counted_by_its_length() -> None:
    part = {"type": "input_audio", "input_audio": {"data": BASE64, "format": "mp3"}}
    intake = taken("gpt-4o-audio-preview", messages=[{"role": "user", "content": [part]}])
    seconds = 300_000 / 1000  # of the thinnest mp3: 8 kbit a second
    assert intake.audio
    assert 10 * seconds <= intake.more_tokens


CALL = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "look_up",
    "input": {"city": "Köln", "days": [1, 2, 3], "exact": True},
}


def test_the_call_of_a_tool_counts_every_name_and_value_of_its_arguments() -> None:
    intake = taken(CLAUDE, messages=[{"role": "assistant", "content": [CALL]}])
    assert {"look_up", "city", "Köln", "days", "3", "exact"} <= set(intake.texts)
    assert intake.most_tokens() >= len(json.dumps(CALL, ensure_ascii=False).encode())


def test_openai_calls_of_tools_count_too() -> None:
    function = {"name": "look_up", "arguments": '{"city":"Cologne"}'}
    call = {"id": "c1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert {"look_up", r"{\"city\":\"Cologne\"}"} <= set(taken(GPT, messages=[message]).texts)


def test_a_system_prompt_in_parts_is_text() -> None:
    parts = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert taken(CLAUDE, messages=parts).texts == ["Be brief."]


def test_input_may_be_a_text_or_several_or_tokens_already() -> None:
    assert taken(GPT, input="hello world").texts == ["hello world"]
    assert taken(GPT, input=["hello", "world"]).texts == ["hello", "world"]
    assert taken(GPT, input=[[1, 2, 3], [4]]).most_tokens() == 4


def test_input_of_the_responses_api_is_messages_and_items() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call_output", "call_id": "c1", "output": "42 degrees"},
    ]
    assert {"hello", "42 degrees"} <= set(taken(GPT, input=items).texts)


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(_json)
def test_whatever_goes_in_as_json_is_bounded_and_never_an_error(value: object) -> None:
    intake = Intake(GPT, more_tokens=0)
    intake.json(value)
    written = json.dumps(value, ensure_ascii=False)
    assert intake.most_tokens() >= counted(written)


_words_of_bodies = st.sampled_from(
    ["type", "content", "text", "source", "role", "output", "image", "document", "function"]
)
_bodies = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=5) | _words_of_bodies,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_words_of_bodies, inner, max_size=4),
    max_leaves=15,
)


@settings(deadline=None)
@given(_bodies)
def test_whatever_a_body_holds_is_read_without_an_error(value: object) -> None:
    intake = Intake(GPT)
    intake.messages(value)
    intake.input(value)
    intake.tools(value)
    assert intake.most_tokens() >= tokens.CALL_TOKENS_MAX


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"content": inner}, lambda inner: {"a": inner}])
def test_however_deep_it_is_nested_it_is_read(wrap: Callable[[object], object]) -> None:
    value: object = "deep down"
    for _ in range(50_000):
        value = wrap(value)
    for read in ("messages", "input", "tools"):
        assert "deep down" in taken(GPT, **{read: value}).texts
    part = {"type": "input_audio", "input_audio": value}
    assert taken(GPT, messages=[{"role": "user", "content": [part]}]).audio
