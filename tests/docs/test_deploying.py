"""What `docs/deploying.md` shows is complete, consistent, and accepted by what it is for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from typer.core import TyperGroup

from flowrt.cli.arguments import seconds
from flowrt.cli.main import app
from flowrt.storage.redis import RedisStore
from tests.redis_server import RedisServer

PAGE = (Path(__file__).parents[2] / "docs" / "deploying.md").read_text(encoding="utf-8")
FENCES = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
DOCKERFILE = next(text for kind, text in FENCES if kind == "dockerfile")
COMPOSE, *MANIFESTS = [
    document for kind, text in FENCES if kind == "yaml" for document in yaml.safe_load_all(text)
]
ADMIN_PORT = 39999


def manifest(kind: str, name: str) -> dict[str, Any]:
    (found,) = [
        each for each in MANIFESTS if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    assert isinstance(found, dict)
    return found


def container(kind: str, name: str) -> dict[str, Any]:
    (found,) = manifest(kind, name)["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def options(line: list[str]) -> dict[str, str]:
    """The options of a command line that gives each of them one value."""
    return dict(zip(line[::2], line[1::2], strict=True))


def instructions() -> list[tuple[str, str]]:
    lines = [line for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def command_lines() -> list[list[str]]:
    entry = json.loads(dict(instructions())["ENTRYPOINT"])
    pod = container("Deployment", "flowrt")
    return [entry, [*pod["command"], *pod["args"]]]


def redis_commands() -> list[tuple[str, list[str]]]:
    named = [
        (name, each["command"]) for name, each in COMPOSE["services"].items() if name != "flowrt"
    ]
    named.append(("redis-persistent", container("StatefulSet", "redis-persistent")["command"]))
    named.append(("redis-volatile", container("Deployment", "redis-volatile")["command"]))
    return named


@pytest.mark.parametrize("line", command_lines())
def test_the_command_has_options_that_flowrt_knows(line: list[str]) -> None:
    assert ["flowrt", "run"] == line[:2]
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    known = {name for parameter in group.commands["run"].params for name in parameter.opts}
    given = options(line[2:])
    assert set(given) <= known
    assert f"0.0.0.0:{ADMIN_PORT}" == given["--admin"]


def test_the_image_installs_what_serving_needs_and_does_not_run_as_root() -> None:
    words = [word for word, _ in instructions()]
    assert "FROM" == words[0]
    assert set(words) <= {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENV", "EXPOSE", "ENTRYPOINT"}
    assert "flowrt[serve,metrics]" in DOCKERFILE
    found = dict(instructions())
    assert found["USER"] != "root"
    assert {"8080", str(ADMIN_PORT)} == set(found["EXPOSE"].split())


@pytest.mark.parametrize(("name", "command"), redis_commands())
async def test_a_redis_with_these_settings_starts_and_is_fit_for_its_tier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, command: list[str]
) -> None:
    assert "redis-server" == command[0]
    given = {key.removeprefix("--"): value for key, value in options(command[1:]).items()}
    given.pop("dir", None)
    server = RedisServer(tmp_path, **given)
    server.start()
    try:
        store = RedisStore(server.url, durable=name == "redis-persistent")
        await store.open()
        await store.close()
    finally:
        server.stop()
    assert "" == capsys.readouterr().err
    assert ("noeviction" == given["maxmemory-policy"]) is (name == "redis-persistent")


def test_compose_names_services_that_are_there() -> None:
    services = COMPOSE["services"]
    flowrt = services["flowrt"]
    assert flowrt["deploy"]["replicas"] >= 2
    for name, address in flowrt["environment"].items():
        if name.startswith("FLOWRT_"):
            assert re.fullmatch(r"redis://([\w-]+):6379/0", address)[1] in services  # type: ignore[index]
    for other in flowrt["depends_on"]:
        assert "healthcheck" in services[other]
    assert set(COMPOSE["volumes"]) == {
        mount.partition(":")[0] for mount in services["redis-persistent"]["volumes"]
    }


def test_both_ways_to_stop_leave_more_time_than_the_service_takes() -> None:
    entry, pod_line = (options(line[2:]) for line in command_lines())
    grace = seconds(entry["--grace"], "--grace")
    patience = seconds(COMPOSE["services"]["flowrt"]["stop_grace_period"], "stop_grace_period")
    assert grace is not None
    assert patience is not None
    assert patience > grace
    pod = manifest("Deployment", "flowrt")["spec"]["template"]["spec"]
    before = int(container("Deployment", "flowrt")["lifecycle"]["preStop"]["exec"]["command"][1])
    pod_grace = seconds(pod_line["--grace"], "--grace")
    assert pod_grace is not None
    assert pod["terminationGracePeriodSeconds"] > before + pod_grace


def test_the_probes_ask_the_admin_port() -> None:
    pod = container("Deployment", "flowrt")
    ports = {port["name"]: port["containerPort"] for port in pod["ports"]}
    assert ADMIN_PORT == ports["admin"]
    paths = {name: pod[name]["httpGet"]["path"] for name in pod if name.endswith("Probe")}
    assert {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    } == paths
    assert all(pod[name]["httpGet"]["port"] == "admin" for name in paths)


def test_every_selector_finds_its_pods_and_every_address_its_service() -> None:
    labels = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in MANIFESTS
        if each["kind"] in ("Deployment", "StatefulSet")
    }
    services = [each for each in MANIFESTS if each["kind"] == "Service"]
    assert set(labels) == {each["metadata"]["name"] for each in services}
    for each in MANIFESTS:
        name, selector = each["metadata"]["name"], each.get("spec", {}).get("selector")
        if selector is not None:
            assert labels[name] == selector.get("matchLabels", selector)
    secret = manifest("Secret", "flowrt")["stringData"]
    for key in ("FLOWRT_STORAGE", "FLOWRT_VOLATILE"):
        assert re.fullmatch(r"redis://([\w-]+):6379/0", secret[key])[1] in labels  # type: ignore[index]
    assert [{"secretRef": {"name": "flowrt"}}] == container("Deployment", "flowrt")["envFrom"]
