"""`mcp-router`: the Model Context Protocol over the body of a message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from blocks.mcp.uri import UriPattern
from flowrt.errors import ConfigError
from flowrt.message import Message
from tests.blocks.chains import BROKEN, DROP, STOP, payload, variable
from tests.services import flows, load

ECHO = {"name": "echo", "description": "Gives back.", "process": [payload("body")]}


def tool(*chain: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "t", "description": "d", "process": list(chain), **more}


def document(**settings: Any) -> dict[str, Any]:
    return flows(main=[{"type": "mcp-router", **settings}])


async def send(folder: Path, body: Any, **settings: Any) -> Message:
    async with load(folder, document(**settings)) as service:
        result = await service.invoke("main", body, {"mine": 1})
    assert result.message is not None, result.error
    return result.message


def call(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


async def called(folder: Path, entry: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    request = call("tools/call", name=entry["name"], arguments=arguments)
    answer = (await send(folder, request, tools=[entry])).body
    result: dict[str, Any] = answer["result"]
    return result


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2099-01-01", "2025-06-18"),
        (None, "2024-11-05"),
    ],
)
async def test_a_version_nobody_knows_becomes_the_latest_and_none_the_oldest(
    tmp_path: Path, asked: str | None, spoken: str
) -> None:
    request = call("initialize", **({"protocolVersion": asked} if asked else {}))
    result = (await send(tmp_path, request, tools=[ECHO])).body["result"]
    assert spoken == result["protocolVersion"]
    assert {"tools": {}} == result["capabilities"]
    assert "flowrt" == result["serverInfo"]["name"]


@pytest.mark.parametrize(
    ("body", "id_", "code"),
    [
        (None, None, -32600),
        ([call("ping")], None, -32600),
        ({"id": 7, "method": "ping"}, 7, -32600),
        ({"jsonrpc": "2.0", "id": 7, "method": 5}, 7, -32600),
        ({"jsonrpc": "2.0", "id": {"a": 1}, "method": "nope"}, None, -32601),
        ({**call("tools/call"), "params": [1]}, 7, -32602),
        (call("tools/call"), 7, -32602),
        (call("tools/call", name="ghost"), 7, -32602),
        (call("tools/call", name="echo", arguments=[1]), 7, -32602),
        (call("resources/read", uri="x:y"), 7, -32002),
        (call("prompts/get", name="ghost"), 7, -32602),
    ],
)
async def test_a_request_that_cannot_be_worked_is_answered_with_an_error(
    tmp_path: Path, body: Any, id_: Any, code: int
) -> None:
    answer = (await send(tmp_path, body, tools=[ECHO])).body
    assert ("2.0", id_, code) == (answer["jsonrpc"], answer["id"], answer["error"]["code"])


async def test_a_notification_gets_no_answer_whatever_it_says(tmp_path: Path) -> None:
    found = await send(tmp_path, {"jsonrpc": "2.0", "method": "anything"}, tools=[ECHO])
    assert (None, 202) == (found.body, found.vars["httpStatus"])


async def test_a_tool_works_on_a_copy_and_gives_its_body_as_text(tmp_path: Path) -> None:
    entry = tool(variable("mine", "2"), payload('{"args": body, "mine": vars.mine}'))
    request = call("tools/call", name="t", arguments={"a": [1]})
    found = await send(tmp_path, request, tools=[entry])
    result = found.body["result"]
    assert {"args": {"a": [1]}, "mine": 2} == json.loads(result["content"][0]["text"])
    assert not result["isError"]
    assert "structuredContent" not in result
    assert 1 == found.vars["mine"]
    assert not found.stop


@pytest.mark.parametrize(
    ("chain", "text"),
    [
        ([BROKEN], 'block "test-broken": boom'),
        ([DROP], "the tool produced no result"),
        ([payload('"refused"'), STOP], "refused"),
    ],
)
async def test_a_tool_that_fails_is_a_result_for_the_model(
    tmp_path: Path, chain: list[dict[str, Any]], text: str
) -> None:
    result = await called(tmp_path, tool(*chain))
    assert ([{"type": "text", "text": text}], True) == (result["content"], result["isError"])


async def test_a_promised_object_is_given_as_a_value_too_and_nothing_else_is(
    tmp_path: Path,
) -> None:
    schema = '{"type": "object"}'
    found = await called(tmp_path, tool(payload("body"), outputSchema=schema), a=1)
    assert {"a": 1} == found["structuredContent"]
    found = await called(tmp_path, tool(payload('"text"'), outputSchema=schema))
    assert found["isError"]
    assert "promises an object" in found["content"][0]["text"]


async def test_a_secret_in_a_failure_does_not_leave_the_service(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text("{{ body.missing }}")
    entry = tool({"type": "validate", "rules": [{"expr": 'int("sk-ant-api03-abcdefghijklm") > 0'}]})
    result = await called(tmp_path, entry)
    assert result["isError"]
    assert "abcdefghijklm" not in result["content"][0]["text"]


async def test_a_template_that_fails_is_an_error_of_the_request(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text("{{ body.missing }}")
    config = document(resources=[{"uri": "a:b", "name": "n", "resource": "t.md"}])
    config["resources"] = {"templates": [{"resource": "t.md"}]}
    async with load(tmp_path, config) as service:
        result = await service.invoke("main", call("resources/read", uri="a:b"))
        listed = await service.invoke("main", call("resources/list"))
    assert result.message is not None
    assert listed.message is not None
    assert -32603 == result.message.body["error"]["code"]
    entry = {"uri": "a:b", "name": "n", "mimeType": "text/plain"}
    assert {"resources": [entry]} == listed.message.body["result"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "mcp-router needs tools, resources or prompts"),
        ({"tools": [ECHO, ECHO]}, "two tools are called 'echo'"),
        ({"tools": [{**ECHO, "authorize": "true"}]}, "'authorize' belongs to the tools of an ai-"),
        ({"tools": [{**ECHO, "inputSchema": "{"}]}, "this is not valid JSON"),
        ({"tools": [{**ECHO, "annotations": {"readonly": True}}]}, "unknown key 'readonly'"),
        ({"resources": [{"name": "n", "resource": "r"}]}, "a uri or a uriTemplate"),
        ({"resources": [{"uri": "a:b", "name": "n", "resource": "r"}]}, "resource"),
        ({"resources": [{"uriTemplate": "a:b", "name": "n", "resource": "r"}]}, "needs a {name}"),
        ({"prompts": [{"name": "p", "resource": "nowhere"}]}, "nowhere"),
    ],
)
def test_what_cannot_work_does_not_load(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, document(**settings))
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("template", "uri", "found"),
    [
        ("a://{id}", "a://7", {"id": "7"}),
        ("a://{id}/x/{n}", "a://7%2F8/x/%C3%BC", {"id": "7/8", "n": "ü"}),
        ("a://{id}", "a://7/8", None),
        ("a://{id}", "a://", None),
        ("a.b://{id}", "aXb://7", None),
    ],
)
def test_an_address_is_matched_by_its_pattern(template: str, uri: str, found: Any) -> None:
    assert found == UriPattern(template).match(uri)


@pytest.mark.parametrize("template", ["a://x", "a://{id", "a://{}", "a://{a-b}", "a://{n}/{n}"])
def test_an_address_that_names_nothing_is_no_pattern(template: str) -> None:
    with pytest.raises(ValueError, match="uriTemplate"):
        UriPattern(template)
