"""Suites that start sources too: what flows send each other, and what time brings about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.services import agent, flows
from tests.testing.suite.suites import run, run_one, told

PUBLISH = {"type": "publish-event", "settings": {"subject": '"orders"'}}
KEEP = {"type": "object-write", "name": "keep", "settings": {"key": "body.id", "value": "body"}}


def shop() -> dict[str, Any]:
    """`main` publishes an order, `stock` keeps it, `look` reads it."""
    document = flows(
        main=[PUBLISH],
        stock=[KEEP],
        look=[{"type": "object-read", "settings": {"key": "body.id"}}],
    )
    document["flows"][1]["source"] = {"type": "events", "settings": {"subject": "orders"}}
    return document


ORDER = {"data": {"id": "o-1"}}


async def test_sources_do_not_start_unless_the_suite_says_so(tmp_path: Path) -> None:
    case = {"input": ORDER, "spies": {"stock.keep": {"count": 0}}}
    result = await run_one(tmp_path, shop(), case)
    assert "passed" == result.status, told(result)


async def test_what_a_flow_gets_from_a_source_is_seen_by_spies_and_memory(tmp_path: Path) -> None:
    case = {
        "input": ORDER,
        "spies": {"stock.keep": {"count": 1, "records": [{"input": {"body": {"id": "o-1"}}}]}},
        "memory": {"objects": {"o-1": {"value": {"id": "o-1"}}}},
    }
    result = await run_one(tmp_path, shop(), case, sources=True)
    assert "passed" == result.status, told(result)


async def test_a_case_says_otherwise_than_its_suite(tmp_path: Path) -> None:
    started = {"input": ORDER, "sources": True, "spies": {"stock.keep": {"count": 1}}}
    quiet = {"input": ORDER, "sources": False, "spies": {"stock.keep": {"count": 0}}}
    for over, case in ((False, started), (True, quiet)):
        result = await run_one(tmp_path, shop(), case, sources=over)
        assert "passed" == result.status, told(result)


async def test_a_turn_finds_what_the_one_before_it_has_set_going(tmp_path: Path) -> None:
    look = {"flow": "look", "input": ORDER, "expect": {"body": {"id": "o-1"}}}
    result = await run_one(tmp_path, shop(), {"turns": [{"input": ORDER}, look]}, sources=True)
    assert "passed" == result.status, told(result)


async def test_a_source_that_is_not_installed_says_why_the_case_cannot_run(tmp_path: Path) -> None:
    document = shop()
    document["flows"][1]["source"]["type"] = "carrier-pigeon"
    result = await run_one(tmp_path, document, {"input": ORDER}, sources=True)
    assert "errored" == result.status
    assert "carrier-pigeon" in told(result)


async def test_traces_have_what_sources_bring(tmp_path: Path) -> None:
    suite = {"flow": "main", "sources": True, "cases": [{"name": "it", "input": ORDER}]}
    traces = tmp_path / "traces"
    traces.mkdir()
    (result,) = await run(tmp_path, shop(), suite, traces=traces)
    assert "passed" == result.status, told(result)
    (written,) = traces.iterdir()
    assert '"source.receive"' in written.read_text()


COLLECT = {
    "type": "aggregate",
    "correlation": "body.order",
    "completionSize": "3",
    "completionTimeout": "10m",
}
DONE = {"type": "object-write", "name": "done", "settings": {"key": "vars.aggregateKey"}}


def part(number: int, **rest: Any) -> dict[str, Any]:
    return {"input": {"data": {"order": "o", "n": number}}, **rest}


async def test_time_that_passes_releases_a_group_before_the_next_turn(tmp_path: Path) -> None:
    turns = [part(1), part(2, after="9m"), part(3, after="2m")]
    spies = {
        "main.done": {
            "count": 1,
            "records": [
                {
                    "input": {
                        "body": [{"order": "o", "n": 1}, {"order": "o", "n": 2}],
                        "vars": {"aggregateReason": "timeout", "aggregateCount": 2},
                    }
                }
            ],
        }
    }
    document = flows(main=[COLLECT, DONE])
    for times in ({}, {"now": "2026-01-02T03:04:05Z"}):
        case = {"turns": turns, "spies": spies, **times}
        result = await run_one(tmp_path, document, case, sources=True)
        assert "passed" == result.status, told(result)
        assert result.elapsed < 5


async def test_an_agent_behind_a_source_is_watched_in_the_turn_that_reached_it(
    tmp_path: Path,
) -> None:
    document = agent("https://llm.invalid")
    document["flows"][0]["source"] = {"type": "events", "settings": {"subject": "orders"}}
    document["flows"].append({"name": "main", "process": [PUBLISH]})
    asked = {"requests": [{"that": ["request.lastUserText == 'Hi.'"]}]}
    said = {"input": {"data": {"thread": "t", "message": "Hi."}}}
    turns = [
        {**said, **asked, "events": {"done": {"count": 1}}},
        {**said, **asked, "events": {"done": {"count": 1}}},
        {"flow": "forget", **said, "events": {"done": {"count": 0}}},
    ]
    models = {"claude": [{"text": "Hello."}, {"text": "Again."}]}
    result = await run_one(tmp_path, document, {"turns": turns}, models=models, sources=True)
    assert "passed" == result.status, told(result)


async def test_many_cases_side_by_side_each_have_messages_of_their_own(tmp_path: Path) -> None:
    case = {"input": ORDER, "spies": {"stock.keep": {"count": 1}}}
    cases = [{"name": str(number), **case} for number in range(40)]
    suite = {"flow": "main", "sources": True, "cases": cases}
    results = await run(tmp_path, shop(), suite, parallel=8)
    assert {"passed"} == {result.status for result in results}


async def test_a_source_from_outside_does_not_start(tmp_path: Path) -> None:
    """A suite would take a port, and time that it lets pass would fire the schedule."""
    service = flows(main=[{"type": "set-payload", "value": "1"}])
    service["flows"].append(
        {
            "name": "tick",
            "source": {"type": "cron", "settings": {"schedule": "@every 1s"}},
            "process": [{"type": "object-write", "settings": {"key": '"k"', "value": "1"}}],
        }
    )
    case = {
        "turns": [{"after": "1h"}, {"after": "1h"}],
        "memory": {"objects": {"k": {"absent": True}}},
    }
    result = await run_one(tmp_path, service, case, sources=True)
    assert "passed" == result.status, told(result)


@pytest.mark.parametrize("mode", ["events", "socket"])
async def test_a_bot_is_called_without_slack_however_its_events_come(
    tmp_path: Path, mode: str
) -> None:
    document = flows(main=[{"type": "set-payload", "name": "step", "value": "vars.slack.text"}])
    document["flows"][0]["source"] = {"type": "slack", "settings": {"mode": mode}}
    tokens = {"botToken": "xoxb-x", "signingSecret": "s", "appToken": "xapp-x"}
    document["connectors"] = [{"name": "team", "type": "slack", "settings": tokens}]
    case = {"input": {"vars": {"slack": {"text": "hi"}}}, "expect": {"body": "hi"}}
    for sources in (False, True):
        result = await run_one(tmp_path, document, case, sources=sources)
        assert "passed" == result.status, told(result)
