"""`[alerts]`: what is allowed, what is the default, and that what is wrong is named without a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core.plan import Budget, Plan
from engine.errors import Misconfigured
from engine.plan_file import parse_toml
from projector.alerts.rules import PERCENTS, Burst, Rules, Runaway
from projector.alerts.settings import AlertSettings, alerts_of, read_alerts
from projector.alerts.target import TargetSettings

SECRET = "hunter2-and-more"
URL = "https://hooks.example.org/T0/B1/" + SECRET
ENVIRONMENT = {"HOOK": URL, "KEY": SECRET, "PLAIN": "http://hooks.example.org/" + SECRET}
PLAN = Plan({"jev": Budget("usd", 1), "own": Budget("usd", 1, each="user")})
TARGET = {"kind": "json", "url_env": "HOOK", "secret_env": "KEY"}


def test_without_a_table_the_usual_percentages_are_raised_and_sent_to_nobody(tmp_path: Path) -> None:
    assert alerts_of(None, environment={}) == AlertSettings(Rules())
    (tmp_path / "purse.toml").write_text("[web]\nport = 0\n")
    assert alerts_of(tmp_path / "purse.toml", environment={}) == AlertSettings(Rules(percents=PERCENTS))


def test_the_example_of_the_module_is_read_as_it_stands() -> None:
    import projector.alerts.settings as module

    assert module.__doc__ is not None
    example = module.__doc__.split("\n\n", 1)[1].rsplit("\n\n", 1)[0].replace("OPS_WEBHOOK_URL", "HOOK")
    written = parse_toml(example.replace("OPS_WEBHOOK_SECRET", "KEY")).local.alerts
    assert read_alerts(written, environment=ENVIRONMENT, plan=PLAN) == AlertSettings(
        Rules(
            bursts=(Burst(budget="jev", amount="0.50", within_s=300),),
            runaways=(Runaway(budget="jev"),),
            off=frozenset({"refused"}),
        ),
        (TargetSettings(name="ops", kind="slack", url=URL, secret=SECRET, timeout_s=10),),
    )


def test_bursts_and_runaways_may_be_several() -> None:
    written = {"burst": [{"budget": "jev", "amount": "1"}, {"budget": "jev", "amount": "2", "within_s": 60}],
               "runaway": [{"budget": "jev", "freeze": False}]}  # fmt: skip
    rules = read_alerts(written, environment={}).rules
    assert [burst.name for burst in rules.bursts] == ["1/300s", "2/60s"]
    assert rules.runaways == (Runaway(budget="jev", freeze=False),)


def test_a_slack_webhook_needs_no_secret_and_nothing_secret_is_ever_shown() -> None:
    settings = read_alerts({"targets": {"ops": {"kind": "slack", "url_env": "HOOK"}}}, environment=ENVIRONMENT)
    assert settings.targets[0].secret == ""
    assert SECRET not in repr(settings)


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ({"colour": 1}, "alerts.colour: unknown"),
        ({"percents": "50"}, "alerts.percents: expected `array`".replace("`", "")),
        ({"percents": [0]}, "alerts.percents: expected at most 16 whole numbers"),
        ({"percents": list(range(1, 18))}, "alerts.percents: expected at most 16"),
        ({"off": ["burst"]}, "alerts.off: expected some of percent, refused, lapse"),
        ({"burst": {"budget": "jev"}}, "alerts.burst.amount: is required"),
        ({"burst": {"budget": "jev", "amount": "-1"}}, "alerts.burst.amount: expected a decimal string"),
        ({"burst": {"budget": "jev", "amount": 1}}, "alerts.burst.amount: expected str"),
        ({"burst": {"budget": "jev", "amount": "1", "within_s": 0}}, "alerts.burst.within_s: expected 1 to 86400"),
        ({"burst": {"budget": "nobody", "amount": "1"}}, "alerts.burst.budget: the plan has no such budget"),
        ({"burst": {"budget": "own", "amount": "1"}}, "alerts.burst.budget: it has a meter for each user"),
        ({"burst": [{}] * 17}, "alerts.burst: at most 16"),
        ({"burst": [5]}, "alerts.burst[0]: expected a table"),
        ({"runaway": [{"budget": "jev"}, {"budget": "jev", "colour": 1}]}, "alerts.runaway[1].colour: unknown"),
        ({"runaway": {"budget": "A B"}}, "alerts.runaway.budget: expected the name of a budget"),
        ({"targets": {"A B": TARGET}}, "alerts.targets: a name is"),
        ({"targets": {str(number): TARGET for number in range(9)}}, "alerts.targets: at most 8"),
        ({"targets": {"ops": TARGET | {"kind": "mail"}}}, "alerts.targets.ops.kind: expected one of slack, json"),
        ({"targets": {"ops": TARGET | {"timeout_s": 16}}}, "alerts.targets.ops.timeout_s: expected 1 to 15"),
        ({"targets": {"ops": {"kind": "json", "url_env": "HOOK"}}}, "alerts.targets.ops.secret_env: is required"),
        ({"targets": {"ops": TARGET | {"url_env": URL}}}, "alerts.targets.ops.url_env: expected the name of"),
        ({"targets": {"ops": TARGET | {"url_env": "NONE"}}}, "alerts.targets.ops.url_env: the environment variable"),
        ({"targets": {"ops": TARGET | {"url_env": "PLAIN"}}}, "alerts.targets.ops.url_env: expected https://"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_place(written: dict[str, object], place: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        read_alerts(written, environment=ENVIRONMENT, plan=PLAN)
    assert str(refused.value).startswith(place)
    assert SECRET not in str(refused.value)


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "purse.toml"
    path.write_text("[alerts]\npercents = [1001]\n")
    with pytest.raises(Misconfigured, match=f"{path}: alerts.percents"):
        alerts_of(path, environment={})
