"""The pieces in `docs/guides/kubernetes.md` run what `compose.yaml` runs: its commands, environment, ports, checks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from web.health import ROUTES

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "kubernetes.md").read_text()
COMPOSE: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
EXAMPLE = re.findall(r"^(\w+)=$", (ROOT / "deploy" / "env.example").read_text(), re.MULTILINE)
FENCES = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
PIECES: list[dict[str, Any]] = [piece for fence in FENCES for piece in yaml.safe_load_all(fence)]
WORK = {piece["metadata"]["name"]: piece for piece in PIECES if piece["kind"] in ("StatefulSet", "Deployment", "Job")}
STANDS_FOR = {
    "nats": ["nats-1", "nats-2", "nats-3"],
    "engine": ["engine-1", "engine-2"],
    "projector": ["projector"],
    "first-plan": ["first-plan"],
    "web": ["web-1", "web-2"],
}

each_work = pytest.mark.parametrize("name", STANDS_FOR)


def pod(name: str) -> dict[str, Any]:
    found: dict[str, Any] = WORK[name]["spec"]["template"]["spec"]
    return found


def container(name: str) -> dict[str, Any]:
    (found,) = pod(name)["containers"]
    assert isinstance(found, dict)
    return found


def compose_of(name: str) -> list[dict[str, Any]]:
    return [COMPOSE[service] for service in STANDS_FOR[name]]


def values(name: str) -> dict[str, str]:
    """What is written out in its environment; secrets and what the pod is called are not."""
    return {one["name"]: one["value"] for one in container(name)["env"] if "value" in one}


def translated(text: str) -> str:
    """A value of `compose.yaml` as it must stand here: nats-1 is nats-0.nats, a secret is `$(NAME)`."""
    text = re.sub(r"\bnats-(\d):", lambda found: f"nats-{int(found[1]) - 1}.nats:", text)
    return re.sub(r"\$\{(\w+):\?\}", r"$(\1)", text)


def test_every_service_of_compose_has_its_place_here() -> None:
    assert set(WORK) == set(STANDS_FOR)
    assert sorted(service for services in STANDS_FOR.values() for service in services) == sorted(COMPOSE)


@each_work
def test_its_command_is_that_of_compose(name: str) -> None:
    assert all(service["command"] == container(name)["command"] for service in compose_of(name))


@each_work
def test_its_environment_is_that_of_compose(name: str) -> None:
    for number, service in enumerate(compose_of(name)):
        wanted = {key: translated(value) for key, value in service["environment"].items()}
        secrets = {key for key, value in wanted.items() if value == f"$({key})"}
        named = {one["name"] for one in container(name)["env"] if "fieldRef" in one.get("valueFrom", {})}
        assert named == ({"NATS_NAME"} if name == "nats" else set())
        assert wanted.pop("NATS_NAME", f"nats-{number + 1}") == f"nats-{number + 1}"
        if name == "engine":
            assert int(wanted.pop("PURSE_PATIENCE_MS")) > 0
        here = {key: value for key, value in values(name).items() if key != "PURSE_PATIENCE_MS"}
        assert here == {key: value for key, value in wanted.items() if key not in secrets}
        assert secrets <= set(given(name))


def test_both_engines_stand_by() -> None:
    assert WORK["engine"]["spec"]["replicas"] == 2
    assert int(values("engine")["PURSE_PATIENCE_MS"]) >= 50


def given(name: str) -> list[str]:
    """The secrets it is given, by the variable each becomes."""
    found = []
    for one in container(name)["env"]:
        if "secretKeyRef" in one.get("valueFrom", {}):
            assert one["valueFrom"]["secretKeyRef"] == {"name": "purse-nats", "key": one["name"]}
            found.append(one["name"])
    return found


@each_work
def test_it_is_given_the_passwords_it_names_before_it_names_them_and_no_other(name: str) -> None:
    seen: set[str] = set()
    used: set[str] = set()
    for one in container(name)["env"]:
        asked = set(re.findall(r"\$\((\w+)\)", one.get("value", "")))
        assert asked <= seen, "what is named later, or came by envFrom, is left as it stands"
        used |= asked
        seen.add(one["name"])
    assert set(given(name)) == (set(EXAMPLE) if name == "nats" else used)
    assert "envFrom" not in container(name)


def test_the_secrets_are_made_of_the_example_and_no_value_stands_in_the_guide() -> None:
    assert "--from-env-file=.env" in GUIDE
    assert not re.search(r"^\s*(?:stringData|data):", GUIDE, re.MULTILINE)
    made = set(re.findall(r"kubectl create (?:configmap|secret generic) (\S+)", GUIDE))
    asked = {one["secret"]["secretName"] if "secret" in one else one["configMap"]["name"] for one in outside()}
    assert asked | {"purse-nats"} == made


def outside() -> Iterator[dict[str, Any]]:
    for name in STANDS_FOR:
        yield from (one for one in pod(name).get("volumes", []) if "configMap" in one or "secret" in one)


@each_work
def test_its_ports_are_those_it_listens_on(name: str) -> None:
    listens = {int(values(name)["PURSE_PORT"])} if name == "web" else set()
    if name == "nats":
        listens = {int(values(name)[key].rpartition(":")[2]) for key in ("NATS_LISTEN", "NATS_CLUSTER_LISTEN")}
    assert {port["containerPort"] for port in container(name).get("ports", [])} == listens
    services = [piece for piece in PIECES if piece["kind"] == "Service" and piece["spec"]["selector"] == {"app": name}]
    assert {port.get("targetPort", port["port"]) for one in services for port in one["spec"]["ports"]} == listens


def test_a_broker_is_ready_as_compose_judges_it_and_never_killed_for_being_slow() -> None:
    for service in compose_of("nats"):
        for probe in ("readinessProbe", "startupProbe"):
            assert ["CMD", *container("nats")[probe]["exec"]["command"]] == service["healthcheck"]["test"]
    assert "livenessProbe" not in container("nats")


def test_a_web_is_asked_what_the_api_answers() -> None:
    asked = {probe: container("web")[f"{probe}Probe"]["httpGet"] for probe in ("startup", "readiness", "liveness")}
    paths = {probe: one["path"] for probe, one in asked.items()}
    assert paths == {"startup": "/readyz", "readiness": "/livez", "liveness": "/livez"}
    assert set(paths.values()) <= {route.path for route in ROUTES}
    assert {one["port"] for one in asked.values()} == {int(values("web")["PURSE_PORT"])}


@each_work
def test_it_has_at_least_the_time_to_stop_that_compose_gives(name: str) -> None:
    for service in compose_of(name):
        grace = int(service["stop_grace_period"].removesuffix("s"))
        assert name == "first-plan" or pod(name)["terminationGracePeriodSeconds"] >= grace


@each_work
def test_what_has_a_volume_in_compose_and_must_be_kept_has_a_disk_of_its_own(name: str) -> None:
    mounts = {mount["mountPath"]: mount["name"] for mount in container(name).get("volumeMounts", [])}
    kept = all(any(volume.endswith(":/data") for volume in service.get("volumes", [])) for service in compose_of(name))
    assert ("/data" in mounts) == kept
    claimed = {claim["metadata"]["name"] for claim in WORK[name]["spec"].get("volumeClaimTemplates", [])}
    scratch = {one["name"] for one in pod(name).get("volumes", []) if "emptyDir" in one}
    if kept:
        assert mounts["/data"] in (scratch if name == "engine" else claimed)
    assert set(mounts.values()) <= claimed | scratch | {one["name"] for one in outside()}
    if name == "web":
        assert mounts["/data/admin.key"] == "admin"
    if name == "nats":
        assert "./deploy/nats:/etc/purse:ro" in compose_of(name)[0]["volumes"]
        assert mounts["/etc/purse"] == "config"


@each_work
def test_it_does_not_run_as_root(name: str) -> None:
    user = re.search(r"^USER (\d+):(\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert user is not None
    context = pod(name)["securityContext"]
    assert context["runAsNonRoot"] is True
    assert (context["runAsUser"], context["runAsGroup"]) == (int(user[1]), int(user[2]))
    assert context.get("fsGroup", int(user[2])) == int(user[2])


@each_work
def test_selectors_find_the_pods_they_mean(name: str) -> None:
    if name != "first-plan":
        assert WORK[name]["spec"]["selector"]["matchLabels"] == {"app": name}
        assert WORK[name]["spec"]["template"]["metadata"]["labels"] == {"app": name}
    for claim in (piece for piece in PIECES if piece["kind"] == "StatefulSet"):
        assert claim["spec"]["serviceName"] == claim["metadata"]["name"]


def test_brokers_are_never_two_on_a_node_and_drains_take_one_at_a_time() -> None:
    (apart,) = pod("nats")["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart == {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "nats"}}}
    budgets = {piece["metadata"]["name"]: piece["spec"] for piece in PIECES if piece["kind"] == "PodDisruptionBudget"}
    assert {name: spec["selector"]["matchLabels"]["app"] for name, spec in budgets.items()} == {
        "nats": "nats", "engine": "engine", "web": "web",
    }  # fmt: skip
    assert budgets["nats"]["maxUnavailable"] == budgets["engine"]["minAvailable"] == budgets["web"]["minAvailable"] == 1


def test_a_brokers_disk_is_larger_than_its_store_may_become() -> None:
    most = re.search(r"max_file_store: (\d+)GB", (ROOT / "deploy" / "nats" / "cluster.conf").read_text())
    (claim,) = WORK["nats"]["spec"]["volumeClaimTemplates"]
    asked = claim["spec"]["resources"]["requests"]["storage"]
    assert most is not None
    assert int(asked.removesuffix("Gi")) * 2**30 > int(most[1]) * 2**30


def test_its_shell_lines_are_whole() -> None:
    for fence in re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL):
        assert all(shlex.split(line, comments=True)[0] == "kubectl" for line in fence.splitlines())
