"""`/metrics`: OpenMetrics that its own parser reads, of bounded labels, for whoever has the key."""

from __future__ import annotations

import json
import re
from pathlib import Path

from desk_client import Desk, open_desk
from fake_purse import NOON
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed

from engine.core.documents import EngineFigures, Figure, ProjectorFigures, Reading
from engine.plan_file import DEFAULT_PLAN
from engine.tallies import LATENCY_BOUNDS_S, Tallies
from web import builtin, exposition, metrics
from web.ask_settings import AskSettings
from web.exposition import Family, Histogram, Kind

REPOSITORY = Path(__file__).parents[2]
DASHBOARD = REPOSITORY / "deploy" / "grafana" / "common-purse.json"
NAME = re.compile(r"\bpurse_[a-z_]+")


def counted(desk: Desk) -> None:
    """What a real engine and projector would say."""
    tallies = Tallies()
    for seconds in (0.0005, 0.003, 60.0):
        tallies.took(seconds)
    desk.purse.engine_counts = tallies.figures(told_upto=20, waiting=3, visits_slowed=1)
    desk.purse.projector_counts = ProjectorFigures(17, {"hold held": 5, "settle stray": 1, "settle conflict": 2}, 4)


async def read(desk: Desk) -> dict[str, float]:
    """Every sample as it is written, by name and labels."""
    heard = await desk.get("/metrics")
    assert heard.status == 200
    assert heard.headers["Content-Type"] == exposition.CONTENT_TYPE
    samples = [sample for family in parsed(heard.body) for sample in family.samples]
    return {" ".join([sample.name, *sorted(sample.labels.values())]): sample.value for sample in samples}


async def test_every_value_has_the_labels_that_its_kind_says() -> None:
    async with open_desk(DEFAULT_PLAN, ask=AskSettings("built-in", builtin.MODEL, max_tokens=1)) as desk:
        counted(desk)
        desk.purse.observed = {"neurons": (Figure("cloudflare", 5, NOON), Reading("cloudflare", 30, NOON))}
        await desk.hold("a", usd="0.25")
        assert (await desk.post("/ask", {"question": "what is left?"}, key=None)).status == 200
        families = parsed((await desk.get("/metrics")).body)
    found = {one.name: {tuple(sorted(set(sample.labels) - {"le"})) for sample in one.samples} for one in families}
    assert found == {kind.name: {tuple(sorted(kind.labels))} for kind in metrics.KINDS}


async def test_every_part_says_what_it_counts() -> None:
    async with open_desk(DEFAULT_PLAN, ask=AskSettings("built-in", builtin.MODEL, max_tokens=1)) as desk:
        counted(desk)
        await desk.hold("a", usd="0.25")
        assert (await desk.post("/ask", {"question": "what is left?"}, key=None)).status == 200
        found = await read(desk)
    assert found["purse_decisions_total held hold"] == 5
    assert found["purse_decisions_total settle stray"] == 1
    assert found["purse_decisions_total conflict settle"] == 2
    assert found["purse_holds_lapsed_total"] == 4
    assert found["purse_decision_seconds_bucket 0.001"] == 1
    assert found["purse_decision_seconds_bucket 0.005"] == 2
    assert found["purse_decision_seconds_bucket 5.0"] == 2
    assert found["purse_decision_seconds_bucket +Inf"] == found["purse_decision_seconds_count"] == 3
    assert found["purse_projection_lag_messages"] == 3
    assert found["purse_engine_waiting"] == 3
    assert found["purse_open_holds"] == 1
    assert found["purse_upstream_calls_total 2xx built-in"] == 1
    assert found["purse_visits_slowed_total ask"] == 0
    assert {found[f"purse_up {part}"] for part in ("engine", "projector", "web")} == {1}


async def test_budgets_are_shown_in_units_and_as_a_share() -> None:
    async with open_desk() as desk:
        await desk.hold("a", usd="0.25")
        found = await read(desk)
    held = {name: value for name, value in found.items() if name.startswith("purse_budget_amount") and "held" in name}
    assert 0.25 in held.values()
    assert any(0 < value <= 1 for name, value in found.items() if name.startswith("purse_budget_used_ratio"))


async def test_what_is_silent_has_no_figures_rather_than_zeros() -> None:
    async with open_desk() as desk:
        found = await read(desk)
    assert found["purse_up engine"] == found["purse_up projector"] == 0
    assert not any(name.startswith(("purse_decision", "purse_engine", "purse_projection")) for name in found)


async def test_a_stranger_learns_no_amounts_here() -> None:
    async with open_desk() as desk:
        heard = await desk.get("/metrics", key=None)
        assert heard.status == 401
        assert "purse_" not in str(heard.body)


async def test_callers_bring_no_label_into_it() -> None:
    async with open_desk() as desk:
        counted(desk)
        before = set(await read(desk))
        for n in range(20):
            await desk.hold(f"h{n}", usd="0.001")
            await desk.post(f"/nowhere/{n}", {}, headers={"X-Forwarded-For": f"192.0.2.{n}"})
            await desk.post("/v1/estimate", {"model": f"model-{n}", "messages": []})
        assert set(await read(desk)) == before


def test_labels_and_numbers_are_written_so_that_they_can_be_read_again() -> None:
    odd = 'a "b" \\ \n c'
    families = [
        Family(Kind("purse_odd", "gauge", "Odd."), [({"budget": odd}, 0.1), ({"budget": ""}, 10**18)]),
        Family(Kind("purse_took_seconds", "histogram", "Took."), [({}, Histogram([0.5, 1.0], [1, 0, 2], 7.25))]),
    ]
    odd_again, took = parsed(exposition.text(families))
    assert [(sample.labels["budget"], sample.value) for sample in odd_again.samples] == [(odd, 0.1), ("", 10**18)]
    assert [sample.value for sample in took.samples] == [1, 1, 3, 3, 7.25]


def test_a_latency_at_a_bound_counts_below_it() -> None:
    tallies = Tallies()
    tallies.took(LATENCY_BOUNDS_S[0])
    figures: EngineFigures = tallies.figures(told_upto=0, waiting=0, visits_slowed=0)
    assert figures.latency[0] == 1
    assert sum(figures.latency) == 1


def test_the_dashboard_draws_what_there_is() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = {name for panel in panels for target in panel["targets"] for name in NAME.findall(target["expr"])}
    shown = {kind.shown for kind in metrics.KINDS}
    assert asked - {f"{metrics.LATENCY.name}_bucket"} <= shown
    assert shown - asked == {metrics.LATENCY.name}


def test_the_handbook_names_every_metric_and_no_other() -> None:
    handbook = (REPOSITORY / "docs" / "operating.md").read_text()
    told = set(re.findall(r"^\| `(purse_[a-z_]+)` \|", handbook, re.MULTILINE))
    assert told == {kind.shown for kind in metrics.KINDS}
