"""`purse.toml` and the plan as JSON: what people write comes in whole or is refused by its place."""

import json
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core import limits
from engine.core.amounts import SCALES
from engine.core.periods import zone_known
from engine.core.plan import Budget, Per, Plan, PlanError, Tier, Tiers, digest, validate
from engine.errors import Misconfigured
from engine.plan_file import (
    DEFAULT_PLAN,
    Local,
    WebTable,
    describe_change,
    parse_toml,
    plan_from_json,
    plan_to_json,
    read,
)

WRITTEN = """
[plan]
ttl_s = 300
ttl_s_min = 5
ttl_s_max = 3600
on_lapse = "release"
remember_s = 86400
zone = "Asia/Tokyo"

[units]
credits = 2

[budgets.neurons]            # a shared daily budget
unit = "neurons"
limit = "10000"
per = "day"
zone = "UTC"
source = "cloudflare"

[budgets.jev]
unit = "usd"
limit = "1.00"
per = "month"
where = { provider = "jev" }

[budgets.user-daily]
unit = "jpy"
limit = "80"
each = "user"
required = true
limit_for = { "cohort=premium" = "120", "user=alice" = "500.5" }
public = "amounts"
note = "Pro raises this five times"
link = "https://example.org/pro"

[web]
host = "0.0.0.0"
port = 9000
refusal_status = 429
trusted_proxies = ["10.0.0.0/8", "::1"]

[upstreams.openai]
base_url = "https://api.openai.com/v1"
key_env = "OPENAI_API_KEY"

[prices."my-model"]
input_usd_per_mtok = 0.15
"""


def plan_of(text: str) -> Plan:
    plan = parse_toml(text).plan
    assert plan is not None
    return plan


def refused(text: str) -> PlanError:
    with pytest.raises(PlanError) as error:
        parse_toml(text)
    return error.value


def budget(lines: str) -> str:
    return f'[budgets.jev]\nunit = "usd"\nlimit = "1"\n{lines}'


# --- the plan part ----------------------------------------------------------------------------------------------------


def test_a_file_becomes_the_plan_that_decides() -> None:
    assert plan_of(WRITTEN) == Plan(
        budgets={
            "neurons": Budget(unit="neurons", limit=10_000_000_000, source="cloudflare"),
            "jev": Budget(unit="usd", limit=1_000_000_000, per="month", where={"provider": "jev"}),
            "user-daily": Budget(
                unit="jpy",
                limit=80_000_000,
                each="user",
                required=True,
                limit_for={"cohort=premium": 120_000_000, "user=alice": 500_500_000},
                public="amounts",
                note="Pro raises this five times",
                link="https://example.org/pro",
            ),
        },
        units={"credits": 2, **SCALES},
        ttl_s=300,
        ttl_s_min=5,
        ttl_s_max=3600,
        on_lapse="release",
        remember_s=86_400,
        zone="Asia/Tokyo",
        tzdata=version("tzdata"),
    )


def test_what_is_not_written_has_its_default_filled_in() -> None:
    plan = plan_of(budget(""))
    assert plan == Plan(budgets={"jev": Budget(unit="usd", limit=1_000_000_000)}, tzdata=version("tzdata"))
    assert (plan.ttl_s, plan.on_lapse, plan.remember_s, plan.budgets["jev"].zone) == (600, "charge", 172_800, "UTC")


def test_budgets_keep_the_order_in_which_they_were_written() -> None:
    assert list(plan_of(WRITTEN).budgets) == ["neurons", "jev", "user-daily"]


@pytest.mark.parametrize("limit", ['"0.3"', "0.3", '"0.30"'])
def test_i1_an_amount_is_exact_however_it_is_written(limit: str) -> None:
    plan = plan_of(f'[budgets.jev]\nunit = "usd"\nlimit = {limit}')
    assert plan.budgets["jev"].limit == 300_000_000


def test_a_whole_number_is_in_units_not_in_smallest_parts() -> None:
    assert plan_of('[budgets.n]\nunit = "neurons"\nlimit = 10000').budgets["n"].limit == 10_000_000_000


@pytest.mark.parametrize(
    ("text", "field", "why"),
    [
        (budget('limt = "2"'), "budgets.jev.limt", 'did you mean "limit"?'),
        (budget('colour = "red"'), "budgets.jev.colour", "known here: unit, limit, per"),
        ('[budget.jev]\nunit = "usd"\nlimit = "1"', "budget", 'did you mean "budgets"?'),
        ('limit = "1"\n' + budget(""), "limit", "known here: plan, units, budgets, tiers, tier_times, guards, web"),
        ("[plan]\nttl = 5\n" + budget(""), "plan.ttl", 'did you mean "ttl_s"?'),
        ("[web]\nprot = 80", "web.prot", 'did you mean "port"?'),
        ("[upstream.openai]", "upstream", 'did you mean "upstreams"?'),
    ],
)  # fmt: skip
def test_e12_a_field_nobody_knows_is_refused_by_its_place(text: str, field: str, why: str) -> None:
    error = refused(text)
    assert error.field == field
    assert why in error.why


@pytest.mark.parametrize(
    ("text", "field", "why"),
    [
        ('[budgets.jev]\nlimit = "1"', "budgets.jev.unit", "is required"),
        ('[budgets.jev]\nunit = "usd"', "budgets.jev.limit", "is required"),
        ('[budgets.jev]\nunit = "USD"\nlimit = "1"', "budgets.jev.unit", "jpy, neurons, requests, tokens, usd"),
        ('[budgets.jev]\nunit = "usd"\nlimit = "-1"', "budgets.jev.limit", "must not be negative"),
        ('[budgets.jev]\nunit = "usd"\nlimit = nan', "budgets.jev.limit", 'got "NaN"'),
        ('[budgets.jev]\nunit = "usd"\nlimit = inf', "budgets.jev.limit", "expected a decimal string"),
        ('[budgets.jev]\nunit = "usd"\nlimit = true', "budgets.jev.limit", "got true or false"),
        ('[budgets.jev]\nunit = "usd"\nlimit = 2026-11-30', "budgets.jev.limit", "got date"),
        ('[budgets.jev]\nunit = "tokens"\nlimit = "0.5"', "budgets.jev.limit", "at most 0 digits after the point"),
        ('[budgets.jev]\nunit = "usd"\nlimit = "1e3"', "budgets.jev.limit", "expected a decimal string"),
        (budget('limit_for = { "user=a" = "lots" }'), "budgets.jev.limit_for.user=a", 'got "lots"'),
        (budget('limit_for = { "premium" = "2" }'), "budgets.jev.limit_for", '"label=value"'),
        (budget('per = "daily"'), "budgets.jev.per", "minute, hour, day, week, month, year, total"),
        (budget('per = "30d"'), "budgets.jev.per", "minute, hour, day, week, month, year, total"),
        (budget('zone = "Asia/Tokio"'), "budgets.jev.zone", "not an IANA time zone"),
        (budget('public = "all"'), "budgets.jev.public", "percent, amounts"),
        (budget("required = true"), "budgets.jev.required", "needs `each`"),
        (budget('each = ["user"]'), "budgets.jev.each", "expected str"),
        (budget("where = { provider = 1 }"), "budgets.jev.where", "expected str, got int"),
        (budget('where = "provider=jev"'), "budgets.jev.where", "expected object, got str"),
        (budget('link = "javascript:alert(1)"'), "budgets.jev.link", "https://"),
        (budget('[plan]\non_lapse = "refund"'), "plan.on_lapse", "charge, release"),
        (budget('[plan]\nzone = "Tokyo"'), "plan.zone", "not an IANA time zone"),
        (budget("[plan]\nttl_s = 0"), "plan.ttl_s", "ttl_s_min <= ttl_s"),
        (budget('[plan]\nttl_s = "600"'), "plan.ttl_s", "expected int, got str"),
        (budget("[plan]\nremember_s = 0"), "plan.remember_s", "seconds"),
        (budget("[plan]\nrules = 99"), "plan.rules", "this release knows rules"),
        (budget('[units]\ncredits = "2"'), "units.credits", "whole number"),
        (budget("[units]\ncredits = true"), "units.credits", "whole number"),
        (budget("[units]\nusd = 6"), "units.usd", "the scale of usd is 9"),
        ('[budgets.all]\nunit = "usd"\nlimit = "1"', "budgets.all", "scope of everything"),
        ('[budgets."a b"]\nunit = "usd"\nlimit = "1"', "budgets.a b", "a name is"),
        ("[plan]\nttl_s = 60", "budgets", "1 to 64 budgets"),
        ("budgets = 1", "budgets", "expected a table"),
        ("[budgets]\njev = 1", "budgets.jev", "expected a table"),
        ("[budgets", "file", "is not TOML"),
        (budget('unit = "usd"'), "file", "is not TOML"),
        ('[budgets.jev]\nunit = "usd"\nlimit = ' + "9" * 5000, "file", "is not TOML"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_what_is_allowed(text: str, field: str, why: str) -> None:
    error = refused(text)
    assert (error.field, why in error.why) == (field, True), error
    assert len(str(error)) < 250


def test_l15_the_case_of_a_unit_counts() -> None:
    assert refused('[budgets.jev]\nunit = "Usd"\nlimit = "1"').field == "budgets.jev.unit"


# --- the local part ---------------------------------------------------------------------------------------------------


def test_local_tables_stay_beside_the_plan_and_their_numbers_stay_exact() -> None:
    assert parse_toml(WRITTEN).local == Local(
        web=WebTable(host="0.0.0.0", port=9000, refusal_status=429, trusted_proxies=["10.0.0.0/8", "::1"]),
        upstreams={"openai": {"base_url": "https://api.openai.com/v1", "key_env": "OPENAI_API_KEY"}},
        prices={"my-model": {"input_usd_per_mtok": Decimal("0.15")}},
    )


def test_a_file_with_local_tables_only_has_no_plan() -> None:
    assert parse_toml("[web]\nport = 80").plan is None
    assert parse_toml("").local == Local()


def test_local_tables_are_nothing_a_decision_could_read() -> None:
    assert digest(plan_of(WRITTEN)) == digest(plan_of(WRITTEN.partition("[web]")[0]))


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[web]\nport = -1", "web.port"),
        ("[web]\nport = 65536", "web.port"),
        ('[web]\nport = "80"', "web.port"),
        ("[web]\nrefusal_status = 200", "web.refusal_status"),
        ('[web]\ntrusted_proxies = ["::1", "10.0.0.1/8"]', "web.trusted_proxies[1]"),
        ('[web]\ntrusted_proxies = ["proxy.local"]', "web.trusted_proxies[0]"),
        ("web = 1", "web"),
        ("prices = []", "prices"),
    ],
)
def test_a_local_setting_that_cannot_be_used_is_refused_by_its_place(text: str, field: str) -> None:
    assert refused(text).field == field


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_is_read_from_its_path(tmp_path: Path) -> None:
    path = tmp_path / "purse.toml"
    path.write_text(WRITTEN, encoding="utf-8")
    assert read(path) == parse_toml(WRITTEN)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff\xfe", "is not UTF-8 text at byte 0"),
        (b"[budgets", "file: is not TOML"),
        (budget('zone = "Mars"').encode(), "budgets.jev.zone: not an IANA time zone"),
    ],
)
def test_an_unusable_file_is_the_operators_to_mend(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "purse.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Misconfigured) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: {said}")


# --- JSON -------------------------------------------------------------------------------------------------------------


def test_the_plan_is_shown_with_decimal_strings_and_every_default() -> None:
    assert plan_to_json(plan_of(budget('limit_for = { "user=a" = "2.50" }'))) == {
        "plan": {
            "rules": 1, "ttl_s": 600, "ttl_s_min": 1, "ttl_s_max": 86_400, "on_lapse": "charge", "remember_s": 172_800,
            "zone": "UTC", "tzdata": version("tzdata"),
        },
        "units": {"usd": 9, "neurons": 6, "tokens": 0, "jpy": 6, "requests": 0},
        "budgets": {
            "jev": {"unit": "usd", "limit": "1", "per": "day", "zone": "UTC", "limit_for": {"user=a": "2.5"}},
        },
    }  # fmt: skip


def test_a_plan_as_json_is_the_one_that_a_file_says() -> None:
    said = {"budgets": {"jev": {"unit": "usd", "limit": "1"}}}
    assert plan_from_json(said) == plan_from_json(json.dumps(said).encode()) == plan_of(budget(""))


def test_a_json_number_is_read_exactly() -> None:
    assert plan_from_json(b'{"budgets":{"jev":{"unit":"usd","limit":0.1}}}').budgets["jev"].limit == 100_000_000


def test_a_float_that_somebody_already_rounded_is_refused() -> None:
    with pytest.raises(PlanError, match="got a float") as error:
        plan_from_json({"budgets": {"jev": {"unit": "usd", "limit": 0.1}}})
    assert error.value.field == "budgets.jev.limit"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "plan: is not JSON"),
        (b"[]", "plan: expected a table"),
        (b"null", "plan: expected a table"),
        (b"{", "plan: is not JSON"),
        (b"\xff", "plan: is not JSON"),
        (b"[" * 100_000, "plan: is not JSON"),
        (b'{"budgets":{"a":{"unit":"usd","limit":"1","limit":"9"}}}', "limit: is given twice"),
        (b'{"budgets":{"a":{"unit":"usd","limit":NaN}}}', "budgets.a.limit: expected a decimal string"),
        (b'{"budgets":{"a":{"unit":"usd","limit":"1","note":"\\ud800"}}}', "budgets.a.note: at most 256"),
        (b'{"budgets":{"a":{"unit":"usd","limit":"1"}},"web":{}}', "web: unknown"),
        (b'{"budgets":{"a":{"unit":"usd","limit":"1"}},"units":{"credits":1.0}}', "units.credits: a scale is"),
        (b'{"budgets":{}}' + b" " * limits.MESSAGE_BYTES_MAX, "plan: has at most 524288 bytes"),
    ],
)  # fmt: skip
def test_json_that_is_no_plan_is_refused(raw: bytes, said: str) -> None:
    with pytest.raises(PlanError) as error:
        plan_from_json(raw)
    assert str(error.value).startswith(said)


NAMES = st.sampled_from(["a", "b-1", "c.d_e", "7", "x" * 32])
LABELS = st.sampled_from(["user", "cohort", "a-b.c_d", "x" * 32])
WORDS = st.sampled_from(["alice", "a=b", '"quoted"', "日本", "dash - comma, semicolon;", "x" * 128])
TEXTS = WORDS | st.just("")
AMOUNTS = st.integers(0, limits.AMOUNT_MAX)


@st.composite
def budgets(draw: st.DrawFn, units: list[str]) -> Budget:
    each = draw(st.none() | LABELS)
    rules = st.builds("{}={}".format, LABELS, WORDS)
    return Budget(
        unit=draw(st.sampled_from(units)),
        limit=draw(AMOUNTS),
        per=draw(st.sampled_from(get_args(Per))),
        zone=draw(st.sampled_from(["UTC", "Asia/Tokyo", "America/New_York"])),
        where=draw(st.dictionaries(LABELS, WORDS, max_size=3)),
        each=each,
        required=each is not None and draw(st.booleans()),
        limit_for=draw(st.dictionaries(rules, AMOUNTS, max_size=3)),
        source=draw(st.none() | TEXTS),
        public=draw(st.sampled_from(["percent", "amounts"])),
        note=draw(TEXTS),
        link=draw(st.just("") | TEXTS.map("https://example.org/{}".format)),
    )


@st.composite
def tiers(draw: st.DrawFn) -> Tiers:
    up_to = sorted(draw(st.sets(st.integers(1, 1_000_000), min_size=1, max_size=4)))
    grades = sorted(draw(st.sets(st.integers(0, limits.GRADE_MAX), min_size=len(up_to), max_size=len(up_to))))
    steps = [Tier(*step) for step in zip(up_to, grades, strict=True)]
    return Tiers(steps, draw(st.dictionaries(WORDS, st.integers(1, 100_000_000), max_size=3)))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    more = draw(st.dictionaries(NAMES, st.integers(0, 12), max_size=3))
    units = dict(draw(st.permutations(list({**SCALES, **more}.items()))))
    return Plan(
        budgets=draw(st.dictionaries(NAMES, budgets(list(units)), min_size=1, max_size=4)),
        units=units,
        ttl_s=draw(st.integers(10, 1000)),
        ttl_s_min=draw(st.integers(1, 10)),
        ttl_s_max=draw(st.integers(1000, 86_400)),
        on_lapse=draw(st.sampled_from(["charge", "release"])),
        remember_s=draw(st.integers(1, limits.REMEMBER_S_MAX)),
        zone=draw(st.sampled_from(["UTC", "Asia/Tokyo"])),
        tzdata=draw(st.sampled_from(["", "2026.6"])),
        tiers=draw(st.just(msgspec.UNSET) | tiers()),
    )


@settings(max_examples=100, deadline=None)
@given(plan=plans())
def test_a_plan_that_is_shown_and_comes_back_is_the_same_to_the_byte(plan: Plan) -> None:
    validate(plan, zone_known=zone_known)
    shown = plan_to_json(plan)
    assert digest(plan_from_json(shown)) == digest(plan)
    assert plan_from_json(json.dumps(shown).encode()) == plan


@settings(max_examples=50, deadline=None)
@given(old=plans(), new=plans())
def test_a_change_is_silent_only_if_there_is_none(old: Plan, new: Plan) -> None:
    assert describe_change(old, old) == []
    assert (describe_change(old, new) == []) == (digest(old) == digest(new))


# --- the plan that comes with the product -----------------------------------------------------------------------------


def test_the_default_plan_is_ten_thousand_neurons_and_one_dollar_a_day() -> None:
    neurons = Budget(unit="neurons", limit=10_000_000_000, source="cloudflare")
    jev = Budget(unit="usd", limit=1_000_000_000, where={"provider": "jev"})
    assert Plan(budgets={"neurons": neurons, "jev": jev}, tzdata=version("tzdata")) == DEFAULT_PLAN
    validate(DEFAULT_PLAN, zone_known=zone_known)


# --- what a change does, in words -------------------------------------------------------------------------------------

BEFORE = plan_of(
    """
    [budgets.neurons]
    unit = "neurons"
    limit = "10000"
    [budgets.jev]
    unit = "usd"
    limit = "1"
    where = { provider = "jev" }
    limit_for = { "cohort=premium" = "2" }
    """
)


def changed(name: str, **fields: object) -> Plan:
    budgets = {**BEFORE.budgets, name: msgspec.structs.replace(BEFORE.budgets[name], **fields)}
    return msgspec.structs.replace(BEFORE, budgets=budgets)


@pytest.mark.parametrize(
    ("after", "lines"),
    [
        (BEFORE, []),
        (changed("jev", limit=2_500_000_000), ["budgets.jev.limit: 1 usd -> 2.5 usd; what was used stays"]),
        (
            changed("jev", limit_for={"cohort=premium": 3_000_000_000, "user=alice": 0}),
            [
                "budgets.jev.limit_for.cohort=premium: 2 usd -> 3 usd",
                "budgets.jev.limit_for.user=alice: none of its own -> 0 usd",
            ],
        ),
        (changed("jev", limit_for={}), ["budgets.jev.limit_for.cohort=premium: 2 usd -> none of its own"]),
        (
            changed("jev", per="week", zone="Asia/Tokyo", limit=7_000_000_000),
            [
                "budgets.jev: RESTARTS at zero, per day -> week, zone UTC -> Asia/Tokyo",
                "budgets.jev.limit: 1 usd -> 7 usd",
            ],
        ),
        (changed("jev", where={}), ["budgets.jev: RESTARTS at zero, where provider=jev -> every call"]),
        (changed("neurons", each="user"), ["budgets.neurons: RESTARTS at zero, each none -> user"]),
        (
            changed("neurons", note="Sorry", public="amounts", required=True),
            [
                "budgets.neurons.required: no -> yes",
                "budgets.neurons.public: percent -> amounts",
                "budgets.neurons.note: none -> Sorry",
            ],
        ),
        (
            msgspec.structs.replace(BEFORE, budgets={"neurons": BEFORE.budgets["neurons"]}),
            ["budgets.jev: removed; the calls it holds for still settle to it"],
        ),
        (
            msgspec.structs.replace(
                BEFORE,
                budgets={**BEFORE.budgets, "user-daily": Budget(unit="jpy", limit=80_000_000, each="user")},
                units={**BEFORE.units, "credits": 2},
            ),
            [
                "units.credits: added, 2 digits after the point",
                "budgets.user-daily: added, 80 jpy a day in UTC for each user",
            ],
        ),
        (
            msgspec.structs.replace(BEFORE, ttl_s=60, on_lapse="release"),
            ["plan.ttl_s: 600 -> 60", "plan.on_lapse: charge -> release"],
        ),
        (
            msgspec.structs.replace(BEFORE, budgets=dict(reversed(BEFORE.budgets.items()))),
            ["budgets: in another order (jev, neurons); of refusals alike the first budget's is told"],
        ),
        (
            msgspec.structs.replace(BEFORE, units=dict(reversed(BEFORE.units.items()))),
            ["plan: written in another order; it decides the same"],
        ),
    ],
)
def test_a_change_is_told_in_the_words_of_the_file(after: Plan, lines: list[str]) -> None:
    assert describe_change(BEFORE, after) == lines


def test_another_unit_under_a_name_is_announced_as_what_the_wallet_refuses() -> None:
    lines = describe_change(BEFORE, changed("jev", unit="jpy", limit=1_000_000, limit_for={}))
    assert lines[0] == "budgets.jev.unit: usd -> jpy; the wallet refuses this, another unit needs another name"
    assert lines[1] == "budgets.jev.limit: 1 usd -> 1 jpy; what was used stays"


def test_a_first_plan_tells_its_budgets() -> None:
    assert describe_change(None, BEFORE) == [
        "budgets.neurons: added, 10000 neurons a day in UTC",
        "budgets.jev: added, 1 usd a day in UTC where provider=jev",
    ]
