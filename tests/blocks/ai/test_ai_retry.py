"""`ai-retry`: a failure goes to the model, its revision through the chain again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.message import Outcome
from flowrt.testing import FakeMessagesAPI, Gate
from tests.blocks.ai.asking import Asked, anthropic, ask, document, put, say, send
from tests.services import load

NEEDS_ID = {"type": "set-payload", "name": "needs-id", "value": '"stored " + body.id'}


def retry(*process: dict[str, Any], **settings: Any) -> dict[str, Any]:
    block = {
        "type": "ai-retry",
        "name": "repair",
        "connector": "model",
        "prompt": "An order needs an id.",
        "process": list(process) or [NEEDS_ID],
    }
    return block | settings


def revise(body: Any, **more: Any) -> dict[str, Any]:
    return {"toolCalls": [{"name": "revise_message", "input": {"body": body, **more}}]}


def opening(asked: Asked) -> str:
    text: str = asked.requests[0].messages[0]["content"][0]["text"]
    return text


async def test_a_chain_that_does_not_fail_asks_nobody(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [retry()], body={"id": "7"})
    assert "stored 7" == asked.body
    assert [] == asked.requests
    assert "error" not in asked.vars


async def test_a_revised_message_goes_through_the_chain_again(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [retry()], revise({"id": "8"}), body={"ID": "8"})
    assert "stored 8" == asked.body
    assert {"flow": "repair", "block": "needs-id"} == {
        key: asked.vars["error"][key] for key in ("flow", "block")
    }


async def test_the_model_sees_the_error_the_body_and_the_variables(tmp_path: Path) -> None:
    asked = await ask(
        tmp_path, [retry()], revise({"id": "8"}), body={"ID": "ü"}, variables={"user": "sam"}
    )
    assert 'block "needs-id": ' in opening(asked)
    assert '{"ID": "ü"}' in opening(asked)
    assert '{"user": "sam"}' in opening(asked)
    (request,) = asked.requests
    assert {"type": "auto"} == request.tool_choice
    assert ["revise_message"] == [tool["name"] for tool in request.tools]
    assert "An order needs an id." in request.system[0]["text"]
    (turn,) = [record["attrs"] for record in asked.records if record["kind"] == "llm.turn"]
    assert ("ai-retry", "main.repair") == (turn["purpose"], turn["block"])


async def test_a_second_failure_is_the_result_of_the_revision(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [retry()], revise({"Id": "8"}), revise({"id": "8"}), body={})
    assert "stored 8" == asked.body
    (result,) = asked.results(1)
    assert result["is_error"]
    assert result["content"].startswith('It failed again: block "needs-id": ')


async def test_max_attempts_counts_the_first_run_too(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [retry()], *[revise({})] * 5, body={})
    assert 2 == len(asked.requests)
    asked = await ask(tmp_path, [retry(maxAttempts=1)], body={})
    assert [] == asked.requests
    assert asked.error.startswith('block "repair": block "needs-id": ')


async def test_variables_are_merged_and_the_error_is_not_the_models_to_set(tmp_path: Path) -> None:
    chain = {"type": "set-payload", "value": "[vars.kept, vars.added, vars.error.flow]"}
    asked = await ask(
        tmp_path,
        [retry(NEEDS_ID, chain)],
        revise({"id": "1"}, variables={"added": 2, "error": "none"}),
        body={},
        variables={"kept": 1},
    )
    assert [1, 2, "repair"] == asked.body


async def test_an_attempt_begins_without_what_the_failed_one_changed(tmp_path: Path) -> None:
    """Else the model is shown, and asked to revise, what a half-done chain made of the body."""
    count = put("n", "has(vars.n) ? vars.n + 1 : 1")
    half = {"type": "set-payload", "value": '{"id": body.order.id}'}
    asked = await ask(
        tmp_path,
        [retry(count, {"type": "set-payload", "value": "body.order"}, half)],
        revise({"order": {"order": {"id": "3"}}}),
        body={"order": {}},
    )
    assert {"id": "3"} == asked.body
    assert '{"order": {}}' in opening(asked)
    assert "{}" in opening(asked).splitlines()
    assert 1 == asked.vars["n"]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param({"text": "It cannot be repaired."}, id="words"),
        pytest.param({"text": "no", "stopReason": "refusal"}, id="a refusal"),
        pytest.param({**revise({"id": "8"}), "stopReason": "max_tokens"}, id="a call cut off"),
        pytest.param({"toolCalls": [{"name": "revise_message"}]}, id="no body"),
        pytest.param(revise({"id": "8"}, variables=[1]), id="variables that are a list"),
        pytest.param({"toolCalls": [{"name": "fix", "input": {"body": 1}}]}, id="another tool"),
        pytest.param({"error": 529}, id="a model that is overloaded"),
    ],
)
async def test_without_a_usable_revision_the_first_error_stands(
    tmp_path: Path, reply: dict[str, Any]
) -> None:
    asked = await ask(tmp_path, [retry()], reply, revise({"id": "8"}), body={})
    assert asked.error.startswith('block "repair": block "needs-id": ')
    assert 1 == len(asked.requests)


async def test_the_error_chain_runs_on_what_the_last_attempt_left(tmp_path: Path) -> None:
    block = retry(
        put("marked", "body.no"),
        NEEDS_ID,
        error=[{"type": "set-payload", "value": "[vars.marked, body.no, vars.error.block]"}],
        maxAttempts=2,
    )
    asked = await ask(tmp_path, [block], revise({"no": 2}), body={"no": 1})
    assert [2, 2, "needs-id"] == asked.body
    paths = {record.get("path") for record in asked.records}
    assert {"main.repair[process].needs-id", "main.repair[error].set-payload"} <= paths


async def test_a_failure_of_the_error_chain_names_it(tmp_path: Path) -> None:
    block = retry(maxAttempts=1, error=[{"type": "set-payload", "value": "body.none"}])
    asked = await ask(tmp_path, [block], body={})
    assert asked.error.startswith('block "repair": ai-retry error chain: block "set-payload": ')


async def test_of_several_revisions_the_first_counts_and_all_are_answered(tmp_path: Path) -> None:
    both = {"toolCalls": [*revise({"n": 1})["toolCalls"], *revise({"n": 2})["toolCalls"]]}
    with FakeMessagesAPI([both, revise({"id": "8"})]) as api:
        service = document([retry()])
        service["connectors"] = [anthropic(api.base_url, thinking="adaptive")]
        async with load(tmp_path, service) as running:
            asked = await send(running, {})
        assert "stored 8" == asked.body
        assert [] == api.refused
        first, second = api.requests[1].body["messages"][-1]["content"]
    assert first["content"].startswith("It failed again: ")
    assert "not applied: one revision at a time" == second["content"]


async def test_a_cancelled_run_ends_in_the_middle_of_the_model_call(tmp_path: Path) -> None:
    gate = Gate()
    with FakeMessagesAPI([{"text": "late", "hold": gate}]) as api:
        block = retry(error=[say("recovered")])
        service = document([block])
        service["connectors"] = [anthropic(api.base_url)]
        async with load(tmp_path, service) as running:
            task = asyncio.create_task(running.invoke("main", {}))
            await gate.reached()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


async def test_two_messages_at_once_are_two_conversations(tmp_path: Path) -> None:
    replies = [
        {**revise({"id": str(n)}), "when": f"request.lastUserText.contains('number-{n}')"}
        for n in range(20)
    ]
    async with load(tmp_path, document([retry()], *replies)) as service:
        results = await asyncio.gather(
            *(service.invoke("main", {"is": f"number-{n}-"}) for n in (0, 3, 5))
        )
    assert ["stored 0", "stored 3", "stored 5"] == [r.message and r.message.body for r in results]


async def test_a_secret_in_the_error_does_not_reach_the_model(tmp_path: Path) -> None:
    with FakeMessagesAPI(["cannot"]) as api:
        service = document([retry({"type": "set-payload", "value": "body[env.API_KEY]"})])
        service["connectors"] = [anthropic(api.base_url)]
        service["env"] = [{"name": "API_KEY", "secret": True}]
        async with load(tmp_path, service, environ={"API_KEY": "hunter2-and-more"}) as running:
            asked = await send(running, {})
        sent = json.dumps(api.requests[0].body)
    assert "hunter2" in asked.error
    assert "[redacted]" in sent
    assert "hunter2" not in sent


async def test_variables_set_in_the_block_reach_an_agent_around_it(tmp_path: Path) -> None:
    """A single tool call works on the agent's own variables, through the message it was given."""
    note = put("note", "'set'")
    agent = {
        "type": "ai-agent",
        "connector": "model",
        "prompt": "Help.",
        "tools": [{"name": "store", "description": "Stores.", "process": [retry(note)]}],
    }
    call = {"toolCalls": [{"name": "store"}]}
    asked = await ask(tmp_path, [agent], call, {"text": "done"}, body={})
    assert "set" == asked.vars["note"]


async def test_a_message_dropped_inside_is_no_failure(tmp_path: Path) -> None:
    asked = await ask(tmp_path, [retry({"type": "filter", "expr": "false"})], body={})
    assert Outcome.DROPPED == asked.result.outcome
    assert [] == asked.requests


@pytest.mark.parametrize(
    ("settings", "place", "text"),
    [
        ({"maxAttempts": 0}, "process[0].maxAttempts", "at least 1"),
        ({"maxAttempts": "many"}, "process[0].maxAttempts", "a whole number"),
        ({"prompt": " "}, "process[0].prompt", "must not be blank"),
        ({"attempts": 1}, "process[0].attempts", "did you mean 'maxAttempts'"),
        ({"process": {"process": []}}, "process[0].process", "expected a list of blocks"),
        ({"error": [{"type": "nope"}]}, "process[0].error[0].type", "unknown block type 'nope'"),
        ({"connector": "x"}, "process[0].connector", 'connector "x" is not configured'),
    ],
)
def test_a_setting_that_cannot_work_is_a_load_error(
    tmp_path: Path, settings: dict[str, Any], place: str, text: str
) -> None:
    with pytest.raises(ConfigError, match=r"service\.yaml:\d+:\d+ flows\.main\.") as found:
        load(tmp_path, document([retry(**settings)]))
    assert f"{place}: " in str(found.value)
    assert text in str(found.value)
