"""Guarded routes at their edges: who may call, what a body may be, and what an operator's tables may say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
import pytest_asyncio
from desk_client import KEY
from guarded import ASKED, CHAT, OverOpenAI, Scripted, completion, over_openai, scripted
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from providers.faults import HANGS_BEFORE_ANSWER

from engine.core.plan import Budget, Plan
from engine.errors import Misconfigured
from engine.plan_file import parse_toml
from web import crowd
from web.proxy import bodies
from web.proxy.bodies import read_json
from web.proxy.upstreams import read_upstreams
from web.settings import from_environment


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def answered() -> AsyncIterator[Scripted]:
    """Over a provider that takes everything."""
    async with scripted(Plan(budgets={"day": Budget("usd", 10**18)})) as guard:
        guard.upstream.answers(completion())
        yield guard


JSON = {"Content-Type": "application/json"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guard() -> AsyncIterator[OverOpenAI]:
    async with over_openai() as guard:
        yield guard


# --- who --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {}, {"Authorization": "Bearer wrong"}, {"x-api-key": "wrong"}, {"Authorization": "Basic eA=="},
        {"Authorization": "Bearer wrong", "x-api-key": KEY},
    ],
    ids=str,
)  # fmt: skip
async def test_who_has_no_key_of_this_wallet_is_refused_in_the_providers_words(
    guard: OverOpenAI, headers: dict[str, str]
) -> None:
    before = len(guard.fake.requests)
    heard = await guard.chat(key=None, headers=headers)
    assert (heard.status, heard["error"]["code"]) == (401, "invalid_api_key")
    assert heard.headers["x-should-retry"] == "false"
    assert len(guard.fake.requests) == before
    assert (await guard.desk.get("/openai/v1/models", key=None, headers=headers)).status == 401


async def test_the_key_may_stand_where_another_providers_clients_put_it(guard: OverOpenAI) -> None:
    assert (await guard.chat(key=None, headers={"x-api-key": KEY})).status == 200


async def test_where_holds_are_open_to_all_so_are_calls() -> None:
    async with over_openai(open=True) as guard:
        assert (await guard.chat(key=None)).status == 200
        assert (await guard.chat(key="sk-anything")).status == 200  # every official client sends some key
        assert (await guard.chat(key=f"{KEY}x")).status == 401


async def test_e9_nothing_in_a_call_says_who_is_asking(guard: OverOpenAI) -> None:
    headers = {"x-purse-user": "alice", "OpenAI-Organization": "org-1", "x-litellm-end-user-id": "bob"}
    await guard.chat({**ASKED, "user": "alice", "metadata": {"user": "alice", "key": "k"}}, headers=headers)
    assert guard.holds[-1].labels.keys() == {"provider", "model"}


# --- what -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "headers", "status", "code"),
    [
        (b"{", JSON, 400, "broken_json"),
        (b"", JSON, 400, "broken_json"),
        (b"\xff", JSON, 400, "broken_json"),
        (b"[]", JSON, 400, "invalid"),
        (b"NaN", JSON, 400, "broken_json"),
        (b"[" * 100_000, JSON, 400, "broken_json"),
        (b'{"model":"a","model":"b"}', JSON, 400, "invalid"),
        (b"model=a", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "not_json"),
        (b"{}", {**JSON, "Content-Encoding": "gzip"}, 415, "encoded"),
    ],
    ids=["cut", "empty", "no-utf8", "list", "nan", "deep", "twice", "form", "gzip"],
)
async def test_a_body_that_is_none_is_refused(
    guard: OverOpenAI, raw: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    before = len(guard.purse.asked)
    heard = await guard.desk.send("POST", CHAT, data=raw, headers=headers)
    assert (heard.status, heard["error"]["code"]) == (status, code)
    assert len(guard.purse.asked) == before


async def test_a_body_has_a_largest_size_whether_it_says_its_size_or_not(guard: OverOpenAI) -> None:
    large = json.dumps({**ASKED, "x": "y" * bodies.BODY_BYTES_MAX}).encode()

    async def in_pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(large), 1 << 20):
            yield large[start : start + (1 << 20)]

    for data in (BytesIO(large), in_pieces()):
        heard = await guard.desk.send("POST", CHAT, data=data, headers=JSON)
        assert (heard.status, heard["error"]["code"]) == (413, "too_large")
    assert (await guard.desk.send("POST", "/v1/holds", data=BytesIO(large), headers=JSON)).status == 413


async def test_a_body_of_some_megabytes_is_taken(guard: OverOpenAI) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * (7 << 20)}}
    body = json.dumps({**ASKED, "messages": [{"role": "user", "content": [image]}]}).encode()
    heard = await guard.desk.send("POST", CHAT, data=BytesIO(body), headers=JSON)
    assert heard.status == 200


async def test_the_bodies_inside_have_a_bound_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many strangers bring large prompts, the process does not run out of memory."""
    async with over_openai(fault=HANGS_BEFORE_ANSWER) as guard:
        first = asyncio.create_task(guard.chat())
        await (await guard.fake.request()).paused.wait()
        monkeypatch.setattr(crowd, "BYTES_INSIDE_MAX", len(json.dumps(ASKED)) * 3 // 2)
        heard = await guard.chat()
        assert (heard.status, heard["error"]["code"], heard.headers["Retry-After"]) == (503, "overloaded", "2")
        guard.fake.go.set()
        assert (await first).status == 200
        assert (await guard.chat()).status == 200
        assert len(guard.fake.requests) == 2


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("gpt-4o-mini")
names = st.sampled_from(
    ["model", "messages", "role", "content", "type", "text", "max_tokens", "n", "stream", "stream_options", "tools",
     "function", "name", "parameters", "input", "instructions", "image_url", "url", "service_tier", "audio"]
) | st.text(max_size=4)  # fmt: skip
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=8
)
PATHS = (CHAT, "/openai/v1/responses", "/openai/v1/embeddings")


@given(path=st.sampled_from(PATHS), body=st.dictionaries(names, values, max_size=6), model=st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
async def test_whatever_is_sent_the_answer_is_a_clear_one_and_nothing_stays_held(
    answered: Scripted, path: str, body: dict[str, Any], model: bool
) -> None:
    raw = json.dumps({**body, **({"model": "gpt-4o-mini"} if model else {})}).encode()
    async with answered.desk.client.post(path, data=raw, headers={**JSON, "Authorization": f"Bearer {KEY}"}) as answer:
        said = await answer.read()
        assert answer.status < 500, (said, raw)
        assert answer.status < 400 or json.loads(said)["error"]["message"]
    assert not answered.purse.wallet.open


# --- the operator's tables --------------------------------------------------------------------------------------------

KEYS = {"THE_KEY": "sk-of-the-operator"}
TABLE = 'base_url = "https://api.example.org/v1/"\nkey_env = "THE_KEY"\n'


def upstreams(text: str, environment: dict[str, str] = KEYS) -> Any:
    return read_upstreams(parse_toml(text).local.upstreams, environment)


def test_a_table_says_where_calls_go() -> None:
    found = upstreams(
        f"[upstreams.openai]\n{TABLE}default_max_tokens = 1000\nconnect_s = 3\nidle_s = 30.5\n"
        '[upstreams.openai.cheaper]\n"gpt-4o" = "gpt-4o-mini"\n'
    )["openai"]
    assert (found.base_url, found.key, found.provider) == ("https://api.example.org/v1", KEYS["THE_KEY"], "openai")
    assert (found.default_max_tokens, found.connect_s, found.idle_s) == (1000, 3, 30.5)
    assert found.cheaper == {"gpt-4o": "gpt-4o-mini"}
    assert upstreams(f'[upstreams.openai]\n{TABLE}provider = "openrouter"\n')["openai"].provider == "openrouter"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"[upstreams.opanai]\n{TABLE}", "upstreams.opanai: unknown"),
        ("[upstreams.openai]\n" + TABLE.replace("https", "ftp"), "upstreams.openai.base_url: expected an address"),
        ("[upstreams.openai]\n" + TABLE.replace("api.", "u:p@api."), "upstreams.openai.base_url: expected no"),
        ("[upstreams.openai]\n" + TABLE.replace("/v1/", "/v1?x=1"), "upstreams.openai.base_url: expected no"),
        ("[upstreams.openai]\n" + TABLE.replace("THE_KEY", "NO_KEY"), "upstreams.openai.key_env: the env"),
        ('[upstreams.openai]\nkey_env = "THE_KEY"\n', "upstreams.openai: Object missing required field base_url"),
        (f"[upstreams.openai]\n{TABLE}max_tokens = 5\n", "upstreams.openai: Object contains unknown field max_tokens"),
        (f"[upstreams.openai]\n{TABLE}idle_s = 0\n", "upstreams.openai: Expected float > 0"),
        (f"[upstreams.openai]\n{TABLE}default_max_tokens = 0\n", "upstreams.openai: Expected int >= 1"),
        ('upstreams = { openai = "x" }\n', "upstreams.openai: Expected object"),
    ],
)  # fmt: skip
def test_e16_a_table_that_cannot_work_is_refused_at_the_start(text: str, place: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        upstreams(text)
    assert str(caught.value).startswith(place)


def test_a_key_is_never_part_of_an_error() -> None:
    with pytest.raises(Misconfigured) as caught:
        upstreams(f"[upstreams.openai]\n{TABLE}", {"THE_KEY": "sk-\u00e4\n"})
    assert "sk-" not in str(caught.value)


def test_e16_a_web_process_does_not_start_without_a_key_that_its_file_names(tmp_path: Any) -> None:
    file = tmp_path / "purse.toml"
    file.write_text(f"[upstreams.openai]\n{TABLE}")
    with pytest.raises(Misconfigured, match="THE_KEY"):
        from_environment({"PURSE_CONFIG": str(file)})
    found = from_environment({"PURSE_CONFIG": str(file), **KEYS})
    assert KEYS["THE_KEY"] not in repr(found)
    assert found.upstreams["openai"].key == KEYS["THE_KEY"]


async def test_e16_a_provider_that_is_not_set_up_says_so() -> None:
    from desk_client import open_desk

    async with open_desk() as desk:
        heard = await desk.post("/workers-ai/v1/chat/completions", ASKED)
        assert heard.status == 404
        assert "[upstreams.workers-ai]" in str(heard.body)


# --- what an upstream sends -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        '{"a": 1, "a": 2}', "[0.1, 1e5, 1E-400, -0.0, 18446744073709551616, 1e999999]", '"\\ud800"', '{"a": "\ud800"}',
        "[Infinity]", '"\\ud83d\\ude00"', "  {} ",
    ],
)  # fmt: skip
def test_what_an_upstream_says_is_read_with_exact_numbers_and_half_characters(raw: str) -> None:
    """A chunk of a stream that cannot be read is not counted: we read no less than Python does."""
    wanted = json.loads(raw, parse_float=Decimal)
    assert repr(read_json(raw)) == repr(wanted)


@pytest.mark.parametrize("raw", ["", "{", "[01]", "\ufeff{}", b"\xff", "[" * 100_000])
def test_what_is_no_json_is_nothing(raw: str | bytes) -> None:
    assert read_json(raw) is None
