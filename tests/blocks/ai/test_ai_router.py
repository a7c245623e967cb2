"""`ai-router`: the model's choice decides, and nothing else happens to the message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.message import Outcome
from flowrt.testing import FakeMessagesAPI
from tests.blocks.ai.asking import anthropic, ask, calls, document, say, send
from tests.services import load


def router(**settings: Any) -> dict[str, Any]:
    block = {
        "type": "ai-router",
        "name": "triage",
        "connector": "model",
        "prompt": "Route the mail.",
        "routes": [
            {"name": "billing", "description": "Money.", "process": [say("billed")]},
            {"name": "tech support", "description": "Faults.", "process": [say("supported")]},
        ],
        "default": {"process": [say("nobody")]},
    }
    block |= settings
    return {key: value for key, value in block.items() if value is not None}


def select(route: Any) -> dict[str, Any]:
    return calls("select_route", route=route)


async def test_the_chain_of_the_selected_route_runs(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [router()], select("tech support"), body={"mail": "it broke"})
    assert "supported" == asked.body


async def test_a_call_is_forced_and_the_routes_are_told(tmp_path: Path) -> None:
    block = router(guardrail="No threats.")
    asked = await ask(tmp_path, [block], select("billing"))
    (request,) = asked.requests
    assert {"type": "any"} == request.tool_choice
    assert "ai-router" == request.purpose
    tools = {tool["name"]: tool["input_schema"]["properties"] for tool in request.tools}
    assert ["get_body", "list_variables", "get_variable", "select_route"] == list(tools)
    assert ["billing", "tech support", "__guardrail__"] == tools["select_route"]["route"]["enum"]
    system = request.system[0]["text"]
    for text in ("Route the mail.", "- billing: Money.", "__guardrail__", "Guardrail: No threats."):
        assert text in system


async def test_the_model_reads_the_message_and_changes_nothing(tmp_path: Path) -> None:
    looks = {
        "toolCalls": [
            {"name": "get_body"},
            {"name": "list_variables"},
            {"name": "get_variable", "input": {"name": "tier"}},
            {"name": "get_variable", "input": {"name": "none"}},
            {"name": "get_variable"},
            {"name": "drop_database"},
        ]
    }
    block = router(routes=[{"name": "on", "description": "On.", "process": []}])
    body, variables = {"mail": "ünpaid"}, {"tier": {"level": 2}, "age": 7}
    asked = await ask(tmp_path, [block], looks, select("on"), body=body, variables=variables)
    results = asked.results()
    assert [
        '{"mail": "ünpaid"}',
        '["age", "tier"]',
        '{"level": 2}',
        "there is no variable 'none'; there are: age, tier",
        "there is no variable None; there are: age, tier",
        "unknown tool 'drop_database'",
    ] == [result["content"] for result in results]
    assert [False] * 3 + [True] * 3 == [bool(result.get("is_error")) for result in results]
    assert (body, variables) == (asked.body, asked.vars)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(select("__guardrail__"), id="the guardrail"),
        pytest.param(select("sales"), id="a route that is not there"),
        pytest.param(select(None), id="no name"),
        pytest.param(select(["billing"]), id="a list"),
        pytest.param(calls("select_route"), id="no arguments"),
        pytest.param(
            {"toolCalls": [*select("billing")["toolCalls"], *select("tech support")["toolCalls"]]},
            id="two routes",
        ),
        pytest.param({"text": "billing"}, id="words instead of a call"),
        pytest.param({"text": "no", "stopReason": "refusal"}, id="a refusal"),
        pytest.param({**select("billing"), "stopReason": "refusal"}, id="a refusal after a call"),
        # FB-19: the route may be the beginning of another's name.
        pytest.param({**select("billing"), "stopReason": "max_tokens"}, id="a call cut off"),
        pytest.param({"content": [], "stopReason": "end_turn"}, id="nothing"),
    ],
)
async def test_default_runs_where_the_reply_selects_no_route(
    tmp_path: Path, reply: dict[str, Any]
) -> None:
    asked = await ask(tmp_path, [router()], reply, body="mail")
    assert "nobody" == asked.body
    assert 1 == len(asked.requests)


async def test_without_default_the_message_passes_on(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [router(default=None)], select("__guardrail__"), body="mail")
    assert "mail" == asked.body


async def test_five_rounds_without_a_choice_end_in_default(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [router()], *[calls("get_body")] * 6, body="mail")
    assert "nobody" == asked.body
    assert 5 == len(asked.requests)


async def test_a_choice_in_the_fifth_round_counts(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [router()], *[calls("get_body")] * 4, select("billing"), body=1)
    assert "billed" == asked.body


async def test_a_choice_beside_other_calls_counts(tmp_path: Path) -> None:
    reply = calls("get_body", "select_route", route="billing")
    asked = await ask(tmp_path, [router()], reply, body="mail")
    assert "billed" == asked.body


async def test_a_model_that_fails_fails_the_block(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [router()], {"error": 401, "message": "bad key"})
    assert 'block "triage": bad key' == asked.error


async def test_a_failure_on_a_route_names_the_route_and_is_not_routed_again(tmp_path: Path) -> None:
    failing = {"type": "set-payload", "value": "body.nothing"}
    block = router(routes=[{"name": "billing", "description": "Money.", "process": [failing]}])
    asked = await ask(tmp_path, [block], select("billing"), body={})
    assert asked.error.startswith('block "triage": block "set-payload": ')


async def test_a_route_may_drop_the_message(tmp_path: Path) -> None:
    dropping = {"type": "filter", "expr": "false"}
    block = router(routes=[{"name": "spam", "description": "Spam.", "process": [dropping]}])
    asked = await ask(tmp_path, [block], select("spam"))
    assert Outcome.DROPPED == asked.result.outcome


async def test_every_round_leaves_a_record_and_the_routes_have_addresses(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [router()], calls("get_body"), select("billing"))
    turns = [record["attrs"] for record in asked.records if record["kind"] == "llm.turn"]
    assert [("ai-router", "main.triage", 1), ("ai-router", "main.triage", 2)] == [
        (turn["purpose"], turn["block"], turn["iteration"]) for turn in turns
    ]
    paths = {record.get("path") for record in asked.records}
    assert "main.triage[billing].set-payload" in paths

    asked = await ask(tmp_path, [router()], select("__guardrail__"))
    assert "main.triage[default].set-payload" in {r.get("path") for r in asked.records}


@pytest.mark.parametrize("thinking", ["off", "adaptive"])
async def test_the_real_api_takes_every_round(tmp_path: Path, thinking: str) -> None:
    with FakeMessagesAPI([calls("get_body", "list_variables"), select("billing")]) as api:
        service = document([router()])
        service["connectors"] = [anthropic(api.base_url, thinking=thinking)]
        async with load(tmp_path, service) as running:
            asked = await send(running, {"mail": "unpaid"})
        assert "billed" == asked.body
        assert [] == api.refused
        # The API refuses thinking where a call is forced.
        assert [({"type": "any"}, None)] * 2 == [
            (call.body["tool_choice"], call.body.get("thinking")) for call in api.requests
        ]


ROUTE = {"name": "a", "description": "A.", "process": []}


@pytest.mark.parametrize(
    ("settings", "place", "text"),
    [
        ({"routes": [ROUTE, ROUTE]}, "process[0]", "two routes are called 'a'"),
        ({"routes": []}, "process[0].routes", "must not be empty"),
        ({"routes": None}, "process[0]", "routes"),
        ({"routes": [{**ROUTE, "name": "__guardrail__"}]}, "process[0]", "selects for no route"),
        ({"routes": [{**ROUTE, "name": "default"}]}, "process[0]", "have one address"),
        ({"routes": [{**ROUTE, "name": " "}]}, "process[0].routes[0].name", "must not be blank"),
        ({"routes": [{**ROUTE, "when": "true"}]}, "process[0].routes[0].when", "unknown"),
        ({"routes": [{"name": "a", "process": []}]}, "process[0].routes[0]", "description"),
        ({"prompt": ""}, "process[0].prompt", "must not be blank"),
        ({"prompts": "x"}, "process[0].prompts", "did you mean 'prompt'"),
        ({"connector": "modle"}, "process[0].connector", "did you mean 'model'"),
        ({"connector": "vectors"}, "process[0].connector", "is not an LLM provider"),
    ],
)
def test_a_setting_that_cannot_work_is_a_load_error(
    tmp_path: Path, settings: dict[str, Any], place: str, text: str
) -> None:
    service = document([router(**settings)])
    service["connectors"].append({"name": "vectors", "type": "embed-local"})
    with pytest.raises(ConfigError, match=r"service\.yaml:\d+:\d+ flows\.main\.") as found:
        load(tmp_path, service)
    assert f"{place}: " in str(found.value)
    assert text in str(found.value)


def test_a_route_may_be_called_default_where_there_is_no_default_flow(tmp_path: Path) -> None:
    block = router(routes=[{**ROUTE, "name": "default"}], default=None)
    assert load(tmp_path, document([block])).flows
