"""`compose.yaml` and what it mentions: whatever can be known of it without a Docker engine is so."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.embedded import find_server

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "compose.yaml").read_text()
COMPOSE = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
BROKERS = ["nats-1", "nats-2", "nats-3"]
CLUSTER = ROOT / "deploy" / "nats" / "cluster.conf"
EXAMPLE = (ROOT / "deploy" / "env.example").read_text()

each_service = pytest.mark.parametrize("name", SERVICES)


def test_it_runs_three_brokers_two_engines_a_projector_and_two_webs() -> None:
    modules = [service["command"][2] for service in SERVICES.values() if service["command"][0] == "python"]
    assert sorted(modules) == ["commonpurse.first_plan", "engine", "engine", "projector", "web", "web"]
    assert [name for name, service in SERVICES.items() if service["command"][0] == "nats-server"] == BROKERS


@each_service
def test_its_commands_are_there(name: str) -> None:
    match SERVICES[name]["command"]:
        case ["python", "-m", module]:
            found = importlib.util.find_spec(module)
            assert found is not None
            assert found.submodule_search_locations is None or importlib.util.find_spec(f"{module}.__main__")
        case ["nats-server", "-c", config]:
            assert config == "/etc/purse/cluster.conf"
            assert "./deploy/nats:/etc/purse:ro" in SERVICES[name]["volumes"]
            assert CLUSTER.is_file()
        case other:
            raise AssertionError(f"{name}: what is {other}?")


@each_service
def test_it_is_built_here_started_again_and_keeps_its_data(name: str) -> None:
    service = SERVICES[name]
    assert (service["build"], service["image"]) == (".", "commonpurse")
    assert service["restart"] in ("unless-stopped", "on-failure")
    if service["restart"] == "unless-stopped":
        assert f"{name}:/data" in service["volumes"], "a volume of its own"
        assert name in COMPOSE["volumes"]


@each_service
def test_every_file_it_mounts_is_there_or_is_made_as_it_says(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        source = volume.partition(":")[0]
        made = f"{source.removeprefix('./')} <<<" in TEXT
        assert source in COMPOSE["volumes"] or (ROOT / source).exists() or made, source


@each_service
def test_it_waits_for_what_it_needs(name: str) -> None:
    waits = set(SERVICES[name].get("depends_on", {}))
    assert waits == (set() if name in BROKERS else set(BROKERS))
    for broker in waits:
        assert SERVICES[name]["depends_on"][broker] == {"condition": "service_healthy"}
        assert "healthz" in " ".join(SERVICES[broker]["healthcheck"]["test"])


def test_nothing_but_the_web_is_published_and_that_on_loopback() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert set(published) == {"web-1", "web-2"}
    ports = [port for ports in published.values() for port in ports]
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:8080", port) for port in ports)
    assert len(set(ports)) == len(ports)


def test_engines_have_patience_and_the_second_more_of_it() -> None:
    patience = [int(SERVICES[name]["environment"]["PURSE_PATIENCE_MS"]) for name in ("engine-1", "engine-2")]
    assert 0 < patience[0] < patience[1]


@pytest.mark.parametrize("name", BROKERS)
def test_a_broker_is_given_all_that_its_config_asks_for(name: str) -> None:
    environment = SERVICES[name]["environment"]
    assert set(re.findall(r"\$(NATS_\w+)", re.sub(r"#.*", "", CLUSTER.read_text()))) == set(environment)
    assert environment["NATS_NAME"] == name
    routes = [environment[f"NATS_ROUTE_{number}"].rpartition("@")[2] for number in (1, 2, 3)]
    assert routes == [f"{broker}:6222" for broker in BROKERS]


def test_the_secrets_it_needs_are_those_of_the_example_and_none_has_a_value_there() -> None:
    assert set(re.findall(r"\$\{(\w+):\?\}", TEXT)) == set(re.findall(r"^(\w+)=$", EXAMPLE, re.MULTILINE))
    assert not re.findall(r"^\w+=.+$", EXAMPLE, re.MULTILINE)
    ignored = (ROOT / ".gitignore").read_text().split()
    assert {".env", "deploy/admin.key"} <= set(ignored)


def test_every_process_knows_all_three_brokers() -> None:
    for name in set(SERVICES) - set(BROKERS):
        url = SERVICES[name]["environment"]["PURSE_NATS_URL"]
        assert [one.rpartition("@")[2] for one in url.split(",")] == [f"{broker}:4222" for broker in BROKERS]


def test_the_server_takes_the_config_and_it_says_what_money_needs(tmp_path: Path) -> None:
    environment = dict(SERVICES["nats-1"]["environment"]) | {"NATS_STORE": str(tmp_path)}
    said = {name: re.sub(r"\$\{\w+:\?\}", "secret", value) for name, value in environment.items()}
    checked = subprocess.run([find_server(), "-t", "-c", CLUSTER], env=said, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr
    settings = CLUSTER.read_text()
    for needed in ("sync_interval: always", "max_payload: 8MB", "js_ack_fc_v2: false", "max_file_store"):
        assert needed in settings


def test_it_is_what_the_compose_specification_allows() -> None:
    checker = Path(sysconfig.get_path("scripts")) / "check-jsonschema"
    command = [checker, "--builtin-schema", "vendor.compose-spec", ROOT / "compose.yaml"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@each_service
def test_it_is_checked_as_what_it_is_and_not_as_a_wallet_in_one_piece(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    assert check == {"disable": True} or check["test"][0] == "CMD"


@each_service
def test_it_may_do_nothing_it_need_not_and_its_log_cannot_fill_the_disk(name: str) -> None:
    service = SERVICES[name]
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert service["logging"]["options"]["max-size"]


def test_the_admin_key_is_a_secret_of_the_webs_alone() -> None:
    assert COMPOSE["secrets"] == {"admin-key": {"file": "deploy/admin.key"}}
    given = {name: service["secrets"] for name, service in SERVICES.items() if "secrets" in service}
    assert given == {name: [{"source": "admin-key", "target": "/data/admin.key"}] for name in ("web-1", "web-2")}
    assert "install -m 644 /dev/stdin deploy/admin.key" in TEXT
