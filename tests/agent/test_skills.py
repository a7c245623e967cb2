"""Skills: templates that the model loads by name, rendered against the message at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.service import Service
from flowrt.testing import FakeMessagesAPI, FakeReply
from tests.services import ECHO_TOOL, agent, load, say

SKILL = {"name": "facts", "description": "How to name it.", "resource": "facts"}
SET_MOOD = {
    "name": "set_mood",
    "description": "Sets the mood.",
    "process": [{"type": "set-variable", "settings": {"name": "mood", "value": "body.mood"}}],
}


def skilled(folder: Path, text: str | None, base_url: str, **settings: Any) -> dict[str, Any]:
    """A document with an agent that has one skill, whose template says `text`."""
    if text is not None:
        (folder / "facts.md").write_text(text, encoding="utf-8")
    document = agent(base_url, skills=[SKILL], **settings)
    document["resources"] = {"templates": [{"as": "facts", "resource": "facts.md"}]}
    return document


def load_skill(**arguments: Any) -> FakeReply:
    return FakeReply(tool_calls=[{"name": "load_skill", "input": arguments}])


async def results(api: FakeMessagesAPI, service: Service, *messages: str) -> list[dict[str, Any]]:
    """The results of all calls, in order, after these messages."""
    async with service:
        for message in messages:
            result = await service.invoke("chat", say(message))
            assert result.error is None
    last = api.requests[-1].body["messages"]
    blocks = [block for message in last for block in message["content"]]
    return [block for block in blocks if block["type"] == "tool_result"]


async def test_a_skill_is_rendered_against_the_message_at_hand(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(load_skill(name="facts"), "ok", load_skill(name="facts"), "ok")
    document = skilled(tmp_path, "You were told {{ body.message }}.", api.base_url)
    loaded = await results(api, load(tmp_path, document), "one", "two")
    assert "- facts: How to name it." in api.requests[0].body["system"][0]["text"]
    assert ["You were told one.", "You were told two."] == [result["content"] for result in loaded]


async def test_a_skill_sees_the_variables_that_a_tool_has_set(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    call = FakeReply(tool_calls=[{"name": "set_mood", "input": {"mood": "good"}}])
    api.add(load_skill(name="facts"), call, load_skill(name="facts"), "ok")
    document = skilled(tmp_path, "It is {{ vars.mood }}.", api.base_url, tools=[SET_MOOD])
    first, _, second = await results(api, load(tmp_path, document), "hi")
    assert first["is_error"]
    assert "mood" in first["content"]
    assert "It is good." == second["content"]


async def test_what_a_skill_yields_is_not_rendered_again(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-90."""
    api.add(load_skill(name="facts"), "ok")
    document = skilled(tmp_path, "{{ body.message }}", api.base_url)
    (loaded,) = await results(api, load(tmp_path, document), "{{ env }}")
    assert "{{ env }}" == loaded["content"]


async def test_a_skill_that_is_empty_says_so(api: FakeMessagesAPI, tmp_path: Path) -> None:
    api.add(load_skill(name="facts"), "ok")
    (loaded,) = await results(api, load(tmp_path, skilled(tmp_path, "", api.base_url)), "hi")
    assert loaded["content"].strip()


@pytest.mark.parametrize("arguments", [{"name": "other"}, {}, {"name": None}, {"name": ["facts"]}])
async def test_an_unknown_skill_is_an_error_result_that_names_the_known(
    api: FakeMessagesAPI, tmp_path: Path, arguments: dict[str, Any]
) -> None:
    api.add(load_skill(**arguments), "ok")
    (loaded,) = await results(api, load(tmp_path, skilled(tmp_path, "x", api.base_url)), "hi")
    assert loaded["is_error"]
    assert "the skills are facts" in loaded["content"]


async def test_without_skills_load_skill_is_a_tool_like_any_other(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(load_skill(name="facts"), load_skill(name="facts"), "ok")
    document = agent(api.base_url, tools=[{**ECHO_TOOL, "name": "load_skill"}])
    first, _ = await results(api, load(tmp_path, document), "hi")
    assert '{"name": "facts"}' == first["content"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, 'resources.templates[0].resource: template resource "facts.md" does not exist'),
        ("a\nb {{ body + }}", "facts.md:2:3: does not compile"),
        ("{{ nobody }}", "facts.md:1:1: unknown name 'nobody'"),
        ("so {{ body.x", "facts.md:1:4: a `{{` is never closed"),
        ("{{ }}", "facts.md:1:1: `{{ }}` is empty"),
    ],
)
def test_a_skill_whose_template_cannot_be_used_fails_the_load_where_the_template_stands(
    tmp_path: Path, text: str | None, found: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, skilled(tmp_path, text, "http://127.0.0.1:9"))
    (fault,) = raised.value.faults
    assert found in str(fault)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"skills": [{**SKILL, "resource": "fact"}]}, "did you mean 'facts'?"),
        ({"skills": [SKILL, SKILL]}, "two skills are called 'facts'"),
        ({"skills": [{**SKILL, "name": ""}]}, "must not be blank"),
        ({"skills": [{"name": "a", "resource": "facts"}]}, "description"),
        ({"tools": [{**ECHO_TOOL, "name": "load_skill"}]}, "'load_skill' is reserved"),
    ],
)
def test_skills_that_cannot_work_are_load_errors(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    document = skilled(tmp_path, "x", "http://127.0.0.1:9")
    document["flows"][0]["process"][0] |= settings
    with pytest.raises(ConfigError, match=r"service\.yaml:\d+:\d+ flows\.chat\.") as found:
        load(tmp_path, document)
    assert text in str(found.value)
