from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowrt.errors import RequestInvalid
from flowrt.llm.model import Request
from flowrt.llm.repair import NO_RESULT, NOTHING_SAID, repair
from flowrt.llm.rules import STRICT, check, check_messages, enforce
from flowrt.testing.messages_refusals import refusals

_IDS = st.sampled_from(["toolu_a", "toolu_b"])
_TEXTS = st.sampled_from(["", " \n", "hello", "ends in space ", "naïve", "half \ud83d", "\u2028"])

_TEXT = st.builds(lambda text: {"type": "text", "text": text}, _TEXTS)
_CALL = st.builds(
    lambda call, name, given: {"type": "tool_use", "id": call, "name": name, "input": given},
    _IDS,
    st.sampled_from(["look", "look", "functions.look", "", "x" * 200]),
    st.sampled_from([{}, {"q": "x"}, {"q": "\udc00"}, "not an object", None]),
)
_RESULT = st.builds(
    lambda call, content, failed: {
        "type": "tool_result",
        "tool_use_id": call,
        "content": content,
        "is_error": failed,
    },
    _IDS,
    st.one_of(_TEXTS, st.lists(_TEXT, max_size=3)),
    st.booleans(),
)
_THOUGHT = st.one_of(
    st.builds(
        lambda signature: {"type": "thinking", "thinking": "hm", "signature": signature},
        st.sampled_from(["", "c2lnbmVk"]),
    ),
    st.just({"type": "redacted_thinking", "data": "b3BhcXVl"}),
)
_IMAGE = st.just({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}})
_ANY = st.one_of(_TEXT, _CALL, _RESULT, _THOUGHT, _IMAGE)


def _turn(role: str, *usual: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Any]:
    """A message with what is usual in it, mostly: histories that are almost right."""
    content = st.lists(st.one_of(*usual, *usual, _ANY), max_size=4)
    return st.builds(lambda blocks: {"role": role, "content": blocks}, content)


_USER = _turn("user", _RESULT, _RESULT, _TEXT)
_ASSISTANT = _turn("assistant", _CALL, _CALL, _TEXT, _THOUGHT)
_ANYONE = st.one_of(_USER, _ASSISTANT)
_HELLO = st.just({"role": "user", "content": [{"type": "text", "text": "hello"}]})
_START = st.one_of(st.tuples(_HELLO), st.tuples(_ASSISTANT), st.just(()))
_ROUND = st.one_of(st.tuples(_ASSISTANT, _USER), st.tuples(_ASSISTANT, _USER), st.tuples(_ANYONE))
_MESSAGES = st.builds(
    lambda start, rounds: [*start, *(message for messages in rounds for message in messages)],
    _START,
    st.lists(_ROUND, max_size=5),
)


@given(_MESSAGES)
def test_any_history_is_repaired_to_one_that_breaks_no_rule(messages: list[dict[str, Any]]) -> None:
    repaired = repair(messages)

    assert [] == (check_messages(repaired) if repaired else [])


@given(_MESSAGES)
def test_a_repair_never_changes_what_it_was_given(messages: list[dict[str, Any]]) -> None:
    before = copy.deepcopy(messages)

    repair(messages)

    assert before == messages


@given(_MESSAGES)
def test_a_repaired_history_is_not_repaired_again(messages: list[dict[str, Any]]) -> None:
    once = repair(messages)

    assert once == repair(once)


@given(_MESSAGES)
def test_what_passes_the_rules_is_taken_by_the_api(messages: list[dict[str, Any]]) -> None:
    for candidate in (messages, repair(messages)):
        if candidate and not check(Request(messages=candidate)):
            body = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": candidate}

            assert [] == list(refusals(json.loads(json.dumps(body))))


@given(_MESSAGES)
def test_what_the_api_refuses_breaks_a_rule(messages: list[dict[str, Any]]) -> None:
    body = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": messages}
    if next(iter(refusals(json.loads(json.dumps(body)))), None):
        assert check(Request(messages=messages))


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [_block(item) for item in content]}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [_block(item) for item in content]}


def _block(item: Any) -> dict[str, Any]:
    return {"type": "text", "text": item} if isinstance(item, str) else item


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "look", "input": {}}


def result(name: str, text: str = "found") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": text}


def lost(name: str) -> dict[str, Any]:
    return {**result(name, NO_RESULT), "is_error": True}


def test_a_call_without_a_result_gets_an_error_result() -> None:
    messages = [user("hi"), assistant(call("a"), call("b")), user(result("b"), "and now?")]

    assert user(lost("a"), result("b"), "and now?") == repair(messages)[-1]


def test_a_call_at_the_end_of_a_history_is_answered_there() -> None:
    assert user(lost("a")) == repair([user("hi"), assistant(call("a"))])[-1]


def test_a_result_without_a_call_is_left_out() -> None:
    assert [user("hi", "more")] == repair([user(result("gone"), "hi"), user("more")])


def test_what_the_assistant_said_first_is_left_out() -> None:
    assert [user("hi")] == repair([assistant("welcome"), user("hi")])


def test_the_second_use_of_a_calls_id_and_its_second_result_are_left_out() -> None:
    messages = [
        user("hi"),
        assistant(call("a"), call("a")),
        user(result("a", "first"), result("a", "second")),
        assistant("so", call("a")),
        user(result("a", "third"), "go on"),
    ]

    assert [
        user("hi"),
        assistant(call("a")),
        user(result("a", "first")),
        assistant("so"),
        user("go on"),
    ] == repair(messages)


def test_a_result_keeps_what_can_be_sent_of_it() -> None:
    parts = [_block(" "), _block("42")]
    messages = [
        user("hi"),
        assistant(call("a"), call("b")),
        user({**result("a"), "content": parts}, {**result("b", ""), "is_error": True}),
    ]

    kept = repair(messages)[-1]["content"]

    assert [[_block("42")], NOTHING_SAID] == [block["content"] for block in kept]


def test_results_come_before_text_that_arrived_earlier() -> None:
    messages = [user("hi"), assistant(call("a")), user("hurry up"), user(result("a"))]

    assert "tool_result" == repair(messages)[-1]["content"][0]["type"]


def test_a_repair_leaves_one_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(STRICT, raising=False)
    request = Request(messages=[user("hi"), assistant(call("a"))])

    enforce(request)

    assert [] == check(request)
    assert 1 == len(capsys.readouterr().err.splitlines())


def test_a_request_that_cannot_be_repaired_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STRICT, raising=False)

    with pytest.raises(RequestInvalid, match="no messages"):
        enforce(Request(messages=[assistant("welcome")]))
    with pytest.raises(RequestInvalid, match=r"tools\[0\]: the name 'crm.lookup' does not match"):
        enforce(Request(messages=[user("hi")], tools=[{"name": "crm.lookup"}]))


def test_strict_mode_raises_instead_of_repairing() -> None:
    request = Request(messages=[user("hi"), assistant(call("a"))])

    with pytest.raises(RequestInvalid, match="the call 'a' has no result"):
        enforce(request)
    assert 2 == len(request.messages)
