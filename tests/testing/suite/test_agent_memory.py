"""What agents with an `agentId` have kept, in a suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agent.remembering import remembering
from tests.testing.suite.suites import run_one, told

NOTE = {"name": "remember", "input": {"name": "city", "value": "Berlin"}}
SCRIPT: list[dict[str, Any]] = [{"toolCalls": [NOTE]}, {"text": "Noted."}]
CASE: dict[str, Any] = {
    "flow": "chat",
    "input": {"data": {"thread": "t", "user": "ann", "message": "I live in Berlin."}},
}


def helper() -> dict[str, Any]:
    return remembering("http://127.0.0.1:9", userMemory=True)


async def test_threads_of_an_agent_and_facts_about_a_user_are_looked_at(tmp_path: Path) -> None:
    memory = {
        "threads": {
            "t": {
                "agent": "helper",
                "that": [
                    "transcript.size() == 4",
                    'record.user == "ann"',
                    'record.turns.map(t, t.text) == ["I live in Berlin.", "Noted."]',
                    'record.turns[1].role == "assistant"',
                ],
            },
            "other": {"agent": "helper", "that": ["record == null", "transcript.size() == 0"]},
        },
        "facts": {
            "helper": {
                "ann": {"that": ['facts == {"city": "Berlin"}']},
                "bob": {"that": ["facts.size() == 0"]},
            }
        },
    }
    case = {**CASE, "memory": memory}
    result = await run_one(tmp_path, helper(), case, models={"claude": SCRIPT})
    assert "passed" == result.status, told(result)


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (
            {"facts": {"helper": {"ann": {"that": ['facts.city == "Rome"']}}}},
            'memory.facts.helper.ann: the facts are\n{"city": "Berlin"}',
        ),
        (
            {"threads": {"t": {"agent": "helper", "that": ['record.title == "x"']}}},
            "memory.threads.t: the record is\n",
        ),
        (
            {"threads": {"t": {"agent": "another", "that": ["record != null"]}}},
            "memory.threads.t: the record is\nnull",
        ),
    ],
)
async def test_what_was_kept_is_shown_where_it_is_not_so(
    memory: dict[str, Any], said: str, tmp_path: Path
) -> None:
    case = {**CASE, "memory": memory}
    result = await run_one(tmp_path, helper(), case, models={"claude": SCRIPT})
    assert "failed" == result.status
    assert said in told(result)
