"""Flows: the four outcomes, errors, and what a stranger's block may do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.clock import SystemClock
from flowrt.engine import registry
from flowrt.engine.block import Block, Settings
from flowrt.engine.run import Run
from flowrt.errors import CallError, ConfigError
from flowrt.message import Message, Outcome
from flowrt.observe.trace import Trace
from tests.services import flows, load


class Stop(Block[Settings]):
    """Asks every enclosing chain to end."""

    Settings = Settings

    async def run(self, message: Message, run: Run) -> Message:
        message.stop = True
        return message


class Broken(Block[Settings]):
    """Fails like a library would, without a text."""

    Settings = Settings

    async def run(self, message: Message, run: Run) -> Message:
        raise KeyError


@pytest.fixture(autouse=True)
def foreign_blocks() -> None:
    registry.blocks.add("stop-here", Stop)
    registry.blocks.add("broken", Broken)


STOP = {"type": "stop-here"}
AFTER = {"type": "set-payload", "value": '"after"'}


@pytest.mark.parametrize(
    "chain",
    [
        [STOP, AFTER],
        [{"type": "if", "condition": "true", "then": {"process": [STOP]}}, AFTER],
        [{"type": "switch", "cases": [{"when": "true", "process": [STOP]}]}, AFTER],
        [{"type": "foreach", "items": "[1, 2]", "body": {"process": [STOP]}}, AFTER],
        [{"type": "foreach", "items": "[1]", "mode": "map", "body": {"process": [STOP]}}, AFTER],
        [{"type": "enrich", "body": {"process": [STOP]}}, AFTER],
        [{"type": "handle-errors", "process": [STOP], "error": []}, AFTER],
        [{"type": "flow-ref", "settings": {"flow": "stopping"}}, AFTER],
    ],
)
async def test_a_stop_reaches_the_root_from_everywhere(
    tmp_path: Path, chain: list[dict[str, Any]]
) -> None:
    async with load(tmp_path, flows(main=chain, stopping=[STOP])) as service:
        result = await service.invoke("main", "before")
    assert Outcome.STOPPED == result.outcome
    assert result.message is not None
    assert "after" != result.message.body


async def test_a_failure_is_wrapped_once_for_each_enclosing_block(tmp_path: Path) -> None:
    inner = {"type": "broken", "name": "inner"}
    chain = [{"type": "if", "name": "outer", "condition": "true", "then": {"process": [inner]}}]
    async with load(tmp_path, flows(main=chain)) as service:
        result = await service.invoke("main")
    assert 'block "outer": block "inner": KeyError' == str(result.error)


async def test_a_flows_error_chain_recovers_with_the_outermost_block_named(tmp_path: Path) -> None:
    document = flows(main=[{"type": "set-variable", "settings": {"name": "a", "value": "1"}},
                           {"type": "if", "condition": "true",
                            "then": {"process": [{"type": "broken"}]}}])  # fmt: skip
    document["flows"][0]["error"] = [{"type": "set-payload", "value": "vars.error"}]
    async with load(tmp_path, document) as service:
        result = await service.invoke("main")
    assert result.message is not None
    assert ("main", "if") == (result.message.body["flow"], result.message.body["block"])
    assert 1 == result.message.vars["a"]


async def test_a_failing_error_chain_fails_the_flow(tmp_path: Path) -> None:
    document = flows(main=[{"type": "broken"}])
    document["flows"][0]["error"] = [{"type": "broken"}]
    async with load(tmp_path, document) as service:
        result = await service.invoke("main")
    assert 'error path: block "broken": KeyError' == str(result.error)


async def test_an_unknown_flow_names_the_nearest(tmp_path: Path) -> None:
    async with load(tmp_path, flows(chat=[], forget=[])) as service:
        with pytest.raises(CallError, match="did you mean 'chat'"):
            await service.invoke("chta")
        with pytest.raises(CallError, match="say which with --flow"):
            await service.invoke()


def test_every_fault_of_a_file_is_in_one_report(tmp_path: Path) -> None:
    document = flows(
        main=[
            {"type": "set-paylod", "value": "1"},
            {"type": "set-payload", "value": "bdy.x"},
            {"type": "if", "condition": "true", "then": {"process": [{"type": "log", "lvl": 1}]}},
            {"type": "flow-ref", "settings": {"flow": "mian"}},
            {"type": "ai-agent", "connector": "none", "prompt": "x"},
        ]
    )
    with pytest.raises(ConfigError) as found:
        load(tmp_path, document)
    text = str(found.value)
    assert [
        "did you mean 'set-payload'",
        "unknown name 'bdy'",
        "unknown key 'lvl'",
        "did you mean 'main'",
        'connector "none" is not configured',
    ] == [
        part
        for part in (
            "did you mean 'set-payload'",
            "unknown name 'bdy'",
            "unknown key 'lvl'",
            "did you mean 'main'",
            'connector "none" is not configured',
        )
        if part in text
    ]
    assert 5 == len(found.value.faults)
    assert all(fault.position and fault.position.line for fault in found.value.faults)


@pytest.mark.parametrize("key", ["source", "workers", "error"])
def test_a_sub_flow_may_not_be_a_root_flow(tmp_path: Path, key: str) -> None:
    block = {"type": "if", "condition": "true", "then": {"process": [], key: {}}}
    with pytest.raises(ConfigError, match="sub-flow must not declare"):
        load(tmp_path, flows(main=[block]))


async def test_traces_say_what_ran_with_its_address(tmp_path: Path) -> None:
    lines: list[str] = []
    inner = {"type": "set-payload", "value": '"x"', "name": "leaf"}
    chain = [{"type": "if", "condition": "true", "then": {"process": [inner]}}]
    async with load(tmp_path, flows(main=chain)) as service:
        await service.invoke("main", trace=Trace(lines.append, SystemClock()))
    records = [json.loads(line) for line in lines]
    assert list(range(1, 7)) == [record["seq"] for record in records]
    assert [
        "flow.started",
        "block.pre-invoke",
        "block.pre-invoke",
        "block.post-invoke",
        "block.post-invoke",
        "flow.completed",
    ] == [record["kind"] for record in records]
    assert "main.if[then].leaf" == records[2]["path"]
    assert 1 == len({record["traceId"] for record in records})


async def test_a_payload_too_large_for_a_trace_is_left_out_whole(tmp_path: Path) -> None:
    lines: list[str] = []
    async with load(tmp_path, flows(main=[])) as service:
        await service.invoke("main", "x" * 40_000, trace=Trace(lines.append, SystemClock()))
    record = json.loads(lines[0])
    assert record["truncated"]
    assert "body" not in record


async def test_of_variables_too_large_for_a_trace_the_largest_are_left_out(tmp_path: Path) -> None:
    lines: list[str] = []
    variables = {"a": "x" * 40_000, "b": 1, "c": "x" * 20_000, "d": "x" * 20_000}
    async with load(tmp_path, flows(main=[])) as service:
        await service.invoke("main", 1, variables, trace=Trace(lines.append, SystemClock()))
    record = json.loads(lines[0])
    assert record["truncated"]
    assert (1, ["b", "c"]) == (record["body"], list(record["vars"]))


def test_a_faulty_connector_is_reported_once_and_not_at_each_block_that_uses_it(
    tmp_path: Path,
) -> None:
    document = flows(main=[{"type": "ai-agent", "connector": "claude", "prompt": "x"}])
    document["connectors"] = [
        {"name": "claude", "type": "llm-anthropic", "settings": {"apiKey": ""}}
    ]
    with pytest.raises(ConfigError) as found:
        load(tmp_path, document)
    assert ["connectors.claude.settings.apiKey"] == [fault.path for fault in found.value.faults]
