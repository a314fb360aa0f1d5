"""`[observers.NAME]` in `purse.toml`: what is taken, and the place and the rule where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from engine.core.plan import Budget, Plan
from engine.errors import Misconfigured
from engine.plan_file import parse_toml
from projector.observers.days import start_s, utc_day
from projector.observers.settings import ObserverSettings, read_observers

KEY = "cf-token_0123456789"
ENVIRONMENT = {"CLOUDFLARE_TOKEN": KEY, "EMPTY": " ", "SPACED": "two words", "BROKEN": "a\nb", "LONG": "x" * 1_025}
WINTER, SUMMER = 1_796_040_000_000_000_000, 1_782_907_200_000_000_000  # 2026-11-30 and 2026-07-01, noon in UTC
WRITTEN: dict[str, Any] = {
    "source": "cloudflare", "budget": "neurons", "key_env": "CLOUDFLARE_TOKEN", "account": "0123abcd",
}  # fmt: skip
PLAN = Plan(
    {
        "neurons": Budget("neurons", 10**10, source="cloudflare"),
        "dollars": Budget("usd", 10**9, source="openrouter"),
        "nobody": Budget("neurons", 10**10),
        "month": Budget("neurons", 10**10, per="month", source="cloudflare"),
        "hour": Budget("neurons", 10**10, per="hour", source="cloudflare"),
        "total": Budget("neurons", 10**10, per="total", source="cloudflare"),
        "tokyo": Budget("neurons", 10**10, zone="Asia/Tokyo", source="cloudflare"),
        "london": Budget("neurons", 10**10, zone="Europe/London", source="cloudflare"),
        "users": Budget("neurons", 10**10, each="user", source="cloudflare"),
    }
)


def read(*tables: dict[str, Any], plan: Plan | None = None, at: int = WINTER) -> list[ObserverSettings]:
    written = {f"o{number}": table for number, table in enumerate(tables)}
    return read_observers(written, environment=ENVIRONMENT, plan=plan, at=at)


def refused(*tables: dict[str, Any], plan: Plan | None = None, at: int = WINTER) -> str:
    with pytest.raises(Misconfigured) as raised:
        read(*tables, plan=plan, at=at)
    return str(raised.value)


# --- allows -----------------------------------------------------------------------------------------------------------


def test_an_observer_is_read_with_its_defaults() -> None:
    (one,) = read(WRITTEN, plan=PLAN)
    assert (one.source, one.budget, one.account, one.every_s) == ("cloudflare", "neurons", "0123abcd", 30)
    assert (one.base_url, one.key) == ("https://api.cloudflare.com/client/v4", KEY)


def test_it_stands_in_the_file_beside_the_plan() -> None:
    found = parse_toml("""
        [budgets.spend]
        unit = "usd"
        limit = "5"
        source = "openrouter"
        [observers.router]
        source = "openrouter"
        budget = "spend"
        key_env = "CLOUDFLARE_TOKEN"
        every_s = 60
        base_url = "http://127.0.0.1:9/api/v1/"
    """)
    (one,) = read_observers(found.local.observers, environment=ENVIRONMENT, plan=found.plan, at=WINTER)
    assert (one.name, one.every_s, one.base_url) == ("router", 60, "http://127.0.0.1:9/api/v1")


def test_no_table_is_no_observer() -> None:
    assert read() == []


@pytest.mark.parametrize(
    "url", ["https://proxy.example/cf", "http://localhost:9", "http://127.0.0.1:9/x", "http://[::1]"]
)
def test_another_address_is_taken_if_it_is_encrypted_or_here(url: str) -> None:
    assert read({**WRITTEN, "base_url": url})[0].base_url == url


def test_the_key_is_never_shown() -> None:
    (one,) = read(WRITTEN)
    assert KEY not in repr(one)


# --- refuses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"source": "acme"}, "source: expected one of cloudflare, openrouter, openai, anthropic"),
        ({"source": 5}, "source: expected str, got int"),
        ({"budget": "Not A Name"}, "budget: expected the name of a budget"),
        ({"every_s": 29}, "every_s: expected 30 to 86400 seconds"),
        ({"every_s": 86_401}, "every_s: expected 30 to 86400 seconds"),
        ({"every_s": "30"}, "every_s: expected int, got str"),
        ({"every_s": True}, "every_s: expected int, got bool"),
        ({"account": ""}, "account: is required with cloudflare: the account's id (32 hex digits)"),
        ({"account": "a/../b"}, "account: expected the account's id (32 hex digits)"),
        ({"source": "openrouter"}, "account: not with openrouter: the key is the account"),
        ({"key_env": "NOT_THERE"}, "key_env: the environment variable NOT_THERE is not set"),
        ({"key_env": "EMPTY"}, "key_env: the environment variable EMPTY is not set"),
        ({"key_env": "SPACED"}, "key_env: SPACED must hold printable characters without spaces"),
        ({"key_env": "BROKEN"}, "key_env: BROKEN must hold printable characters without spaces"),
        ({"key_env": "LONG"}, "key_env: LONG must hold printable characters without spaces"),
        ({"key_env": KEY}, "key_env: expected the name of an environment variable in capitals, never the secret"),
        ({"key": KEY}, "key: unknown; known here: source, budget, key_env, account, every_s, base_url"),
    ],
)
def test_a_wrong_field_is_named_with_its_place(changed: dict[str, Any], said: str) -> None:
    text = refused({**WRITTEN, **changed})
    assert text == f"observers.o0.{said}"
    assert KEY not in text
    assert "two words" not in text


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example", "ftp://127.0.0.1", "https://", "https://user:pass@example.org", "https://x.example/?key=1",
        "https://x.example/#a", "http://10.0.0.1", "https://x.example:99999", "https://x.example/\x00", "x.example",
        "https://" + "x" * 300,
    ],
)  # fmt: skip
def test_a_key_is_not_sent_to_an_address_that_may_leak_it(url: str) -> None:
    text = refused({**WRITTEN, "base_url": url})
    assert text == "observers.o0.base_url: expected https://host/path, or http:// on this machine"


@pytest.mark.parametrize("field", ["source", "budget", "key_env"])
def test_what_must_be_there_is_asked_for(field: str) -> None:
    written = {name: value for name, value in WRITTEN.items() if name != field}
    assert refused(written) == f"observers.o0.{field}: is required"


def test_names_tables_and_their_number_are_checked() -> None:
    for written, said in (
        ({"UP": WRITTEN}, "observers: a name is"), ({"o": 5}, "observers.o: expected a table"),
        ({f"o{n}": WRITTEN for n in range(17)}, "observers: at most 16"), ({"o": {"\x1b": 1}}, "cannot be shown"),
    ):  # fmt: skip
        with pytest.raises(Misconfigured, match=said):
            read_observers(written, environment=ENVIRONMENT, plan=None, at=WINTER)


def test_a_budget_has_one_figure() -> None:
    assert refused(WRITTEN, {**WRITTEN, "account": "other"}) == (
        "observers.o1.budget: observers.o0 reads for it; a budget has one figure"
    )


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("missing", "the plan has no such budget"),
        ("nobody", 'its `source` in the plan is not said, not "cloudflare"'),
        ("dollars", 'its `source` in the plan is "openrouter", not "cloudflare"'),
        ("month", "cloudflare counts by days, this budget by the month"),
        ("hour", "cloudflare counts by days, this budget by the hour"),
        ("total", "cloudflare counts by days, this budget is for all time"),
        ("tokyo", "cloudflare counts by UTC days, this budget by those of Asia/Tokyo"),
        ("users", "it has a meter for each user, and an account has one figure"),
    ],
)
def test_a_budget_whose_figure_it_cannot_be_is_refused_at_the_start(budget: str, said: str) -> None:
    assert refused({**WRITTEN, "budget": budget}, plan=PLAN) == f"observers.o0.budget: {said}"


def test_neurons_are_no_dollars() -> None:
    written = {"source": "openrouter", "budget": "neurons", "key_env": "CLOUDFLARE_TOKEN"}
    plan = Plan({"neurons": Budget("neurons", 1, source="openrouter")})
    assert refused(written, plan=plan) == "observers.o0.budget: it counts neurons, openrouter counts usd"


def test_a_zone_that_is_utc_only_in_winter_is_taken_only_then() -> None:
    assert read({**WRITTEN, "budget": "london"}, plan=PLAN, at=WINTER)
    assert "UTC days" in refused({**WRITTEN, "budget": "london"}, plan=PLAN, at=SUMMER)


def test_a_file_without_a_plan_is_held_against_the_stream_later() -> None:
    assert read({**WRITTEN, "budget": "missing"})


def test_utc_days_begin_at_midnight() -> None:
    day = utc_day(WINTER)
    assert (day.isoformat(), start_s(day)) == ("2026-11-30", WINTER // 10**9 - 12 * 3600)
    assert utc_day(start_s(day) * 10**9 - 1).isoformat() == "2026-11-29"
