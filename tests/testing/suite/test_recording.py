"""Replies of a real provider are recorded once and replayed; a changed request is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.testing import FakeMessagesAPI, FakeReply
from tests.services import agent
from tests.testing.suite.suites import run, told

ASK = {"data": {"thread": "t", "message": "Hi."}}


def chat(base_url: str, **settings: Any) -> dict[str, Any]:
    document = agent(base_url, connection={"apiKey": "sk-ant-0123456789abcdef0123"}, **settings)
    document["flows"][0]["name"] = "main"
    return document


def suite(message: str = "Hi.", answer: str = "Hello.") -> dict[str, Any]:
    turn = {"input": {"data": {"thread": "t", "message": message}}, "expect": {"body": answer}}
    return {"flow": "main", "cases": [{"name": "it", "turns": [turn, turn]}]}


async def record(folder: Path, asked: dict[str, Any], *replies: FakeReply) -> str:
    """Record a suite on a fake of the provider and give where that was."""
    with FakeMessagesAPI() as api:
        api.add(*replies)
        (result,) = await run(folder, chat(api.base_url), asked, record=True)
    assert "passed" == result.status, told(result)
    return api.base_url


HELLO = (FakeReply(text="Hello."), FakeReply(text="Hello."))


async def test_what_was_recorded_is_replayed_without_the_provider(tmp_path: Path) -> None:
    url = await record(tmp_path, suite(), *HELLO)
    (result,) = await run(tmp_path, chat(url), suite())
    assert "passed" == result.status, told(result)


async def test_a_request_that_differs_fails_with_the_first_difference(tmp_path: Path) -> None:
    url = await record(tmp_path, suite(), *HELLO)
    (result,) = await run(tmp_path, chat(url), suite("Hi!"))
    assert "failed" == result.status
    assert (
        "a request to 'claude' differs from the recorded one at "
        'request.messages[0].content[0].text: recorded was "Hi.", now it is "Hi!"'
    ) in told(result)


async def test_a_request_beyond_the_recorded_ones_fails(tmp_path: Path) -> None:
    url = await record(tmp_path, suite(), *HELLO)
    longer = suite()
    longer["cases"][0]["turns"].append(longer["cases"][0]["turns"][0])
    (result,) = await run(tmp_path, chat(url), longer)
    assert "asked more often than was recorded" in told(result)


async def test_a_recording_holds_no_secret(tmp_path: Path) -> None:
    secret = "xoxb-1234567890-abcdefgh"
    said = suite(f"My token is {secret}.", f"I keep {secret}.")
    answer = FakeReply(text=f"I keep {secret}.")
    url = await record(tmp_path, said, answer, answer)
    text = (tmp_path / "s_test.recording.json").read_text()
    assert secret not in text
    assert "sk-ant" not in text
    masked = suite(f"My token is {secret}.", "I keep [redacted].")
    (result,) = await run(tmp_path, chat(url), masked)
    assert "passed" == result.status, told(result)


async def test_a_failure_of_the_provider_is_replayed_too(tmp_path: Path) -> None:
    case = {"name": "it", "input": ASK, "expect": {"error": "invalid_request_error"}}
    asked = {"flow": "main", "cases": [case]}
    url = await record(tmp_path, asked, FakeReply(error=400, message="no such thing"))
    (result,) = await run(tmp_path, chat(url), asked)
    assert "passed" == result.status, told(result)


async def test_recording_one_case_leaves_the_others(tmp_path: Path) -> None:
    url = await record(tmp_path, suite(), *HELLO)
    more = suite()
    more["cases"].append({"name": "new", "input": ASK})
    with FakeMessagesAPI() as api:
        api.add(FakeReply(text="New."))
        await run(tmp_path, chat(api.base_url), more, record=True, only=["new"])
    stored = json.loads((tmp_path / "s_test.recording.json").read_text())
    assert ["it", "new"] == sorted(stored["cases"])
    results = await run(tmp_path, chat(url), more)
    assert ["passed", "passed"] == [result.status for result in results]


@pytest.mark.parametrize("text", ["{", '{"version": 99, "cases": {}}', "[]"])
async def test_a_recording_that_cannot_be_read_is_said(tmp_path: Path, text: str) -> None:
    from flowrt.testing.suite.runner import SuiteOptions, run_suites
    from tests.testing.suite.suites import write

    path = write(tmp_path, chat("http://127.0.0.1:9"), suite())
    (tmp_path / "s_test.recording.json").write_text(text)
    (result,) = await run_suites([str(path)], SuiteOptions())
    assert "recording" in result.error
