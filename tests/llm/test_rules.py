from __future__ import annotations

from typing import Any

import pytest

from flowrt.llm.model import Request
from flowrt.llm.rules import check


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(call_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {}, **fields}


def result(name: str, content: Any = "found", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **fields}


def thought(signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "hm", "signature": signature}


def turns(*contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages that take turns, the user first."""
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": content} for at, content in enumerate(contents)]


HI = [text("hi")]

FAULTS: list[tuple[str, list[dict[str, Any]], str]] = [
    ("no messages", [], "there are no messages"),
    ("first", [{"role": "assistant", "content": HI}, *turns(HI)], "messages[0]: the first message"),
    ("last", turns(HI, HI), "messages[1]: the last message must be from the user"),
    ("two users", [*turns(HI), *turns(HI)], "messages[1]: two user messages in a row"),
    ("empty", turns(HI, [], HI), "messages[1]: the content is empty"),
    ("blank", turns([text("hi"), text(" \n")]), "messages[0].content[1]: the text is blank"),
    ("unicode", turns([text("half \ud83d")]), "messages[0].content[0]: the text is not valid"),
    ("unsigned", turns(HI, [thought(""), text("a")], HI), "messages[1].content[0]: the thinking"),
    ("thinking user", turns([thought("s"), text("a")]), "messages[0].content[0]: thinking must"),
    ("no result", turns(HI, [call("a")], HI), "messages[2]: the call 'a' has no result"),
    ("no result at all", turns(HI, [call("a")]), "messages[1]: the call 'a' has no result"),
    ("late", turns(HI, [call("a")], HI, HI, [result("a")]), "messages[4]: the result 'a' answers"),
    ("one of two", turns(HI, [call("a"), call("b")], [result("a")]), "the call 'b' has no result"),
    ("orphan", turns([result("a")]), "messages[0]: the result 'a' answers no call"),
    (
        "twice answered",
        turns(HI, [call("a")], [result("a"), result("a")]),
        "messages[2]: a call is answered twice",
    ),
    (
        "text first",
        turns(HI, [call("a")], [text("hurry"), result("a")]),
        "messages[2]: results must come before",
    ),
    (
        "text between",
        turns(HI, [call("a"), call("b")], [result("a"), text("hurry"), result("b")]),
        "messages[2]: results must come before",
    ),
    (
        "same id twice in a turn",
        turns(HI, [call("a"), call("a")], [result("a")]),
        "messages[1]: the call id 'a' is used twice",
    ),
    (
        "same id twice in a thread",
        turns(HI, [call("a")], [result("a")], [call("a")], [result("a")]),
        "messages[3]: the call id 'a' is used twice",
    ),
    ("user calls", turns([call("a")]), "messages[0].content[0]: calls must be in an assistant"),
    (
        "assistant answers",
        turns(HI, [call("a")], [result("a")], [result("a")], HI),
        "messages[3].content[0]: results must be in a user message",
    ),
    (
        "arguments",
        turns(HI, [call("a", input="{")], [result("a")]),
        "messages[1].content[0]: the arguments are not an object",
    ),
    (
        "made up tool",
        turns(HI, [call("a", name="functions.look")], [result("a")]),
        "messages[1].content[0]: the tool name 'functions.look' does not match",
    ),
    (
        "blank in a result",
        turns(HI, [call("a")], [result("a", [text("")])]),
        "messages[2].content[0]: the text is blank (in the result)",
    ),
    (
        "silent error",
        turns(HI, [call("a")], [result("a", "", is_error=True)]),
        "messages[2].content[0]: an error result says nothing",
    ),
    (
        "unicode in a result",
        turns(HI, [call("a")], [result("a", "\udc00")]),
        "messages[2].content[0]: the text is not valid Unicode",
    ),
]


@pytest.mark.parametrize(
    ("messages", "told"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS]
)
def test_a_broken_rule_is_told_with_its_place(messages: list[dict[str, Any]], told: str) -> None:
    assert any(told in fault for fault in check(Request(messages=messages)))


@pytest.mark.parametrize(
    "messages",
    [
        turns(HI),
        turns(HI, [text("ends in white space \n")], HI),
        turns(HI, [call("a"), call("b")], [result("b"), result("a"), text("hurry")]),
        turns(HI, [text("let me see"), call("a")], [result("a", "")]),
        turns(HI, [call("a")], [{"type": "tool_result", "tool_use_id": "a"}]),
        turns(HI, [thought("s"), {"type": "redacted_thinking", "data": "b"}, call("a")],
              [result("a", [text("x"), {"type": "image", "source": {}}])]),
        turns(HI, [{"type": "from_the_future", "x": 1}], [text("naïve 🙂\u2028")]),
    ],
)  # fmt: skip
def test_what_the_api_takes_breaks_no_rule(messages: list[dict[str, Any]]) -> None:
    assert [] == check(Request(messages=messages))


@pytest.mark.parametrize("name", ["crm.lookup", "look up", "", "x" * 129, "na\u00efve", "look\n"])
def test_a_tool_name_that_the_api_refuses_is_a_fault(name: str) -> None:
    (fault,) = check(Request(messages=turns(HI), tools=[{"name": "ok"}, {"name": name}]))

    assert fault.startswith(f"tools[1]: the name {name!r} does not match")


def test_two_tools_of_one_name_are_a_fault() -> None:
    tools = [{"name": "look"}, {"name": "see"}, {"name": "look"}]

    assert ["tools[2]: the name 'look' is used twice"] == check(
        Request(messages=turns(HI), tools=tools)
    )


def test_a_blank_system_prompt_is_a_fault() -> None:
    assert ["system[0]: the text is blank"] == check(
        Request(messages=turns(HI), system=[text(" ")])
    )


def test_every_broken_rule_is_told_at_once() -> None:
    messages = turns([text("")], [thought("")], [result("a")], [call("b")])

    assert 5 <= len(check(Request(messages=messages, tools=[{"name": "a b"}])))
