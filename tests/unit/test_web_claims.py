"""Who a caller is follows from its key: whatever else claims to be somebody, on any route, changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from desk_client import DOLLAR, KEY, NEURON, Desk, open_desk
from guarded import ASKED, CHAT, Guarded, over_openai, scripted
from providers.fake_workers_ai import BGE, LLAMA

from engine.core.messages import Hold, Settle
from engine.core.plan import Budget, Plan
from engine.plan_file import DEFAULT_PLAN
from web import ask_box, builtin
from web.ask_settings import AskSettings
from web.keys import make_key
from web.proxy.routes import GUARDED

HOLD = {"amounts": {"usd": "0.1"}, "labels": {"provider": "jev"}}


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


async def labels_on_stream(desk: Desk, key: str, body: Mapping[str, object] = HOLD, **more: Any) -> dict[str, str]:
    answer = await desk.post("/v1/holds", body, key=key, **more)
    assert answer.status == 201, answer.body
    ask = desk.purse.asked[-1]
    assert isinstance(ask, Hold)
    return ask.labels


async def test_a_hold_carries_what_its_key_says_and_where_it_comes_from(desk: Desk) -> None:
    key, id = await desk.new_key(user="alice", cohort="premium", labels={"team": "x", "provider": "jev"})
    labels = await labels_on_stream(desk, key, {"amounts": {"usd": "0.1"}, "labels": {"provider": "other", "run": "7"}})
    origin = labels.pop("origin")
    assert labels == {"user": "alice", "key": id, "cohort": "premium", "team": "x", "provider": "jev", "run": "7"}
    assert len(origin) == 16
    assert "127.0.0.1" not in origin
    again = await labels_on_stream(desk, key)
    assert again["origin"] == origin


async def test_an_origin_is_the_same_for_one_address_and_another_for_another() -> None:
    async with open_desk(trusted_proxies=("127.0.0.0/8",)) as desk:
        key, _ = await desk.new_key()
        origins = []
        for address in ("192.0.2.1", "192.0.2.2", "192.0.2.1", "2001:db8::1", "2001:db8::2"):
            labels = await labels_on_stream(desk, key, headers={"X-Forwarded-For": address})
            origins.append(labels["origin"])
        a, b, c, d, e = origins
        assert (a == c, a != b, d == e, d not in (a, b)) == (True, True, True, True)
        assert "192.0.2" not in str(desk.purse.asked)


async def test_a_settle_of_an_unknown_hold_counts_to_its_key(desk: Desk) -> None:
    key, id = await desk.new_key(user="alice")
    settle = {"amounts": {"jpy": "30"}, "labels": {"provider": "jev"}}
    stray = await desk.post("/v1/holds/lost/settle", settle, key=key)
    assert stray["outcome"] == "stray"
    ask = desk.purse.asked[-1]
    assert isinstance(ask, Settle)
    assert ask.labels == {"provider": "jev", "user": "alice", "key": id}
    assert desk.purse.wallet.meters()["user-daily", "alice", "2026-11-30"][0] == 30 * 10**6


async def test_a_key_made_to_name_users_may_name_them_and_nothing_more(desk: Desk) -> None:
    key, id = await desk.new_key(user="app", names=["user", "cohort"])
    named = await labels_on_stream(desk, key, {**HOLD, "labels": {"user": "bob", "cohort": "trial"}})
    assert (named["user"], named["cohort"], named["key"]) == ("bob", "trial", id)
    assert (await labels_on_stream(desk, key))["user"] == "app"
    for label in ("key", "origin"):
        refused = await desk.post("/v1/holds", {**HOLD, "labels": {label: "x"}}, key=key)
        assert (refused.status, refused["field"]) == (400, f"labels.{label}")
    only_user, _ = await desk.new_key(names=["user"])
    refused = await desk.post("/v1/holds", {**HOLD, "labels": {"cohort": "x"}}, key=only_user)
    assert (refused.status, refused["field"]) == (400, "labels.cohort")


CLAIMS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/holds", {"json": {**HOLD, "labels": {label: "mallory"}}}) for label in ("user", "key", "cohort", "origin")
] + [
    ("/v1/holds/own/settle", {"json": {"amounts": {"usd": "0.1"}, "labels": {label: "mallory"}}})
    for label in ("user", "key", "cohort", "origin")
] + [
    ("/v1/holds:batch", {"json": {"asks": [{"ask": "hold", **HOLD, "labels": {label: "mallory"}}]}})
    for label in ("user", "key", "cohort", "origin")
] + [
    ("/v1/holds", {"json": {**HOLD, field: "mallory"}}) for field in ("user", "key", "cohort", "metadata", "namespace")
]  # fmt: skip

HEADERS = (
    "x-user", "x-purse-user", "openai-user", "OpenAI-Organization", "x-purse-key", "x-purse-cohort", "x-purse-origin",
    "x-purse-labels", "x-litellm-end-user-id", "helicone-user-id", "cf-aig-metadata", "x-api-user", "x-forwarded-user",
    "remote-user", "x-purse-provider", "x-provider",
)  # fmt: skip


@pytest.mark.parametrize(("path", "sent"), CLAIMS)
async def test_e9_whoever_claims_to_be_somebody_in_a_body_is_refused(
    desk: Desk, path: str, sent: dict[str, Any]
) -> None:
    key, _ = await desk.new_key(user="alice", cohort="premium")
    refused = await desk.send("POST", path, key=key, **sent)
    assert refused.status == 400
    assert desk.purse.asked == []


@pytest.mark.parametrize("header", HEADERS)
async def test_e9_a_header_or_query_that_claims_somebody_changes_nothing(desk: Desk, header: str) -> None:
    key, _ = await desk.new_key(user="alice", cohort="premium")
    plain = await labels_on_stream(desk, key)
    claimed = await desk.post(f"/v1/holds?{header}=mallory&user=mallory", HOLD, key=key, headers={header: "mallory"})
    assert claimed.status == 201
    assert desk.purse.asked[-1].labels == plain  # type: ignore[union-attr]


async def test_e1_a_key_is_the_same_caller_in_whichever_header_it_comes() -> None:
    plan = Plan(budgets={"day": Budget("usd", DOLLAR), "mine": Budget("usd", 1, each="user")})
    async with scripted(plan) as guard:
        key, id = await guard.desk.new_key(user="alice")
        for headers in ({"Authorization": f"Bearer {key}"}, {"x-api-key": key}):
            refused = await guard.desk.post("/anthropic/v1/messages", MESSAGE, key=None, headers=headers)
            assert refused.status == 400, refused.body
            assert (guard.holds[-1].labels["user"], guard.holds[-1].labels["key"]) == ("alice", id)
        wrong = {"Authorization": f"Bearer {make_key()[1]}", "x-api-key": key}
        assert (await guard.desk.post("/anthropic/v1/messages", MESSAGE, key=None, headers=wrong)).status == 401


@pytest.mark.parametrize("role", ["spend", "admin"])
async def test_e11_no_role_makes_a_key_exempt(desk: Desk, role: str) -> None:
    key, _ = await desk.new_key(role, labels={"provider": "jev"} if role == "spend" else None)
    refused = await desk.post("/v1/holds", {"amounts": {"usd": "4.77"}, "labels": {"provider": "jev"}}, key=key)
    assert (refused.status, refused["why"]) == (400, "never")


EMBEDDING = {"model": "text-embedding-3-small", "input": "hello"}
RESPONSE = {"model": "gpt-4o-mini", "input": "hello", "max_output_tokens": 100}
MESSAGE = {"model": "claude-haiku-4-5", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
CALLS: dict[str, tuple[dict[str, Any], str, str]] = {
    # body, provider, model
    CHAT: (ASKED, "openai", "gpt-4o-mini"),
    "/openai/v1/responses": (RESPONSE, "openai", "gpt-4o-mini"),
    "/openai/v1/embeddings": (EMBEDDING, "openai", "text-embedding-3-small"),
    "/anthropic/v1/messages": (MESSAGE, "anthropic", "claude-haiku-4-5"),
    f"/workers-ai/run/{LLAMA}": ({"prompt": "hello", "max_tokens": 50}, "cloudflare", LLAMA),
    "/workers-ai/v1/chat/completions": ({**ASKED, "model": LLAMA}, "cloudflare", LLAMA),
    "/workers-ai/v1/embeddings": ({"model": BGE, "input": "hello"}, "cloudflare", BGE),
}
CLAIMED: dict[str, dict[str, Any]] = {
    "user": {"user": "mallory"},
    "metadata": {"metadata": {"user": "mallory", "user_id": "mallory", "key": "k", "cohort": "free", "provider": "p"}},
    "safety": {"safety_identifier": "mallory"},
    "labels": {"labels": {"user": "mallory", "provider": "p"}},
    "provider": {"provider": "p", "cohort": "free", "origin": "o"},
}
PRICED_BUDGETS = Plan(budgets={"day": Budget("usd", DOLLAR), "neurons": Budget("neurons", 10_000 * NEURON)})


def test_every_address_that_spends_is_tried() -> None:
    addresses = {path.replace("{model:.+}", LLAMA) for path, _ in GUARDED}
    assert addresses == set(CALLS)


@pytest.mark.parametrize("claim", CLAIMED)
@pytest.mark.parametrize("path", CALLS)
async def test_e9_nothing_in_a_guarded_call_changes_whose_it_is_or_to_whom_it_goes(path: str, claim: str) -> None:
    body, provider, model = CALLS[path]
    async with scripted(PRICED_BUDGETS) as guard:
        guard.upstream.answers({"error": {"message": "no"}}, status=400)
        key, id = await guard.desk.new_key(user="alice", cohort="premium", labels={"team": "x", "provider": "cheap"})
        headers = dict.fromkeys(HEADERS, "mallory")
        query = "?user=mallory&provider=p&cohort=free"
        await guard.desk.post(path + query, {**body, **CLAIMED[claim]}, key=key, headers=headers)
        await guard.desk.post(path, body, key=key)
        for hold in guard.holds:
            labels = dict(hold.labels)
            assert len(labels.pop("origin")) == 16
            assert labels == {
                "user": "alice", "key": id, "cohort": "premium", "team": "x", "provider": provider, "model": model,
            }  # fmt: skip
        assert guard.holds, "the plain call at least was held"


@pytest.mark.parametrize("field", ["user", "key", "cohort", "provider", "model", "labels", "metadata", "max_tokens"])
async def test_e9_a_question_of_the_page_is_nobodys_whatever_it_claims(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtin, "WORD_S", 0.0)
    async with open_desk(DEFAULT_PLAN, ask=AskSettings("built-in", builtin.MODEL, max_tokens=3)) as desk:
        key, _ = await desk.new_key(user="alice", cohort="premium")
        claimed = await desk.post(ask_box.PATH, {"question": "hello", field: "mallory"}, key=None)
        assert claimed.status == 400
        assert desk.purse.asked == []
        headers = {**dict.fromkeys(HEADERS, "mallory"), f"x-{field}": "mallory"}
        for bears in (None, key):
            plain = await desk.post(
                f"{ask_box.PATH}?{field}=mallory", {"question": "hello"}, key=bears, headers=headers
            )
            assert plain.status == 200
        holds = [ask for ask in desk.purse.asked if isinstance(ask, Hold)]
        assert [hold.labels for hold in holds] == [{"provider": "jev", "model": builtin.MODEL}] * 2


async def test_a_guarded_call_is_in_its_keys_namespace_and_its_caller_sees_its_own_id() -> None:
    async with over_openai() as guard:
        key, id = await guard.desk.new_key()
        answer = await guard.chat(key=key, headers={"Idempotency-Key": "call-1", "x-stainless-retry-count": "2"})
        assert (answer.status, answer.headers["x-purse-hold"]) == (200, "call-1:2")
        assert guard.holds[-1].id == f"{id}/call-1:2"
        await guard.settled()
        assert guard.last.hold == f"{id}/call-1:2"


async def test_a_refused_guarded_call_names_its_callers_own_id() -> None:
    async with over_openai(Plan(budgets={"day": Budget("usd", 1)})) as guard:
        key, _ = await guard.desk.new_key()
        answer = await guard.chat(key=key, headers={"Idempotency-Key": "call-1"})
        assert answer["error"]["metadata"]["hold"] == "call-1"


async def test_an_estimate_tells_amounts_to_whoever_has_a_key() -> None:
    async with over_openai() as guard:
        await first_status(guard)
        key, _ = await guard.desk.new_key()
        body = {"model": "gpt-4o-mini", "input": "hello"}
        assert "amounts" in (await guard.desk.post("/v1/estimate", body, key=key)).body
        assert "amounts" not in (await guard.desk.post("/v1/estimate", body, key=None)).body


async def first_status(guard: Guarded) -> None:
    await guard.purse.show()


async def test_an_auditor_sees_amounts_and_a_spender_shares(desk: Desk) -> None:
    auditor, _ = await desk.new_key("audit")
    spender, _ = await desk.new_key()
    seen = [(await desk.get("/v1/status", key=key))["budgets"][0] for key in (KEY, auditor, spender, None)]
    assert ["limit" in budget for budget in seen] == [True, True, False, False]
