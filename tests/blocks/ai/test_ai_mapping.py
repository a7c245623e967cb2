"""`ai-mapping`: the body becomes the JSON of one reply, or the block fails and says why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.testing import FakeMessagesAPI
from tests.blocks.ai.asking import anthropic, ask, document, send
from tests.services import load

SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "number", "minimum": 0}},
    "required": ["total"],
}


def mapping(**settings: Any) -> dict[str, Any]:
    block = {"type": "ai-mapping", "name": "read", "connector": "model", "prompt": "Read it."}
    return block | settings


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ('{"total": 3}', {"total": 3}),
        ('```json\n{"total": 3}\n```', {"total": 3}),
        ("\n [1, 2.5, null] \n", [1, 2.5, None]),
        ("42", 42),
        ('"a text"', "a text"),
        ("null", None),
        ('{"n": "\\u0000"}', {"n": "\ufffd"}),
    ],
)
async def test_the_body_becomes_the_json_of_the_reply(tmp_path: Path, text: str, body: Any) -> None:
    asked = await ask(tmp_path, [mapping()], {"text": text}, body="mail")
    assert body == asked.body
    assert type(body) is type(asked.body)


async def test_without_input_the_model_gets_the_body_as_json(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [mapping()], {"text": "1"}, body={"mail": "ü"})
    (request,) = asked.requests
    assert [{"type": "text", "text": '{"mail": "ü"}'}] == request.messages[0]["content"]
    assert [] == request.tools
    assert request.tool_choice is None
    assert request.max_tokens is None


async def test_input_is_an_expression_and_its_text_is_sent(tmp_path: Path) -> None:
    block = mapping(input="body.mail", maxTokens=77)
    asked = await ask(tmp_path, [block], {"text": "1"}, body={"mail": "Dear all"})
    (request,) = asked.requests
    assert "Dear all" == request.messages[0]["content"][0]["text"]
    assert 77 == request.max_tokens


async def test_a_blank_input_is_an_error_without_a_call(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [mapping(input="body.mail")], {"text": "1"}, body={"mail": " "})
    assert 'block "read": ai-mapping: input is blank: there is nothing to map' == asked.error
    assert [] == asked.requests


@pytest.mark.parametrize("written", [lambda value: value, json.dumps])
async def test_examples_and_schema_are_shown_however_they_are_written(
    tmp_path: Path, written: Any
) -> None:
    block = mapping(
        inputExample=written({"mail": "3 please"}),
        outputExample=written({"total": 3}),
        outputSchema=written(SCHEMA),
    )
    asked = await ask(tmp_path, [block], {"text": '{"total": 1}'})
    system = asked.requests[0].system[0]["text"]
    shown = ["Read it.", '{"mail": "3 please"}', '{"total": 3}', json.dumps(SCHEMA)]
    places = [system.index(text) for text in shown]
    assert sorted(places) == places


async def test_the_schema_goes_on_with_the_message_until_the_next_mapping(tmp_path: Path) -> None:
    reply = {"text": '{"total": 1}'}
    asked = await ask(tmp_path, [mapping(outputSchema=SCHEMA)], reply)
    assert asked.result.message is not None
    assert SCHEMA == asked.result.message.to_json()["body_schema"]
    asked = await ask(tmp_path, [mapping(outputSchema=SCHEMA), mapping()], reply, reply)
    assert asked.result.message is not None
    assert "body_schema" not in asked.result.message.to_json()


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ({"text": "The total is 3."}, "ai-mapping: response is not valid JSON: "),
        ({"text": "The total is 3."}, "it is 'The total is 3.'"),
        ({"text": '{"total": 3}, I think'}, "ai-mapping: response is not valid JSON: "),
        ({"text": '{"total": NaN}'}, "response is not valid JSON: NaN is no JSON value"),
        ({"text": "[" * 100_000}, "response is not valid JSON: it nests too deep"),
        ({"text": "", "stopReason": "end_turn"}, "ai-mapping: response is not valid JSON: "),
        ({"text": '{"total": "3"}'}, "output failed schema validation at $.total: '3' is not of"),
        ({"text": '{"total": -3}'}, "(rule properties/total/minimum)"),
        ({"text": "{}"}, "validation at $: 'total' is a required property (rule required)"),
        (
            {"text": '{"total": 3}', "stopReason": "max_tokens"},
            "ai-mapping: response was cut off by the token limit; raise maxTokens",
        ),
        ({"text": "I will not.", "stopReason": "refusal"}, "ai-mapping: the model refused"),
        ({"error": 400, "message": "bad"}, 'block "read": bad'),
    ],
)
async def test_a_reply_that_is_no_output_fails_the_block(
    tmp_path: Path, reply: dict[str, Any], text: str
) -> None:
    chain = [
        {
            "type": "handle-errors",
            "process": [mapping(outputSchema=SCHEMA)],
            "error": [{"type": "set-payload", "value": "[vars.error.message, string(body)]"}],
        }
    ]
    asked = await ask(tmp_path, chain, reply, body="mail")
    message, body = asked.body
    assert message.startswith('block "read": ')
    assert text in message
    assert "mail" == body


async def test_one_call_leaves_one_record(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [mapping()], {"text": "1"})
    (turn,) = [record["attrs"] for record in asked.records if record["kind"] == "llm.turn"]
    assert ("ai-mapping", "main.read", "model") == (
        turn["purpose"],
        turn["block"],
        turn["connector"],
    )


async def test_the_real_api_is_asked_once_and_caches_nothing(tmp_path: Path) -> None:
    """A prefix that is written to the cache costs a quarter more and would not be read again."""
    with FakeMessagesAPI(['{"total": 3}']) as api:
        service = document([mapping(outputSchema=SCHEMA)])
        service["connectors"] = [anthropic(api.base_url)]
        async with load(tmp_path, service) as running:
            asked = await send(running, {"mail": "3"})
        assert {"total": 3} == asked.body
        (call,) = api.requests
        assert [] == api.refused
        assert "cache_control" not in json.dumps(call.body)
        assert {"tools", "tool_choice"}.isdisjoint(call.body)


@pytest.mark.parametrize(
    ("settings", "place", "text"),
    [
        ({"outputSchema": {"type": "text"}}, "outputSchema", "not a JSON Schema: at $.type"),
        ({"outputSchema": '{"type":'}, "outputSchema", "not valid JSON"),
        ({"outputSchema": "[1]"}, "outputSchema", "must be a JSON object"),
        ({"outputSchema": [1]}, "outputSchema", "must be a JSON object"),
        ({"outputSchema": {"$ref": "http://x.test/"}}, "outputSchema", "none is fetched"),
        ({"inputExample": "{mail}"}, "inputExample", "not valid JSON"),
        ({"outputExample": "{"}, "outputExample", "not valid JSON"),
        ({"maxTokens": -1}, "maxTokens", "at least 0"),
        ({"input": "body.("}, "input", "does not compile"),
        ({"prompt": ""}, "prompt", "must not be blank"),
        ({"schema": {}}, "schema", "unknown"),
        ({"connector": "claude"}, "connector", "is not configured"),
    ],
)
def test_a_setting_that_cannot_work_is_a_load_error(
    tmp_path: Path, settings: dict[str, Any], place: str, text: str
) -> None:
    with pytest.raises(ConfigError, match=r"service\.yaml:\d+:\d+ flows\.main\.") as found:
        load(tmp_path, document([mapping(**settings)]))
    assert f"process[0].{place}: " in str(found.value)
    assert text in str(found.value)


async def test_the_model_is_shown_the_files_in_front_of_the_input(tmp_path: Path) -> None:
    receipt = {"mimeType": "application/pdf", "data": "JVBERi0=", "name": "receipt.pdf"}
    asked = await ask(
        tmp_path,
        [mapping(input="body.text", attachments="body.files")],
        {"text": '{"total": 12}'},
        body={"text": "Read it.", "files": [receipt]},
    )
    [message] = asked.requests[0].messages
    assert ["document", "text"] == [block["type"] for block in message["content"]]
    assert "receipt.pdf" == message["content"][0]["title"]
    assert {"total": 12} == asked.body


async def test_a_file_that_no_model_can_be_shown_fails_by_its_number(tmp_path: Path) -> None:
    chain = [mapping(input="body.text", attachments="body.files")]
    asked = await ask(tmp_path, chain, body={"text": "x", "files": [{"mimeType": "video/mp4"}]})
    assert "ai-mapping attachments[0].data: expected base64" in asked.error


async def test_files_that_the_model_makes_come_into_the_variable(tmp_path: Path) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    asked = await ask(
        tmp_path,
        [mapping(responseMedia="drawn")],
        {"content": [{"type": "text", "text": "{}"}, {"type": "image", "source": source}]},
    )
    assert {} == asked.body
    assert [
        {"name": "image-1.png", "mimeType": "image/png", "size": 2, "data": "aGk="}
    ] == asked.vars["drawn"]


def test_a_mapping_without_a_schema_does_not_import_jsonschema(tmp_path: Path) -> None:
    path = tmp_path / "service.yaml"
    path.write_text(json.dumps(document([mapping(outputExample={"a": 1})])), encoding="utf-8")
    code = (
        "import sys; from flowrt.service import Service; "
        f"Service.load({str(path)!r}, storage='memory:', environ={{}}); "
        "sys.exit('jsonschema' in sys.modules or 'numpy' in sys.modules)"
    )
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
