"""The connector `http`: which one a source gets, and what the server does by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from tests.blocks.chains import payload
from tests.services import load
from tests.sources.serving import document, flow
from tests.sources.web import HERE, route, web

ONE = payload('"one"')


def connector(name: str, type_: str = "http", **settings: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "settings": settings}


MODEL = {"replies": [{"text": "x"}]}


async def names(folder: Path, source: dict[str, Any], *connectors: dict[str, Any]) -> list[str]:
    """The connectors that hold streams, in a service with this source."""
    content = document(flow("main", ONE, source={"settings": {"path": "/"}, **source}))
    content["connectors"] = list(connectors)
    return list(load(folder, content, environ=HERE).streams)


async def test_a_source_without_a_declared_connector_gets_one(tmp_path: Path) -> None:
    assert ["http"] == await names(tmp_path, {"type": "http"})
    assert ["http"] == await names(tmp_path, {"connector": "http"})


async def test_the_only_connector_of_the_type_is_the_one(tmp_path: Path) -> None:
    assert ["api"] == await names(tmp_path, {"type": "http"}, connector("api"))
    assert ["api"] == await names(tmp_path, {"connector": "api"}, connector("api"))


async def test_of_several_the_named_one_is_taken(tmp_path: Path) -> None:
    both = connector("a", basePath="/a"), connector("b", basePath="/b")
    assert ["a", "b"] == await names(tmp_path, {"connector": "b"}, *both)


@pytest.mark.parametrize(
    ("source", "connectors", "text"),
    [
        ({"type": "http"}, [connector("a"), connector("b")], "ambiguous: 2 connectors"),
        ({"connector": "http"}, [connector("a"), connector("b")], "ambiguous: 2 connectors"),
        ({"type": "http"}, [connector("http", "llm-scripted", **MODEL)], "of another type"),
    ],
)
async def test_a_connector_that_cannot_be_told_does_not_load(
    tmp_path: Path, source: dict[str, Any], connectors: list[dict[str, Any]], text: str
) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        await names(tmp_path, source, *connectors)
    (fault,) = caught.value.faults
    assert "flows.main.source" == fault.path
    assert fault.position is not None


async def test_a_broken_connector_is_reported_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        await names(tmp_path, {"connector": "api"}, connector("api", port=70000))
    (fault,) = caught.value.faults
    assert "connectors.api.settings.port" == fault.path


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"port": -1}, "-1"),
        ({"basePath": "api"}, "api"),
        ({"basePath": "/api/"}, "/api/"),
        ({"cors": {"allowedOrigins": ["*"], "allowCredentials": True}}, "every page"),
        ({"requestTimeout": "soon"}, "soon"),
        ({"cors": {"origins": []}}, "unknown key 'origins'"),
    ],
)
def test_what_cannot_work_does_not_load(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    content = document(flow("main")) | {"connectors": [connector("api", **settings)]}
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, content, environ=HERE)
    assert text in str(caught.value)


def test_a_port_from_the_environment_that_is_none_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="HTTP_PORT is 'x'"):
        load(tmp_path, document(route("/")), environ={"HTTP_PORT": "x"})


async def test_pages_of_allowed_origins_may_ask(tmp_path: Path) -> None:
    cors = {
        "allowedOrigins": ["https://a.example"],
        "allowedMethods": ["GET", "PUT"],
        "allowedHeaders": ["X-A"],
        "exposedHeaders": ["X-B"],
        "allowCredentials": True,
        "maxAge": "5m",
    }
    asks = {"origin": "https://a.example", "access-control-request-method": "PUT"}
    async with web(tmp_path, route("/", ONE), connector={"cors": cors}) as site:
        ahead = await site.client.options("/", headers=asks)
        other = await site.client.options("/", headers=asks | {"origin": "https://b.example"})
        plain = await site.get(headers={"origin": "https://a.example"})
    assert (200, 400) == (ahead.status_code, other.status_code)
    assert "https://a.example" == ahead.headers["access-control-allow-origin"]
    assert "300" == ahead.headers["access-control-max-age"]
    assert "X-A" in ahead.headers["access-control-allow-headers"]
    assert ("one", "X-B") == (plain.json(), plain.headers["access-control-expose-headers"])


async def test_without_origins_there_is_nothing_for_browsers(tmp_path: Path) -> None:
    cors = {"allowedMethods": ["GET"]}
    async with web(tmp_path, route("/", ONE), connector={"cors": cors}) as site:
        answer = await site.client.options("/", headers={"origin": "https://a.example"})
    assert "access-control-allow-origin" not in answer.headers
    assert "one" == answer.json()


async def test_a_client_may_be_held_to_one_request(tmp_path: Path) -> None:
    async with web(tmp_path, route("/", ONE), connector={"keepAlive": False}) as site:
        answer = await site.raw(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    assert b"connection: close" in answer.lower()


async def test_what_is_nowhere_is_404_in_json(tmp_path: Path) -> None:
    async with web(tmp_path, route("/", ONE)) as site:
        answer = await site.get("/x")
    assert (404, {"error": "there is nothing at this path"}) == (answer.status_code, answer.json())


async def test_an_upgrade_to_a_websocket_is_not_taken(tmp_path: Path) -> None:
    head = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n"
    async with web(tmp_path, route("/", ONE)) as site:
        assert (await site.raw(head)).endswith(b'"one"')


async def test_two_connectors_serve_side_by_side(tmp_path: Path) -> None:
    inside = {"type": "http", "connector": "inside", "settings": {"path": "/"}}
    outside = {"type": "http", "connector": "outside", "settings": {"path": "/"}}
    content = document(
        flow("a", payload('"a"'), source=inside), flow("b", payload('"b"'), source=outside)
    )
    content["connectors"] = [connector("inside"), connector("outside")]
    service = load(tmp_path, content, environ=HERE)
    await service.start(sources=True)
    urls = [held.url for held in service.streams.values()]  # type: ignore[attr-defined]
    await service.stop()
    assert 2 == len(set(urls))


def test_loading_imports_no_server(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps(document(route("/", ONE))), encoding="utf-8")
    code = (
        "import sys\nfrom flowrt.service import Service\n"
        f"Service.load({str(path)!r}, storage='memory:')\n"
        "sys.exit(bool({'uvicorn', 'starlette', 'prometheus_client'} & set(sys.modules)))"
    )
    assert 0 == subprocess.run([sys.executable, "-c", code], capture_output=True).returncode


def test_without_the_extra_the_start_says_what_to_install(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps(document(route("/", ONE))), encoding="utf-8")
    code = (
        "import sys\nsys.modules['uvicorn'] = None\nfrom flowrt.cli.main import app\n"
        f"app(['run', '--config', {str(path)!r}, '--storage', 'memory:', '--admin', 'off'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 1 == done.returncode
    assert "pip install 'flowrt[serve]'" in done.stderr
    assert "Traceback" not in done.stderr
