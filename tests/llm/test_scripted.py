from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from flowrt.errors import (
    ModelError,
    ModelRefused,
    ModelUnavailable,
    PromptTooLong,
    RequestInvalid,
)
from flowrt.llm.model import Delta, Request, Usage
from flowrt.llm.scripted import Matcher, ScriptedModel, ScriptedReply


def ask(words: str = "hi") -> Request:
    return Request(messages=[{"role": "user", "content": [{"type": "text", "text": words}]}])


def script(*entries: dict[str, Any], **settings: Any) -> ScriptedModel:
    return ScriptedModel([ScriptedReply.model_validate(entry) for entry in entries], **settings)


class Hand:
    """A clock that is moved by hand: it notes each wait and ends it when told to."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.go = asyncio.Event()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await self.go.wait()


async def test_entries_answer_in_order_and_once_each() -> None:
    model = script({"text": "one"}, {"text": "two"})

    assert ["one", "two"] == [(await model.complete(ask())).text for _ in range(2)]


async def test_a_script_that_is_used_up_shows_the_request() -> None:
    model = script({"text": "one"})
    await model.complete(ask())

    with pytest.raises(ModelRefused, match=r"no answer for request 2.*(?s:.)*what now"):
        await model.complete(ask("what now"))


async def test_a_repeating_script_begins_again() -> None:
    model = script({"text": "one"}, {"text": "two"}, repeat=True)

    replies = [(await model.complete(ask())).text for _ in range(3)]

    assert ["one", "two", "one"] == replies


async def test_conditions_come_first_and_any_number_of_times() -> None:
    matchers: list[Matcher | None] = [None, lambda request: "name" in request["lastUserText"]]
    model = script({"text": "once"}, {"when": "…", "text": "Sam"}, matchers=matchers)

    asked = [await model.complete(ask(words)) for words in ("my name?", "hi", "name again?")]

    assert ["Sam", "once", "Sam"] == [reply.text for reply in asked]


async def test_a_condition_sees_the_whole_request() -> None:
    seen: list[dict[str, Any]] = []

    def look(view: dict[str, Any]) -> bool:
        seen.append(view)
        return True

    model = script({"when": "…", "text": "yes"}, matchers=[look])
    found = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "42"}]}
    await model.complete(
        Request(
            system=[{"type": "text", "text": "Be kind."}],
            tools=[{"name": "look"}],
            messages=[
                *ask("how many?").messages,
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
                {"role": "user", "content": [found]},
            ],
        )
    )  # fmt: skip

    (view,) = seen
    fields = ["system", "messages", "tools", "lastUserText", "text", "tokens", "purpose"]
    assert fields == list(view)
    assert ("Be kind.", "42") == (view["system"], view["lastUserText"])
    assert "how many?" in view["text"]
    assert view["tokens"] > 0


async def test_calls_get_ids_of_their_own_and_the_reason_says_so() -> None:
    model = script({"toolCalls": [{"name": "look", "input": {"q": 1}}, {"name": "look"}]})

    reply = await model.complete(ask())

    assert "tool_use" == reply.stop_reason
    assert [{"q": 1}, {}] == [call["input"] for call in reply.tool_calls]
    assert 2 == len({call["id"] for call in reply.tool_calls})


async def test_content_is_answered_as_it_is() -> None:
    blocks = [{"type": "from_the_future", "x": 1}, {"type": "text", "text": ""}]
    reply = await script({"content": blocks, "stopReason": "refusal"}).complete(ask())

    assert (blocks, "refusal") == (reply.content, reply.stop_reason)


async def test_thinking_is_signed_so_that_it_can_be_sent_back() -> None:
    reply = await script({"thinking": "hm", "text": "ok"}).complete(ask())

    assert ["thinking", "text"] == [block["type"] for block in reply.content]
    assert reply.content[0]["signature"]


async def test_usage_is_what_the_script_says_or_an_estimate_of_everything() -> None:
    model = script(
        {"text": "a", "usage": {"inputTokens": 7, "outputTokens": 2, "cachedTokens": 5}},
        {"text": "b"},
        {"text": "c"},
    )
    small = ask()
    large = Request(messages=small.messages, system=[{"type": "text", "text": "x" * 4000}])
    said, first, second = [await model.complete(request) for request in (small, small, large)]

    assert Usage(input_tokens=7, output_tokens=2, cached_tokens=5) == said.usage
    assert first.usage is not None
    assert second.usage is not None
    assert 1000 <= second.usage.prompt_tokens - first.usage.prompt_tokens <= 1010


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"error": 529}, ModelUnavailable),
        ({"error": 429}, ModelUnavailable),
        ({"error": 400}, ModelRefused),
        ({"error": 401}, ModelRefused),
        ({"error": 400, "message": "prompt is too long: 9 tokens > 8 maximum"}, PromptTooLong),
    ],
)
async def test_a_scripted_error_is_the_one_a_real_model_raises(
    entry: dict[str, Any], kind: type[ModelError]
) -> None:
    with pytest.raises(ModelError) as caught:
        await script(entry).complete(ask())

    assert (kind, entry["error"]) == (type(caught.value), caught.value.status)


async def test_a_request_that_a_provider_would_refuse_fails_the_test() -> None:
    model = script({"text": "never"})

    with pytest.raises(RequestInvalid, match="the text is blank"):
        await model.complete(ask(" "))


async def test_the_pieces_of_a_stream_make_up_the_reply() -> None:
    told: list[Delta] = []
    text = "a long answer, told in many small pieces"
    model = script({"thinking": "hm", "text": text, "toolCalls": [{"name": "look", "input": {}}]})

    reply = await model.complete(ask(), told.append)

    assert text == "".join(delta.text for delta in told if delta.kind == "text") == reply.text
    assert {1} == {delta.index for delta in told if delta.kind == "text"}
    assert ("{}", "look") == (told[-1].text, told[-1].tool)


async def test_a_delay_waits_on_the_clock_it_was_given() -> None:
    clock = Hand()
    clock.go.set()

    await script({"text": "ok", "delay": 3600}, clock=clock).complete(ask())

    assert [3600.0] == clock.waits


async def test_a_cancelled_call_leaves_the_rest_of_the_script() -> None:
    clock = Hand()
    model = script({"text": "late", "delay": 60}, {"text": "next"}, clock=clock)
    waiting = asyncio.ensure_future(model.complete(ask()))
    while not clock.waits:
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert "next" == (await model.complete(ask())).text


async def test_requests_are_kept_up_to_a_number() -> None:
    model = script({"text": "ok"}, repeat=True, keep_requests=2)
    for words in ("a", "b", "c"):
        await model.complete(ask(words))

    assert ["a", "b"] == [r.messages[0]["content"][0]["text"] for r in model.requests]


@pytest.mark.parametrize(
    "entry",
    [{}, {"delay": 1}, {"txt": "a"}, {"error": 200}, {"text": "a", "delay": -1},
     {"toolCalls": [{"input": {}}]}],
)  # fmt: skip
def test_an_entry_that_says_nothing_sensible_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ScriptedReply.model_validate(entry)
