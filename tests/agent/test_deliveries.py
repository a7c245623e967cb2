"""Messages that come again because the process that worked them died."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.service import Service
from flowrt.testing import FakeMessagesAPI, FakeReply
from tests.agent import dying
from tests.agent.remembering import Kept, remembering, say
from tests.agent.test_checkpoints import DIE, ECHO, blocks, die
from tests.services import ECHO_TOOL, agent, load, texts


async def deliver(service: Service, body: Any, id_: str, flow: str = "chat") -> Any:
    """What comes of a message that may come again."""
    result = await dying.deliver(service, flow, body, id_)
    return result.body if result is not None else None


@pytest.fixture(params=["transcript", "agentId"])
def document(request: pytest.FixtureRequest, api: FakeMessagesAPI) -> dict[str, Any]:
    return agent(api.base_url) if request.param == "transcript" else remembering(api.base_url)


async def test_a_message_that_was_answered_gets_the_same_answer_and_costs_nothing(
    api: FakeMessagesAPI, tmp_path: Path, document: dict[str, Any]
) -> None:
    api.add(ECHO, "Four.", "Again: four.", "Bye.")
    async with load(tmp_path, document) as service:
        for _ in range(3):
            assert "Four." == await deliver(service, say("2 + 2?"), "post 1")
        assert "Again: four." == await deliver(service, say("2 + 2?"), "post 2")
        assert "Four." == await deliver(service, say("2 + 2?"), "post 1")
        await service.invoke("chat", say("bye"))
    assert 4 == len(api.requests)
    asked = [text for m in api.requests[-1].messages if m["role"] == "user" for text in texts(m)]
    assert ["2 + 2?", "2 + 2?", "bye"] == asked


async def test_the_answer_is_known_in_another_process_and_after_a_restart(
    api: FakeMessagesAPI, tmp_path: Path, document: dict[str, Any]
) -> None:
    api.add("Four.")
    for _ in range(2):
        async with load(tmp_path, document, f"sqlite:{tmp_path}/s.db") as service:
            assert "Four." == await deliver(service, say("2 + 2?"), "post 1")
    assert 1 == len(api.requests)


async def test_a_message_that_failed_is_asked_anew(
    api: FakeMessagesAPI, tmp_path: Path, document: dict[str, Any]
) -> None:
    api.add(FakeReply(error=400), "Four.")
    async with load(tmp_path, document) as service:
        with pytest.raises(Exception, match="400"):
            await deliver(service, say("2 + 2?"), "post 1")
        assert "Four." == await deliver(service, say("2 + 2?"), "post 1")


async def test_one_block_that_a_message_reaches_twice_is_asked_twice(
    api: FakeMessagesAPI, tmp_path: Path, document: dict[str, Any]
) -> None:
    """In a loop the same question may mean something else; a second delivery asks neither."""
    document["flows"].append(
        {"name": "twice", "process": [{"type": "flow-ref", "flow": "chat"}] * 2}
    )
    document["flows"][0]["process"].append(
        {"type": "set-payload", "value": "{'thread': 't', 'user': 'ann', 'message': 'more?'}"}
    )
    api.add("One.", "Two.")
    async with load(tmp_path, document) as service:
        for _ in range(2):
            await deliver(service, say("more?"), "post 1", "twice")
    assert 2 == len(api.requests)


@pytest.mark.parametrize("resume", [False, True])
async def test_a_run_that_died_goes_on_when_its_message_comes_again(
    api: FakeMessagesAPI, tmp_path: Path, resume: bool
) -> None:
    """Its checkpoint has the question already: asked anew it would be there twice."""
    storage = f"sqlite:{tmp_path}/s.db"
    api.add(ECHO, FakeReply(tool_calls=[{"name": "die", "id": "c2"}]), "Done.", "Yes.")
    die(tmp_path, remembering(api.base_url, tools=[ECHO_TOOL, DIE]), storage, say("work"), "post 1")
    alive = remembering(api.base_url, tools=[ECHO_TOOL], resumeInterrupted=resume)
    async with load(tmp_path, alive, storage) as service:
        assert "Done." == await deliver(service, say("work"), "post 1")
        assert "Done." == await deliver(service, say("work"), "post 1")
        await service.invoke("chat", say("done?"))
        said = await Kept.of(service).said()
    assert [
        ["text"], ["tool_use"], ["tool_result"], ["tool_use"], ["tool_result"],
    ] == [blocks(m) for m in api.requests[2].messages]  # fmt: skip
    assert ["work", "Done.", "done?", "Yes."] == [text for _, text in said]


@pytest.mark.parametrize("resume", [False, True])
async def test_a_run_that_died_between_its_record_and_its_context_has_answered(
    api: FakeMessagesAPI, tmp_path: Path, resume: bool
) -> None:
    """The next message sees its answer, and the record has it once."""
    storage = f"sqlite:{tmp_path}/s.db"
    document = remembering(api.base_url, resumeInterrupted=resume)
    api.add(ECHO, "Done.", "Yes.")
    die(tmp_path, document, storage, say("work"), "post 1", "record")
    async with load(tmp_path, document, storage) as service:
        assert "Done." == await deliver(service, say("work"), "post 1")
        await service.invoke("chat", say("done?"))
        said = await Kept.of(service).said()
        await service.invoke("chat", say("done?"))
    assert ["work", "Done.", "done?", "Yes."] == [text for _, text in said]
    assert ["Done."] == texts(api.requests[-1].messages[3])


async def test_a_message_that_comes_again_is_not_taken_for_the_one_whose_run_died(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """Both are in the context without an answer; each gets its own."""
    storage = f"sqlite:{tmp_path}/s.db"
    document = remembering(api.base_url, tools=[ECHO_TOOL, DIE], resumeInterrupted=True)
    api.add(ECHO, FakeReply(error=400), FakeReply(tool_calls=[{"name": "die"}]))
    alive = remembering(api.base_url, tools=[ECHO_TOOL], resumeInterrupted=True)
    async with load(tmp_path, alive, storage, clock=dying.HastyClock()) as service:
        with pytest.raises(Exception, match="400"):
            await deliver(service, say("first"), "post 1")
    die(tmp_path, document, storage, say("second"), "post 2")
    api.add("The second's.", "The first's.")
    async with load(tmp_path, alive, storage) as service:
        assert "The first's." == await deliver(service, say("first"), "post 1")
        assert "The second's." == await deliver(service, say("second"), "post 2")
