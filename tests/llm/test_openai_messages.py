"""Content blocks as chat messages: what goes where, and what stays behind."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.errors import ModelRefused
from flowrt.llm.model import Request
from flowrt.llm.openai_messages import FAILED, NO_OUTPUT, chat_messages
from flowrt.testing import FakeCompletionsAPI
from tests.llm.anthropic_calls import CONTENT, TEXT, after, ask, result
from tests.llm.openai_calls import LOOK, model, once

IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
}
URL = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


def sent(*messages: dict[str, Any], **request: Any) -> list[dict[str, Any]]:
    return chat_messages(Request(messages=list(messages), **request), "OPENAI gpt-5.4")


def user(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def assistant(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


async def test_another_providers_reply_goes_out_without_what_only_it_understands(
    chat: FakeCompletionsAPI,
) -> None:
    chat.add("fine")

    await once(model(chat), after(CONTENT, result("toolu_1")))

    turn = chat.requests[0].messages[1]
    assert 'so — "naïve"\r\n\u2029 😀' == turn["content"]
    assert {"role", "content", "tool_calls"} == turn.keys()
    call = turn["tool_calls"][0]
    assert ("toolu_1", "look", '{"q":"é","n":1152921504606846976}') == (
        call["id"],
        call["function"]["name"],
        call["function"]["arguments"],
    )


def test_a_turn_of_which_nothing_is_left_is_left_out() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}

    assert [{"role": "user", "content": "go on\n\ngo on"}] == sent(
        user(TEXT), assistant(thought), user(TEXT)
    )


def test_a_failed_result_says_so_in_its_text() -> None:
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    answer = {**result("c"), "is_error": True}

    assert f"{FAILED}found" == sent(user(TEXT), assistant(call), user(answer))[2]["content"]


@pytest.mark.parametrize("content", [None, "", []])
async def test_a_result_that_says_nothing_is_not_empty(
    chat: FakeCompletionsAPI, content: Any
) -> None:
    chat.add("fine")
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}

    await once(model(chat), after([call], {**result("c"), "content": content}))

    assert NO_OUTPUT == chat.requests[0].messages[2]["content"]


async def test_pictures_go_as_parts_and_those_in_results_follow_the_results(
    chat: FakeCompletionsAPI,
) -> None:
    chat.add("fine")
    calls = [{"type": "tool_use", "id": i, "name": "look", "input": {}} for i in ("a", "b")]
    shown = {**result("a"), "content": [{"type": "text", "text": "seen"}, IMAGE]}

    await once(model(chat), after(calls, shown, {**result("b"), "content": [URL]}, TEXT))

    *_, first, second, said = chat.requests[0].messages
    assert [("a", "seen"), ("b", "(the file follows)")] == [
        (message["tool_call_id"], message["content"]) for message in (first, second)
    ]
    assert [
        {"type": "text", "text": "From the result of call a:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "text", "text": "From the result of call b:"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "text", "text": "go on"},
    ] == said["content"]
    assert [] == chat.refused


async def test_documents_go_as_files_or_as_their_text(chat: FakeCompletionsAPI) -> None:
    chat.add("fine")
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    request = Request(
        messages=[
            user(
                {"type": "document", "source": pdf, "title": "a.pdf"},
                {"type": "document", "source": {"type": "text", "data": "plain"}},
                {"type": "document", "source": {"type": "text", "data": "1"}, "title": "a.csv"},
                {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
            )
        ]
    )

    await once(model(chat), request)

    named, plain, titled, unknown = chat.requests[0].messages[0]["content"]
    assert {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="} == named["file"]
    assert "plain" == plain["text"]
    assert "a.csv:\n1" == titled["text"]
    assert "cannot be shown" in unknown["text"]


def test_texts_of_one_turn_are_one_string() -> None:
    first, second = {"type": "text", "text": "a"}, {"type": "text", "text": "b"}

    assert [
        {"role": "system", "content": "a\n\nb"},
        {"role": "user", "content": "a\n\nb"},
        {"role": "assistant", "content": "ab"},
    ] == sent(user(first, second), assistant(first, second), system=[first, second])


async def test_cache_marks_are_kept_for_anthropics_models_where_the_server_takes_them() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    with FakeCompletionsAPI(["a", "b"], extras=["cache_control"]) as api:
        async with model(api, settings={"model": "anthropic/claude", "marks": True}) as router:
            call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
            request = after([call], {**result("c"), **mark})
            request.system = [{"type": "text", "text": "Help.", **mark}]
            await router.complete(request)
            request.model = "openai/gpt-5.4"
            await router.complete(request)

        system, *_, answer = api.requests[0].messages
        assert [{"type": "text", "text": "Help.", **mark}] == system["content"]
        assert [{"type": "text", "text": "found", **mark}] == answer["content"]
        assert "cache_control" not in api.requests[1].raw.decode()


async def test_a_schema_that_names_no_properties_is_completed(chat: FakeCompletionsAPI) -> None:
    chat.add("fine")

    await once(model(chat), ask(tools=[{**LOOK, "input_schema": {"type": "object"}}]))

    assert [] == chat.refused


async def test_a_tool_name_that_is_too_long_for_openai_is_its_refusal(
    chat: FakeCompletionsAPI,
) -> None:
    with pytest.raises(ModelRefused, match="maximum length 64"):
        await once(model(chat), ask(tools=[{**LOOK, "name": "x" * 100}]))
