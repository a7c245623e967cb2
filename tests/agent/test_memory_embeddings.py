"""`FLOWRT_EMBEDDINGS`: memory is searched by meaning where a deployment names what embeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowrt.errors import CallError
from flowrt.storage.agents.protocol import Person
from flowrt.testing import FakeMessagesAPI, FakeReply
from tests.agent.remembering import AGENT, remembering, say
from tests.agent.test_user_memory import result
from tests.services import load


async def test_what_was_said_is_found_by_its_meaning(api: FakeMessagesAPI, tmp_path: Path) -> None:
    api.add(
        "Noted.",
        "Noted.",
        FakeReply(tool_calls=[{"name": "search_memory", "input": {"query": "which pet"}}]),
        "A cat.",
    )
    document = remembering(api.base_url, userMemory=True)
    environ = {"FLOWRT_EMBEDDINGS": "embed-local"}
    async with load(tmp_path, document, environ=environ) as service:
        await service.invoke("chat", say("My kitten sleeps all day.", "one"))
        await service.invoke("chat", say("The invoice is due on Friday.", "two"))
        # The vectors are made in the background.
        await service.drain()
        await service.invoke("chat", say("What animal do I have?", "three"))
    found, failed = result(api)
    assert not failed
    assert "by meaning" in found
    assert found.index("kitten") < found.index("invoice")


async def test_vectors_of_another_model_are_made_anew_when_a_service_starts(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """FB-66."""
    api.add("Noted.")
    document = remembering(api.base_url, userMemory=True)
    document["connectors"].append(
        {"name": "small", "type": "embed-local", "settings": {"dimensions": 64}}
    )
    storage = f"sqlite:{tmp_path}/s.db"
    person = Person("test", AGENT, "ann")

    async def sizes(name: str, *messages: str) -> set[int]:
        environ = {"FLOWRT_EMBEDDINGS": name}
        service = load(tmp_path, document, storage, environ=environ)
        await service.start(sources=True)
        try:
            for message in messages:
                await service.invoke("chat", say(message))
            await service.drain()
            vectors = await service.storage.agents().vectors_of(person)
        finally:
            await service.stop()
        return {vector.size for vector in vectors.items}

    assert {256} == await sizes("embed-local", "My kitten sleeps all day.")
    assert {64} == await sizes("small")


async def test_without_it_memory_is_searched_by_words(api: FakeMessagesAPI, tmp_path: Path) -> None:
    api.add(
        "Noted.",
        FakeReply(tool_calls=[{"name": "search_memory", "input": {"query": "kitten"}}]),
        "A cat.",
    )
    async with load(tmp_path, remembering(api.base_url, userMemory=True)) as service:
        await service.invoke("chat", say("My kitten sleeps all day.", "one"))
        await service.invoke("chat", say("What did I say of my kitten?", "two"))
    assert "by words" in result(api)[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("claude", "the connector 'claude' does not embed"),
        ("embed-locl", "did you mean 'embed-local'?"),
        ("embed-local:maxilm", "which the service does not have"),
    ],
)
def test_a_name_that_embeds_nothing_is_told_at_the_start(
    name: str, text: str, tmp_path: Path
) -> None:
    with pytest.raises(CallError) as raised:
        load(tmp_path, remembering("http://127.0.0.1:9"), environ={"FLOWRT_EMBEDDINGS": name})
    assert text in str(raised.value)
