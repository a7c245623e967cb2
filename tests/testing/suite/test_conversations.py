"""Conversations in suites: played models, turns, what was asked, told and stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.testing.suite.runner import SuiteOptions, run_suites
from tests.services import agent, flows
from tests.testing.suite.suites import run, run_one, told, write

URL = "https://llm.invalid"


def chat(**settings: Any) -> dict[str, Any]:
    document = agent(URL, **settings)
    document["flows"][0]["name"] = "main"
    return document


def say(text: str, thread: str = "t") -> dict[str, Any]:
    return {"data": {"thread": thread, "message": text}}


SCRIPT = [
    {"when": 'request.lastUserText.contains("name is")', "text": "Hello Sam."},
    {"when": 'request.text.contains("My name is Sam")', "text": "Sam"},
    {"text": "Who are you?"},
]


async def test_turns_share_one_store_and_their_requests_are_looked_at(tmp_path: Path) -> None:
    turns = [
        {"input": say("My name is Sam."), "expect": {"body": "Hello Sam."}},
        {
            "input": say("Who am I?"),
            "expect": {"body": "Sam"},
            "requests": [
                {"connector": "claude", "that": ["request.messages.size() == 3"]},
            ],
            "events": {"turn_end": {"count": 1}, "compaction_end": {"count": 0}},
        },
        {"flow": "forget", "input": say("")},
        {"input": say("Who am I?"), "expect": {"body": "Who are you?"}},
    ]
    memory = {
        "threads": {
            "t": {"that": ["transcript.size() == 2", "transcript[1].text == 'Who are you?'"]},
            "other": {"that": ["transcript.size() == 0"]},
        }
    }
    case = {"turns": turns, "memory": memory}
    result = await run_one(tmp_path, chat(), case, models={"claude": SCRIPT})
    assert "passed" == result.status, told(result)


async def test_cases_do_not_see_each_others_conversations(tmp_path: Path) -> None:
    cases = [
        {"name": f"case {number}", "input": say("Who am I?"), "expect": {"body": "Who are you?"}}
        for number in range(8)
    ]
    cases.insert(0, {"name": "first", "input": say("My name is Sam.")})
    suite = {"flow": "main", "models": {"claude": SCRIPT}, "cases": cases}
    for parallel in (1, 8):
        results = await run(tmp_path, chat(), suite, parallel=parallel)
        assert {"passed"} == {result.status for result in results}


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        ({"requests": [{"that": ["request.messages.size() == 9"]}]}, "requests[0].that[0]"),
        ({"requests": [{}, {}]}, "wanted  2 requests or more\ngot     1"),
        ({"requests": [{"connector": "gpt"}]}, 'wanted  "gpt"\ngot     "claude"'),
        ({"events": {"done": {"count": 3}}}, "events.done.count\nwanted  3\ngot     1"),
        (
            {"events": {"turn_end": {"records": [{"that": ["event.iteration > 5"]}]}}},
            "events.turn_end.records[0].that[0]",
        ),
        ({"memory": {"threads": {"t": {"that": ["transcript.size() == 1"]}}}}, "the transcript is"),
        ({"memory": {"objects": {"k": {"value": 1}}}}, "wanted  1\ngot     nothing"),
    ],
)
async def test_what_is_not_so_is_shown(turn: Any, text: str, tmp_path: Path) -> None:
    case = {"input": say("Hi."), **turn}
    result = await run_one(tmp_path, chat(), case, models={"claude": SCRIPT})
    assert "failed" == result.status
    assert text in told(result)


async def test_a_request_that_nothing_answers_fails_the_case_and_is_shown(tmp_path: Path) -> None:
    recovering = chat()
    (block,) = recovering["flows"][0]["process"]
    recovering["flows"][0]["process"] = [
        {
            "type": "handle-errors",
            "process": [block],
            "error": [{"type": "set-payload", "value": '"sorry"'}],
        }
    ]
    case = {"input": say("Hi there."), "expect": {"body": "sorry"}}
    result = await run_one(tmp_path, recovering, case, models={"claude": []})
    assert "failed" == result.status
    assert "no answer for request 1" in told(result)
    assert 'user: [{"type": "text", "text": "Hi there."}]' in told(result)


async def test_a_connector_without_a_stand_in_never_reaches_its_provider(tmp_path: Path) -> None:
    result = await run_one(tmp_path, chat(), {"input": say("Hi.")})
    assert "failed" == result.status
    assert "connector 'claude' would call a real provider" in told(result)
    assert "models: {claude: [...]}" in told(result)


async def test_what_only_a_played_connector_needs_need_not_be_set(tmp_path: Path) -> None:
    service = chat(connection={"apiKey": "${LLM_KEY}"})
    service["env"] = [{"name": "LLM_KEY", "required": True}, {"name": "OTHER", "default": "x"}]
    case = {"input": say("Hi.")}
    played = await run_one(tmp_path, service, case, models={"claude": SCRIPT})
    assert "passed" == played.status, told(played)
    real = await run_one(tmp_path, service, case)
    assert "errored" == real.status
    assert '"LLM_KEY" is not set' in real.error


async def test_a_model_for_a_connector_that_is_not_there_is_no_verdict(tmp_path: Path) -> None:
    result = await run_one(tmp_path, chat(), {"input": say("Hi.")}, models={"cluade": SCRIPT})
    assert "errored" == result.status
    assert "the service has no connector 'cluade'; did you mean 'claude'?" in result.error


async def test_a_played_model_can_call_tools_think_fail_and_report_usage(tmp_path: Path) -> None:
    script = [
        {"thinking": "Let me see.", "toolCalls": [{"name": "echo", "input": {"a": 1}}]},
        {"text": "Done.", "usage": {"inputTokens": 7, "outputTokens": 2}},
        {"error": 529, "message": "overloaded"},
    ]
    turns = [
        {
            "input": say("Go."),
            "expect": {"body": "Done."},
            "events": {
                "tool_call": {"records": [{"that": ["event.input.a == 1"]}]},
                "turn_end": {
                    "count": 2,
                    "records": [{"that": ["true"]}, {"that": ["event.usage.inputTokens == 7"]}],
                },
            },
        },
        {"input": say("Again."), "expect": {"error": "overloaded"}},
    ]
    result = await run_one(tmp_path, chat(), {"turns": turns}, models={"claude": script})
    assert "passed" == result.status, told(result)


async def test_the_clock_stands_where_the_suite_puts_it_and_moves_on(tmp_path: Path) -> None:
    service = flows(main=[{"type": "set-payload", "value": "string(now)"}])
    turns: list[Any] = [
        {"expect": {"body": "2026-01-02T03:04:05Z"}},
        {"after": "90m", "expect": {"body": "2026-01-02T04:34:05Z"}},
        {"now": "2027-01-01T00:00:00Z", "expect": {"body": "2027-01-01T00:00:00Z"}},
    ]
    result = await run_one(tmp_path, service, {"turns": turns}, now="2026-01-02T03:04:05Z")
    assert "passed" == result.status, told(result)


async def test_ids_are_the_same_in_every_run_of_a_case(tmp_path: Path) -> None:
    service = flows(main=[{"type": "set-payload", "value": "[eventID, uuid()]"}])
    suite = {"flow": "main", "cases": [{"name": "a"}, {"name": "b"}]}
    first = [case.outcome for case in await run(tmp_path, service, suite, parallel=2)]
    again = [case.outcome for case in await run(tmp_path, service, suite, parallel=1)]
    assert first == again
    assert first[0] == first[1]


async def test_what_runs_in_the_background_is_seen_by_the_case(tmp_path: Path) -> None:
    write = {"type": "object-write", "settings": {"key": '"k"', "value": "body.n"}}
    service = flows(
        main=[{"type": "flow-ref", "settings": {"flow": "aside", "oneWay": True}}], aside=[write]
    )
    case = {
        "input": {"data": {"n": 5}},
        "spies": {"aside.object-write": {"count": 1}},
        "memory": {"objects": {"k": {"value": 5}, "other": {"absent": True}}},
    }
    result = await run_one(tmp_path, service, case)
    assert "passed" == result.status, told(result)


async def test_log_lines_of_a_case_are_kept_for_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = flows(main=[{"type": "log", "message": '"order " + body.id'}])
    result = await run_one(tmp_path, service, {"input": {"data": {"id": "x"}}})
    assert ["order x"] == [line["event"] for line in result.logs]
    assert "" == capsys.readouterr().err


PAY = {
    "name": "pay",
    "description": "Pays.",
    "authorize": "true",
    "process": [{"type": "set-payload", "value": '"paid"'}],
}
GATED = {
    "authorizeId": "has(body.answer) ? body.answer : null",
    "authorizeAllow": "body.allow",
    "events": {"process": []},
    "tools": [PAY],
}
PAYING = [
    {"when": 'request.lastUserText.contains("paid")', "text": "Paid."},
    {"when": 'request.lastUserText.contains("authorized")', "text": "Not paid."},
    {"when": "true", "toolCalls": [{"name": "pay"}]},
]
YES = {
    "on": "tool_authorization",
    "data": '{"thread": "t", "answer": event.authorizationId, "allow": true}',
}


async def pay(tmp_path: Path, *meanwhile: dict[str, Any], **case: Any) -> Any:
    case = {"input": say("Pay."), "meanwhile": list(meanwhile), **case}
    return await run_one(tmp_path, chat(**GATED), case, models={"claude": PAYING})


async def test_a_message_can_be_sent_while_a_turn_waits(tmp_path: Path) -> None:
    yes = YES | {"expect": {"body": {}}}
    result = await pay(tmp_path, yes, expect={"body": "Paid."})
    assert "passed" == result.status, told(result)


async def test_time_can_pass_while_a_turn_waits(tmp_path: Path) -> None:
    late = {"data": YES["data"], "after": "5m"}
    result = await pay(
        tmp_path,
        {"on": "tool_authorization", "after": "299s"},
        late,
        expect={"body": "Not paid."},
    )
    assert "passed" == result.status, told(result)


async def test_what_comes_of_a_message_sent_meanwhile_is_looked_at(tmp_path: Path) -> None:
    wrong = YES | {"expect": {"body": 1}}
    result = await pay(tmp_path, wrong, expect={"body": "Paid."})
    assert "meanwhile[0].expect.body" in told(result)


async def test_an_event_that_does_not_come_fails_the_case(tmp_path: Path) -> None:
    second = {"on": "tool_authorization", "after": "1s"}
    result = await pay(tmp_path, YES, second, expect={"body": "Paid."})
    assert "failed" == result.status
    assert "meanwhile[1].on: its event did not come" in told(result)
    assert "tool_result" in told(result)


async def test_a_body_that_cannot_be_made_fails_the_case(tmp_path: Path) -> None:
    result = await pay(tmp_path, {"on": "turn_start", "data": "event.nothing"}, YES)
    assert "meanwhile[0].data" in told(result)
    assert "no such key: nothing" in told(result)


async def test_events_up_to_the_one_waited_for_are_at_hand(tmp_path: Path) -> None:
    data = (
        '{"thread": "t", "allow": events.size() == 4 && events[0].type == "turn_start", '
        '"answer": events.filter(e, "authorizationId" in e)[0].authorizationId}'
    )
    result = await pay(
        tmp_path, {"on": "tool_authorization", "data": data}, expect={"body": "Paid."}
    )
    assert "passed" == result.status, told(result)


async def test_in_a_turn_of_several_too(tmp_path: Path) -> None:
    turns = [
        {"input": say("Pay."), "meanwhile": [YES], "expect": {"body": "Paid."}},
        {"input": say("Pay."), "meanwhile": [YES | {"flow": "main"}], "expect": {"body": "Paid."}},
    ]
    result = await run_one(tmp_path, chat(**GATED), {"turns": turns}, models={"claude": PAYING})
    assert "passed" == result.status, told(result)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"data": "1"}, "the first entry of meanwhile needs on"),
        ({"on": "tool_authorisation", "data": "1"}, "did you mean 'tool_authorization'?"),
        ({"on": "done"}, "nothing happens: give data, or after"),
        ({"on": "done", "after": "1s", "expect": {"body": 1}}, "give data"),
        ({"on": "done", "data": "evnt.x"}, "did you mean 'event'?"),
    ],
)
async def test_a_meanwhile_that_cannot_work_is_a_fault_of_the_suite(
    tmp_path: Path, entry: dict[str, Any], text: str
) -> None:
    suite = {"flow": "main", "cases": [{"name": "it", "meanwhile": [entry]}]}
    (result,) = await run_suites([str(write(tmp_path, chat(), suite))], SuiteOptions())
    assert text in result.error
