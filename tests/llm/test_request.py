from __future__ import annotations

import copy
from typing import Any

import pytest

from flowrt.errors import RequestInvalid
from flowrt.llm.model import Request
from flowrt.llm.request import build_request
from flowrt.llm.rules import STRICT, check
from flowrt.testing.messages_tokens import PromptCache

LOOK = {"name": "look", "description": "Look.", "input_schema": {"type": "object"}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "look", "input": {}}


def result(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": f"result of {name}"}


def build(messages: list[dict[str, Any]], **settings: Any) -> Request:
    return build_request(system=["Be kind."], tools=[LOOK], messages=messages, **settings)


def plain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages without cache breakpoints."""
    return [
        {
            "role": message["role"],
            "content": [
                {key: value for key, value in block.items() if key != "cache_control"}
                for block in message["content"]
            ],
        }
        for message in messages
    ]


def marked(request: Request) -> list[int]:
    """The messages whose last block is a cache breakpoint."""
    return [
        index
        for index, message in enumerate(request.messages)
        if "cache_control" in message["content"][-1]
    ]


def chat(turns: int) -> list[dict[str, Any]]:
    messages = []
    for turn in range(turns):
        messages += [user(text(f"question {turn}")), assistant(text(f"answer {turn}"))]
    return messages


def test_two_messages_of_one_role_become_one() -> None:
    request = build([user(text("a")), user(text("b")), assistant(text("c")), user(text("d"))])

    assert ["user", "assistant", "user"] == [m["role"] for m in request.messages]
    assert [text("a"), text("b")] == plain(request.messages)[0]["content"]


def test_results_go_before_a_text_that_arrived_while_tools_ran() -> None:
    messages = [user(text("hi")), assistant(call("a"), call("b")), user(text("hurry")),
                user(result("a"), result("b"))]  # fmt: skip

    sent = plain(build(messages).messages)

    assert [result("a"), result("b"), text("hurry")] == sent[-1]["content"]


def test_blank_text_and_unsigned_thinking_of_a_reply_are_not_sent_back() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": ""}
    messages = [user(text("hi")), assistant(thought, text(""), call("a")), user(result("a"))]

    assert [call("a")] == plain(build(messages).messages)[1]["content"]


def test_signed_thinking_and_unknown_blocks_go_out_as_they_came() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": " hm \n", "signature": "c2lnbmVk"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "from_the_future", "nested": {"list": [1, 2.5, None]}},
        text("done \n"),
    ]

    assert (
        blocks
        == build([user(text("hi")), assistant(*blocks), user(text("go"))]).messages[1]["content"]
    )


def test_a_call_under_a_name_the_api_refuses_goes_out_under_another() -> None:
    made_up = {**call("a"), "name": "functions.look up"}
    messages = [user(text("hi")), assistant(made_up), user(result("a"))]

    assert "functions_look_up" == build(messages).messages[1]["content"][0]["name"]
    assert "functions.look up" == made_up["name"]


def test_building_a_request_never_changes_a_stored_message() -> None:
    messages = [*chat(3), user(text("")), user(text("now"))]
    before = copy.deepcopy(messages)

    request = build(messages, stored=6, preamble="Sam likes tea.")

    assert before == messages
    assert request.messages[0]["content"] is messages[0]["content"]


def test_a_request_grows_at_its_end_only() -> None:
    messages = [user(text("hi")), assistant(call("a")), user(result("a"))]
    first = plain(build(messages).messages)

    later = [*messages, assistant(call("b")), user(result("b")), assistant(text("ok")),
             user(text("thanks"))]  # fmt: skip

    assert first == plain(build(later).messages)[:3]


def test_there_are_never_more_breakpoints_than_the_api_allows() -> None:
    request = build([*chat(5), user(text("now"))], stored=4)

    assert [3, 8, 10] == marked(request)
    assert "cache_control" in request.system[-1]
    assert "cache_control" not in request.tools[-1]


def test_without_a_system_prompt_the_last_tool_carries_the_breakpoint() -> None:
    request = build_request(system=[], tools=[LOOK], messages=[user(text("hi"))])

    assert "cache_control" in request.tools[-1]
    assert "cache_control" not in LOOK


def test_without_cache_nothing_is_marked() -> None:
    request = build(chat(2)[:-1], cache=False)

    assert [] == marked(request)
    assert "cache_control" not in request.system[-1]


@pytest.mark.parametrize("calls", [1, 30])
def test_each_turn_reads_all_that_the_turn_before_wrote(calls: int) -> None:
    cache = PromptCache()
    messages = [*chat(2), user(text("go"))]
    written = 0
    for turn in range(4):
        request = build(messages, stored=4)
        billed = cache.bill(
            {"model": "m", "system": request.system, "tools": request.tools,
             "messages": request.messages}
        )  # fmt: skip
        read = billed["cache_read_input_tokens"]

        assert written == read
        written = read + billed["cache_creation_input_tokens"]
        ids = [f"call_{turn}_{number}" for number in range(calls)]
        messages += [assistant(*map(call, ids)), user(*map(result, ids))]


def test_a_preamble_stands_before_the_message_that_opened_the_run() -> None:
    messages = [*chat(1), user(text("now")), assistant(call("a")), user(result("a")),
                user(text("handed over"))]  # fmt: skip

    sent = plain(build(messages, stored=2, preamble="Sam likes tea.").messages)

    assert [text("Sam likes tea."), text("now")] == sent[2]["content"]
    assert [result("a"), text("handed over")] == sent[4]["content"]
    assert plain(chat(1)) == sent[:2]


def test_a_blank_preamble_and_a_blank_system_prompt_are_left_out() -> None:
    request = build_request(
        system=["", "Be kind."], tools=[], messages=[user(text("hi"))], preamble=" \n", cache=False
    )

    assert [text("Be kind.")] == request.system
    assert [user(text("hi"))] == request.messages


def test_a_request_with_nothing_to_say_is_refused() -> None:
    with pytest.raises(RequestInvalid, match="no messages"):
        build([user(text(" "))])


def test_a_repair_that_shortens_the_messages_leaves_the_breakpoints_inside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(STRICT, "0")
    messages = [user(text("hi")), assistant(text("a")), user(text("b")), assistant(text("c"))]

    request = build(messages, stored=4)

    assert [] == check(request)
    assert [0, 2] == marked(request)


def test_the_choice_of_tools_goes_into_the_request_as_it_is() -> None:
    choice = {"type": "any"}
    assert choice == build([user(text("hi"))], tool_choice=choice).tool_choice
    assert build([user(text("hi"))]).tool_choice is None
