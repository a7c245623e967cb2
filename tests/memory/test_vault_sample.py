"""The sample memory that encrypts: nothing readable in the file, nothing without the key."""

from __future__ import annotations

import base64
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from flowrt.agent.replay import replay
from flowrt.errors import CallError, StoreError
from flowrt.llm.local_embedding import LocalEmbedding
from flowrt.memory.agent_memory import AgentMemory
from flowrt.memory.memories import Memories
from flowrt.storage.agents.protocol import NewTurn, Person, Place
from flowrt.testing import FakeMessagesAPI, FakeReply
from tests.agent.remembering import AGENT, remembering, say
from tests.services import load

SAMPLE = Path(__file__).parent.parent.parent / "samples/encrypted-memory/vault_memory.py"
KEY, OTHER = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))
SECRET = "My account number is 4711-0815."


def vault() -> Any:
    """The module of the sample."""
    spec = importlib.util.spec_from_file_location("vault_memory", SAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_a_conversation_is_remembered_and_no_text_of_it_is_in_the_files(
    tmp_path: Path,
) -> None:
    document = remembering("", userMemory=True, forwardContext='{"key": vars.dataKey}')
    with FakeMessagesAPI() as api:
        document["connectors"][0]["settings"]["baseURL"] = api.base_url
        api.add(
            FakeReply(tool_calls=[{"name": "remember", "input": {"name": "a", "value": SECRET}}]),
            "Noted.",
            "It is 4711-0815.",
        )
        async with load(tmp_path, document, f"sqlite:{tmp_path}/s.db") as service:
            service.memories = Memories(service.storage, "vault:", vault().open_vault)
            first = await service.invoke("chat", say(SECRET), {"dataKey": KEY})
            second = await service.invoke("chat", say("Which one?"), {"dataKey": KEY})
            memory = service.memories.of()
            place = Place("test", AGENT, "t")
            turns = (await memory.turns(place, context={"key": KEY})).items
            for context, text in (({"key": OTHER}, "another key"), ({}, "needs a `key`")):
                with pytest.raises(StoreError, match=text):
                    await memory.turns(place, context=context)
    assert first.error is None, first.error
    assert second.error is None, second.error
    assert [SECRET, "Noted.", "Which one?", "It is 4711-0815."] == [turn.text for turn in turns]
    # The second run was shown what the first had said, and the note.
    shown = str(api.requests[2].messages)
    assert shown.count(SECRET) >= 2
    files = b"".join(path.read_bytes() for path in tmp_path.glob("s.db*"))
    for word in (b"4711", b"account", b"Noted", KEY.encode()):
        assert word not in files


async def test_a_request_is_given_back_with_its_key_and_is_in_no_file(tmp_path: Path) -> None:
    document = remembering(
        "", userMemory=True, contextMaxTokens=1200, forwardContext='{"key": vars.dataKey}'
    )
    note = {"name": "remember", "input": {"name": "a", "value": SECRET}}
    with FakeMessagesAPI() as api:
        document["connectors"][0]["settings"]["baseURL"] = api.base_url
        async with load(tmp_path, document, f"sqlite:{tmp_path}/s.db") as service:
            service.memories = Memories(service.storage, "vault:", vault().open_vault)
            for number in range(6):
                api.add(FakeReply(tool_calls=[note]), "Noted.")
                await service.invoke("chat", say(f"{number} {SECRET * 30}"), {"dataKey": KEY})
            memory, place = service.memories.of(), Place("test", AGENT, "t")
            [first, answer, *_] = (await memory.turns(place, context={"key": KEY})).items
            assert await memory.archived(place, context={"key": KEY})
            for turn, body in ((first, api.bodies[0]), (answer, api.bodies[1])):
                told = await replay(memory, memory, place, turn, context={"key": KEY})
                assert told.exact, told
                assert body == told.request
            with pytest.raises(StoreError, match="another key"):
                await memory.archived(place, context={"key": OTHER})
            other = await memory.frame(place, first.attrs["shown"]["frame"], context={"key": OTHER})
            assert other is None
    files = b"".join(path.read_bytes() for path in tmp_path.glob("s.db*"))
    for word in (b"4711", b"account", b"Noted", b"Help.", KEY.encode()):
        assert word not in files


async def test_a_memory_that_seals_is_not_started_together_with_embeddings(tmp_path: Path) -> None:
    document = remembering("http://127.0.0.1:9")
    service = load(tmp_path, document, f"sqlite:{tmp_path}/s.db")
    service.memories = Memories(
        service.storage, "vault:", vault().open_vault, embeds=LocalEmbedding()
    )
    with pytest.raises(CallError, match=r"FLOWRT_MEMORY=vault: seals .* leave FLOWRT_EMBEDDINGS"):
        await service.start()
    await service.stop()
    assert [] == list(tmp_path.glob("s.db*"))


async def test_a_memory_that_hands_on_clear_texts_is_started_with_embeddings(
    tmp_path: Path,
) -> None:
    def pass_on(url: str, inner: AgentMemory) -> AgentMemory:
        return inner

    service = load(tmp_path, remembering("http://127.0.0.1:9"), f"sqlite:{tmp_path}/s.db")
    service.memories = Memories(service.storage, "plain:", pass_on, embeds=LocalEmbedding())
    place, context = Place("test", AGENT, "t", "ann"), dict[str, str]()
    async with service:
        service.memories.spawn = service.spawn
        memory = service.memories.of()
        await memory.append_turns(place, [NewTurn("user", "I own two poodles")], context=context)
        await service.drain()
        person = Person("test", AGENT, "ann")
        found = await memory.search(person, "which pets", limit=1, context=context)
    assert ("meaning", 0) == (found.by, found.waiting)
