"""Each provider's report, read from a fake of it: what it says to the last digit, and what is no figure at all."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import aiohttp
import msgspec
import pytest
import pytest_asyncio
from providers import observed
from providers.observed import ACCOUNT, BELOW, KEY, Answer, Reports, packed, redirect, reports_at, says, silence, status

from projector.observers import fetch
from projector.observers.figures import exact_sum, smallest_parts
from projector.observers.kinds import KINDS, Name
from projector.observers.pages import PAGES_MAX
from projector.observers.running import source_of
from projector.observers.settings import ObserverSettings
from projector.observers.source import Source, Unreadable

TODAY, YESTERDAY = date(2026, 11, 30), date(2026, 11, 29)
NOON_S = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp())
LAST_NIGHT_S = NOON_S - 13 * 3600
BOTH = [YESTERDAY, TODAY]
NAMES: list[Name] = ["cloudflare", "openrouter", "openai", "anthropic"]
each_source = pytest.mark.parametrize("name", NAMES)
each_cost_report = pytest.mark.parametrize("name", ["openai", "anthropic"])


@pytest_asyncio.fixture(loop_scope="session")
async def reports() -> AsyncIterator[Reports]:
    async with reports_at(NOON_S) as reports:
        yield reports


@asynccontextmanager
async def reading(reports: Reports, name: Name, *, account: str | None = None, key: str = KEY) -> AsyncIterator[Source]:
    if account is None:
        account = ACCOUNT if name == "cloudflare" else ""
    settings = ObserverSettings(
        name="o", source=name, budget="b", account=account, every_s=30, base_url=reports.url + BELOW[name], key=key
    )
    async with fetch.open_session() as session:
        yield source_of(settings, session)


async def why(reports: Reports, name: Name, *, account: str | None = None, key: str = KEY) -> Unreadable:
    """Why there is no figure."""
    async with reading(reports, name, account=account, key=key) as source:
        with pytest.raises(Unreadable) as raised:
            await source.read([TODAY])
        return raised.value


# --- figures ----------------------------------------------------------------------------------------------------------


@each_source
async def test_it_says_what_the_account_has_used_today_whoever_used_it(reports: Reports, name: Name) -> None:
    reports.spend("1.25")
    reports.spend("0.123456789123", whose="somebody")
    reports.spend("40", at_s=LAST_NIGHT_S)
    async with reading(reports, name) as source:
        assert (await source.read([TODAY]))[TODAY] == Decimal("1.373456789123")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "openrouter"])
async def test_it_says_the_day_before_in_the_same_answer(reports: Reports, name: Name) -> None:
    reports.spend("1.25")
    reports.spend("40.5", at_s=LAST_NIGHT_S)
    async with reading(reports, name) as source:
        assert await source.read(BOTH) == {YESTERDAY: Decimal("40.5"), TODAY: Decimal("1.25")}
    assert len(reports.asked) == 1


@each_source
async def test_a_day_without_any_use_is_a_zero(reports: Reports, name: Name) -> None:
    async with reading(reports, name) as source:
        assert (await source.read([TODAY]))[TODAY] == 0


@each_source
async def test_what_is_not_shown_yet_comes_later(reports: Reports, name: Name) -> None:
    reports.lag_s = 365
    reports.spend("3")
    async with reading(reports, name) as source:
        assert (await source.read([TODAY]))[TODAY] == 0
        reports.now_s += 365
        assert (await source.read([TODAY]))[TODAY] == 3


async def test_a_number_is_read_digit_by_digit(reports: Reports) -> None:
    answer = b'{"data":{"usage_daily":0.30000000000000004,"usage":1}}'
    reports.faults = [says(answer), says(answer.replace(b"0.30000000000000004", b"1.5e-3"))]
    async with reading(reports, "openrouter") as source:
        assert await source.read([TODAY]) == {TODAY: Decimal("0.30000000000000004")}
        assert await source.read([TODAY]) == {TODAY: Decimal("0.0015")}


@pytest.mark.parametrize(
    ("figure", "scale", "parts"),
    [
        ("0", 9, 0), ("0.06", 9, 60_000_000), ("0.30000000000000004", 9, 300_000_001),
        ("4300.1234561", 6, 4_300_123_457), ("0.0000000001", 9, 1), ("1E+3", 6, 1_000_000_000),
        ("12", 0, 12), ("0e5", 0, 0),
    ],
)  # fmt: skip
def test_a_figure_between_two_smallest_parts_is_the_larger_one(figure: str, scale: int, parts: int) -> None:
    assert smallest_parts(Decimal(figure), scale=scale) == parts


def test_f11_neurons_count_as_the_account_measured_them_and_not_as_documented() -> None:
    """A public note: 57.6 neurons by the documentation, 172.8 measured for the same call."""
    assert smallest_parts(Decimal("172.8"), scale=6) == 172_800_000


@pytest.mark.parametrize("figure", ["-0.01", "1e99999", "1e-99999", "NaN", "Infinity", "9223372037", "-1e40"])
def test_what_no_bill_can_say_is_no_figure(figure: str) -> None:
    with pytest.raises(Unreadable):
        smallest_parts(Decimal(figure), scale=9)


def test_many_small_parts_add_up_to_the_last_digit() -> None:
    parts = [Decimal("0.0000000000000001")] * 9_999 + [Decimal(10**12)]
    assert exact_sum(parts) == Decimal("1000000000000.0000000000009999")


async def test_a_credit_lowers_the_sum_of_its_day(reports: Reports) -> None:
    reports.spend("5")
    reports.spend("-1.5")
    async with reading(reports, "anthropic") as source:
        assert await source.read([TODAY]) == {TODAY: Decimal("3.5")}


async def test_anthropic_speaks_in_cents(reports: Reports) -> None:
    reports.faults = [says(_anthropic([{"amount": "123.45", "currency": "USD"}]))]
    async with reading(reports, "anthropic") as source:
        assert await source.read([TODAY]) == {TODAY: Decimal("1.2345")}


# --- part of an account -----------------------------------------------------------------------------------------------


@each_cost_report
async def test_one_project_or_workspace_can_be_read_alone(reports: Reports, name: Name) -> None:
    reports.spend("2", whose="ours")
    reports.spend("3", whose="theirs")
    async with reading(reports, name, account="ours") as source:
        assert await source.read([TODAY]) == {TODAY: Decimal(2)}


async def test_the_default_workspace_has_no_id_and_can_be_read_all_the_same(reports: Reports) -> None:
    reports.spend("2", whose="default")
    reports.spend("3", whose="theirs")
    async with reading(reports, "anthropic", account="default") as source:
        assert await source.read([TODAY]) == {TODAY: Decimal(2)}


async def test_cloudflare_shows_a_key_only_its_own_account(reports: Reports) -> None:
    assert "look at the account" in (await why(reports, "cloudflare", account="another")).why
    for accounts in ([], [{"aiInferenceAdaptiveGroups": []}] * 2):
        reports.faults = [says({"data": {"viewer": {"accounts": accounts}}, "errors": None})]
        assert (await why(reports, "cloudflare")).why == "it shows this key no such account"


# --- pages ------------------------------------------------------------------------------------------------------------


@each_cost_report
async def test_all_pages_are_read(reports: Reports, name: Name) -> None:
    reports.rows_max = 1
    reports.spend("40.5", at_s=LAST_NIGHT_S)
    reports.spend("1.25")
    async with reading(reports, name) as source:
        assert await source.read(BOTH) == {YESTERDAY: Decimal("40.5"), TODAY: Decimal("1.25")}
    assert [asked.query.get("page") for asked in reports.asked] == [None, "page_1"]


@each_cost_report
@pytest.mark.parametrize("token", [None, "", "x" * 2_000])
async def test_more_without_saying_where_is_no_figure(reports: Reports, name: Name, token: str | None) -> None:
    reports.faults = [says({"data": [], "has_more": True, "next_page": token})]
    assert (await why(reports, name)).why == "its answer has more pages and does not say where"


@each_cost_report
async def test_pages_that_turn_in_a_circle_or_never_end_are_no_figure(reports: Reports, name: Name) -> None:
    reports.faults = [says({"data": [], "has_more": True, "next_page": "again"})] * 2
    assert "does not say where" in (await why(reports, name)).why
    reports.faults = [says({"data": [], "has_more": True, "next_page": f"p{n}"}) for n in range(PAGES_MAX)]
    assert "more than 20 pages" in (await why(reports, name)).why
    assert reports.faults == []


async def test_cloudflare_rows_that_may_be_only_the_first_are_no_figure(
    reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projector.observers.cloudflare.ROWS_MAX", 1)
    reports.spend("1")
    assert "more than 1 groups" in (await why(reports, "cloudflare")).why


# --- what is no answer ------------------------------------------------------------------------------------------------


def _anthropic(results: list[dict[str, object]], start: str = "2026-11-30T00:00:00Z") -> dict[str, object]:
    bucket = {"starting_at": start, "ending_at": "2026-12-01T00:00:00Z", "results": results}
    return {"data": [bucket], "has_more": False, "next_page": None}


def _openai(amount: object, *, start: int = NOON_S - 12 * 3600) -> dict[str, object]:
    bucket = {"start_time": start, "end_time": start + 86_400, "results": [{"amount": amount}]}
    return {"data": [bucket], "has_more": False}


def _cloudflare(neurons: object, day: object = "2026-11-30") -> dict[str, object]:
    groups = [{"sum": {"totalNeurons": neurons}, "dimensions": {"date": day}}]
    return {"data": {"viewer": {"accounts": [{"aiInferenceAdaptiveGroups": groups}]}}}


NO_FIGURES: list[tuple[Name, object]] = [
    ("cloudflare", _cloudflare("many")), ("cloudflare", _cloudflare(None)), ("cloudflare", _cloudflare(1, "today")),
    ("cloudflare", {"data": None}), ("cloudflare", {"data": {"viewer": None}}), ("cloudflare", {}),
    ("openrouter", b'{"data":{"usage_daily":1e999999999}}'),
    ("openrouter", b'{"data":{"usage_daily":' + b"9" * 5_000 + b"}}"),
    ("openai", b'{"data":[{"start_time":' + b"9" * 5_000 + b',"end_time":0,"results":[]}]}'),
    ("cloudflare", {"errors": [{"message": "rate limited"}]}),
    ("openrouter", {"data": {"usage": 1}}), ("openrouter", {"data": {"usage_daily": None}}), ("openrouter", []),
    ("openrouter", {"data": {"usage_daily": "NaN"}}), ("openrouter", {"data": {"usage_daily": True}}),
    ("openai", _openai({"value": "much", "currency": "usd"})), ("openai", _openai({"value": 1, "currency": "eur"})),
    ("openai", _openai(None)), ("openai", _openai({"value": 1, "currency": "usd"}, start=NOON_S)),
    ("openai", {"data": None}), ("openai", {"data": [], "has_more": "yes"}),
    ("anthropic", _anthropic([{"amount": 123.45, "currency": "USD"}])),
    ("anthropic", _anthropic([{"amount": "1e9", "currency": "USD"}])),
    ("anthropic", _anthropic([{"amount": "NaN", "currency": "USD"}])),
    ("anthropic", _anthropic([{"amount": "1", "currency": "EUR"}])),
    ("anthropic", _anthropic([], start="2026-11-30T00:00:00")), ("anthropic", _anthropic([], start="2026-11-30")),
    ("anthropic", _anthropic([], start="2026-11-30T00:00:00+02:00")),
    ("anthropic", _anthropic([], start="0001-01-01T00:00:00+10:00")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body"), NO_FIGURES)
async def test_an_answer_of_another_shape_is_no_figure(reports: Reports, name: Name, body: object) -> None:
    reports.faults = [says(body)]
    await why(reports, name)
    assert reports.faults == []


@each_source
@pytest.mark.parametrize(
    "body", [b"", b"<html>sorry</html>", b"\xff\xfe\x00", b"[" * 100_000, b'{"data":', b"null"], ids=lambda raw: raw[:8]
)
async def test_garbage_is_no_figure(reports: Reports, name: Name, body: bytes) -> None:
    reports.faults = [says(body)]
    assert (await why(reports, name)).why == "its answer is not what its documentation says"


REFUSALS: list[tuple[Answer, str, float]] = [
    (status(429, Retry_After="7"), "asked too often", 7.0),
    (status(429), "asked too often", 0.0),
    (status(503, Retry_After="Mon, 30 Nov 2026 12:01:40 GMT", Date="Mon, 30 Nov 2026 12:00:00 GMT"), "status 503", 100),
    (status(503, Retry_After="Mon, 30 Nov 2026 11:00:00 GMT", Date="Mon, 30 Nov 2026 12:00:00 GMT"), "status 503", 0),
    (status(429, Retry_After="soon"), "asked too often", 0.0),
    (status(429, Retry_After="-5"), "asked too often", 0.0),
    (status(429, Retry_After="9" * 400), "asked too often", 999_999_999.0),
    (status(500), "answers with status 500", 0.0),
    (status(404), "answers with status 404", 0.0),
    (status(403), "does not let this key read", 0.0),
    (redirect, "sends us elsewhere", 0.0),
    (says(b" " * (fetch.BODY_BYTES_MAX + 1)), "is larger than 1,048,576 bytes", 0.0),
    (packed({"data": {"usage_daily": 1}}), "is packed", 0.0),
]


@each_source
@pytest.mark.parametrize(("fault", "said", "retry_s"), REFUSALS)
async def test_whatever_it_refuses_with_is_told_in_our_own_words(
    reports: Reports, name: Name, fault: Answer, said: str, retry_s: float
) -> None:
    reports.faults = [fault]
    unreadable = await why(reports, name)
    assert said in unreadable.why
    assert unreadable.retry_after_s == retry_s
    assert KEY not in unreadable.why
    assert "127.0.0.1" not in unreadable.why
    assert reports.elsewhere == 0


@each_source
async def test_a_wrong_key_is_said_to_be_one_and_not_repeated(reports: Reports, name: Name) -> None:
    unreadable = await why(reports, name, key="another-secret")
    assert "does not let this key read the figure" in unreadable.why
    assert "another-secret" not in repr(unreadable) + str(unreadable.__cause__)


@each_source
async def test_silence_is_waited_for_only_so_long(
    reports: Reports, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "ANSWER_S", 0.2)  # it never answers, so any patience is too short
    reports.faults = [silence]
    assert (await why(reports, name)).why == "it does not answer in time"


@each_source
async def test_nobody_there_is_no_figure(reports: Reports, name: Name) -> None:
    async with reports_at(NOON_S) as gone:
        pass
    unreadable = await why(gone, name)
    assert "cannot be reached" in unreadable.why
    assert gone.url.removeprefix("http://") not in unreadable.why


# --- how it asks ------------------------------------------------------------------------------------------------------


@each_source
async def test_the_key_goes_only_where_the_provider_reads_it(reports: Reports, name: Name) -> None:
    async with reading(reports, name) as source:
        await source.read([TODAY])
    (asked,) = reports.asked
    assert [field for field, value in asked.headers.items() if KEY in value] == [
        "x-api-key" if name == "anthropic" else "Authorization"
    ]
    assert KEY not in asked.path + str(asked.query) + asked.body.decode()
    assert asked.headers["Accept-Encoding"] == "identity"


async def test_cookies_are_not_kept(reports: Reports) -> None:
    reports.faults = [says({"data": {"usage_daily": 1}}, Set_Cookie="who=me")]
    async with reading(reports, "openrouter") as source:
        await source.read([TODAY])
        await source.read([TODAY])
    assert "Cookie" not in reports.asked[1].headers


def test_the_providers_own_addresses_are_encrypted() -> None:
    assert all(kind.base_url.startswith("https://") for kind in KINDS.values())
    assert {name: kind.base_url.rpartition("://")[2].partition("/")[2] for name, kind in KINDS.items()} == {
        name: below.strip("/") for name, below in BELOW.items()
    }


def test_few_modules_of_the_projector_know_the_network() -> None:
    """So that a projector without observers or webhooks has no HTTP client: these are imported where there are some."""
    found = set()
    for file in Path(fetch.__file__).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if "aiohttp" in names:
                found.add(file.name)
    assert found == {"fetch.py", "running.py", "webhook.py"}


def test_the_fake_writes_numbers_as_numbers() -> None:
    assert observed._numbers.encode({"a": Decimal("0.1")}) == b'{"a":0.1}'
    assert msgspec.json.decode(b'{"a":0.1}') == {"a": 0.1}


async def test_a_source_uses_no_proxy_of_the_environment(reports: Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with reading(reports, "openrouter") as source:
        assert (await source.read([TODAY]))[TODAY] == 0
    async with fetch.open_session() as session:
        assert isinstance(session, aiohttp.ClientSession)
        assert not session.trust_env
