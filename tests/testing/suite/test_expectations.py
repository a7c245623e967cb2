"""What a case may expect of a flow, and what is said where it is not so (dialect 7.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.services import flows
from tests.testing.suite.suites import COUNTING, run_one, told

FAILING = flows(main=[{"type": "set-payload", "name": "bad", "value": "body.missing"}])
DROPPING = flows(main=[{"type": "filter", "expr": "false"}])
VARIABLE = {"type": "set-variable", "settings": {"name": "a", "value": '{"x": [1, null]}'}}
BODY = {"n": 1, "text": "n is 1"}


@pytest.mark.parametrize(
    ("service", "expect"),
    [
        (COUNTING, None),
        (COUNTING, {"body": BODY}),
        (COUNTING, {"body": {"n": 1.0, "text": "n is 1"}}),
        (COUNTING, {"that": ["body.n == 1", 'body.text.endsWith("1")', "size(eventID) == 32"]}),
        (FAILING, {"error": "no such key: missing"}),
        (DROPPING, {"dropped": True}),
        (flows(main=[VARIABLE]), {"vars": {"a": {"x": [1, None]}}}),
        (flows(main=[VARIABLE, {"type": "set-payload", "value": "null"}]), {"body": None}),
    ],
)
async def test_a_case_passes_where_all_is_as_it_says(
    service: Any, expect: Any, tmp_path: Path
) -> None:
    case: dict[str, Any] = {"input": {"data": {"n": 1}}}
    if expect is not None:
        case["expect"] = expect
    result = await run_one(tmp_path, service, case)
    assert "passed" == result.status, told(result)


@pytest.mark.parametrize(
    ("service", "expect", "text"),
    [
        (COUNTING, {"body": {"n": 2, "text": "n is 1"}}, "expect.body.n\nwanted  2\ngot     1"),
        (COUNTING, {"body": {"n": "1", "text": "n is 1"}}, "only the type differs: a text is"),
        (COUNTING, {"body": {"n": True, "text": "n is 1"}}, "wanted  true\ngot     1"),
        (COUNTING, {"body": {"n": 1}}, "expect.body.text\nwanted  nothing: the key is not expec"),
        (COUNTING, {"body": {**BODY, "more": 1}}, "got     nothing: there is no such key"),
        (COUNTING, {"body": [1]}, "expect.body\nwanted  [1]"),
        (COUNTING, {"vars": {"a": 1}}, "no such variable (there are none)"),
        (COUNTING, {"that": ["body.n > 1"]}, "expect.that[0]\nwanted  body.n > 1\ngot     false"),
        (COUNTING, {"that": ["body.m > 1"]}, "no such key: m"),
        (COUNTING, {"error": "boom"}, 'got     completed with the body {"n": 1'),
        (COUNTING, {"dropped": True}, "wanted  dropped\ngot     completed"),
        (FAILING, None, 'expect: the flow failed\nblock "bad": '),
        (FAILING, {"error": "boom"}, 'wanted  an error with "boom"\ngot     "block'),
        (FAILING, {"dropped": True}, "the flow failed"),
        (DROPPING, None, "the message was dropped"),
        (DROPPING, {"error": "x"}, "got     dropped"),
        (flows(main=[VARIABLE]), {"vars": {"a": {"x": [1]}}}, "vars.a.x\nwanted  1 items"),
    ],
)
async def test_a_case_fails_and_says_where_what_was_wanted_and_what_came(
    service: Any, expect: Any, text: str, tmp_path: Path
) -> None:
    case: dict[str, Any] = {"input": {"data": {"n": 1}}}
    if expect is not None:
        case["expect"] = expect
    result = await run_one(tmp_path, service, case)
    assert "failed" == result.status
    assert text in told(result)


async def test_a_condition_that_is_neither_true_nor_false_is_no_verdict(tmp_path: Path) -> None:
    result = await run_one(
        tmp_path, COUNTING, {"input": {"data": {"n": 1}}, "expect": {"that": ["body.n"]}}
    )
    assert "errored" == result.status
    assert "expect.that[0]: 'body.n' is int and not true or false" in result.error


async def test_conditions_do_not_see_the_environment(tmp_path: Path) -> None:
    case = {"input": {"data": {"n": 1}}, "expect": {"that": ["env.A == '1'"]}, "env": {"A": "1"}}
    service = COUNTING | {"env": [{"name": "A"}]}
    assert "no such key: A" in told(await run_one(tmp_path, service, case))


async def test_a_flow_that_takes_longer_than_the_timeout_fails(tmp_path: Path) -> None:
    models = {"m": [{"text": "late", "delay": 60}]}
    agent = {"type": "ai-agent", "connector": "m", "prompt": "Hi.", "input": "'x'"}
    service = flows(main=[agent]) | {
        "connectors": [{"name": "m", "type": "llm-anthropic", "settings": {"apiKey": "k"}}]
    }
    result = await run_one(tmp_path, service, {"timeout": "20ms"}, models=models)
    assert "the flow took longer than the timeout of 0.02s" in told(result)


SPY = "main.foreach[body].step"


def looping() -> dict[str, Any]:
    body = {"process": [{"type": "set-payload", "name": "step", "value": "10 / vars.item"}]}
    return flows(main=[{"type": "foreach", "items": "body", "body": body}])


async def test_spies_count_and_look_at_each_crossing(tmp_path: Path) -> None:
    records = [
        {"input": {"vars": {"item": 5}, "body": [5, 2]}, "output": {"body": 2}},
        {"input": {"that": ["vars.item == 2"]}, "output": {"that": ["body == 5"]}},
    ]
    case = {"input": {"data": [5, 2]}, "spies": {SPY: {"count": 2, "records": records}}}
    result = await run_one(tmp_path, looping(), case)
    assert "passed" == result.status, told(result)


@pytest.mark.parametrize(
    ("spy", "text"),
    [
        ({"count": 1}, f"spies.{SPY}.count\nwanted  1\ngot     2"),
        ({"records": [{}, {}, {}]}, "records\nwanted  3 or more\ngot     2"),
        ({"records": [{"output": {"body": 3}}]}, "records[0].output.body\nwanted  3\ngot     2"),
        ({"records": [{"dropped": True}]}, "wanted  dropped\ngot     the body 2"),
        ({"records": [{"error": "x"}]}, 'an error with "x"\ngot     the body 2'),
        ({"records": [{}, {"output": {}}]}, "wanted  an output\ngot     the error"),
    ],
)
async def test_a_spy_that_saw_something_else_says_what(spy: Any, text: str, tmp_path: Path) -> None:
    case = {"input": {"data": [5, 0]}, "spies": {SPY: spy}, "expect": {"error": "step"}}
    result = await run_one(tmp_path, looping(), case)
    assert "failed" == result.status
    assert text in told(result)


async def test_an_address_that_is_none_is_no_verdict(tmp_path: Path) -> None:
    result = await run_one(tmp_path, looping(), {"spies": {"main.foreach[body].stp": {}}})
    assert "errored" == result.status
    assert f"did you mean '{SPY}'" in result.error


async def test_mocks_are_of_the_suite_and_over_them_of_the_case(tmp_path: Path) -> None:
    mocks: dict[str, Any] = {"main.step": {"default": {"body": "suite's"}}}
    data = {"input": {"data": {"n": 1}}}
    theirs = await run_one(tmp_path, COUNTING, data | {"expect": {"body": "suite's"}}, mocks=mocks)
    mine = {"mocks": {"main.step": {"default": {"body": "case's"}}}, "expect": {"body": "case's"}}
    own = await run_one(tmp_path, COUNTING, data | mine, mocks=mocks)
    lifted = {"mocks": {"main.step": None}, "expect": {"body": BODY}}
    none = await run_one(tmp_path, COUNTING, data | lifted, mocks=mocks)
    assert ["passed"] * 3 == [theirs.status, own.status, none.status]


async def test_raw_content_is_sent_as_it_is(tmp_path: Path) -> None:
    lines = {"type": "split", "mode": "lines"}
    write = {"type": "object-write", "settings": {"key": "body", "value": "vars.groupIndex"}}
    case = {
        "input": {"data": "a\nb\n", "contentType": "text/plain"},
        "memory": {"objects": {"a": {"value": 0}, "b": {"value": 1}}},
    }
    result = await run_one(tmp_path, flows(main=[lines, write]), case)
    assert "passed" == result.status, told(result)
