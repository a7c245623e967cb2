"""`forwardContext`: what a flow sends along with every memory call, and leaves nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import CallError
from flowrt.memory.memories import Memories
from flowrt.message import Outcome
from flowrt.observe.trace import Trace
from flowrt.storage.tiers import Storage
from flowrt.testing import FakeMessagesAPI, FakeReply
from tests.agent.remembering import remembering, say
from tests.services import load

SECRET = "k-9f8e7d"
FORWARD = '{"key": "k-" + "9f8" + "e7d", "tenant": body.user}'


class Watched:
    """A memory that notes what goes along with each call of the one that it stands before."""

    def __init__(self, memory: Any, calls: list[tuple[str, Any]]) -> None:
        self._memory = memory
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._memory, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._calls.append((name, kwargs.get("context")))
            return inner(*args, **kwargs)

        return call


@pytest.fixture
def calls() -> list[tuple[str, Any]]:
    return []


async def test_it_goes_along_with_every_call_of_a_run_and_is_kept_nowhere(
    api: FakeMessagesAPI,
    tmp_path: Path,
    calls: list[tuple[str, Any]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOG_LEVEL", "debug")
    api.add(
        FakeReply(tool_calls=[{"name": "remember", "input": {"name": "a", "value": "b"}}]),
        FakeReply(tool_calls=[{"name": "search_memory", "input": {"query": "a"}}]),
        FakeReply(tool_calls=[{"name": "forget", "input": {"name": "a"}}]),
        "done",
        FakeReply(error=400),
    )
    lines: list[str] = []
    document = remembering(api.base_url, userMemory=True, forwardContext=FORWARD)
    async with load(tmp_path, document, f"sqlite:{tmp_path}/s.db") as service:
        service.memories = Memories(
            service.storage, "watch:", lambda url, memory: Watched(memory, calls)
        )
        trace = Trace(lines.append, service.clock)
        first = await service.invoke("chat", say("hi"), trace=trace)
        failed = await service.invoke("chat", say("hi"), trace=trace)
    assert Outcome.COMPLETED == first.outcome
    assert Outcome.FAILED == failed.outcome
    made = {name for name, _ in calls} - {"close"}
    assert {
        "working", "facts", "thread", "touch", "append_working", "fact", "put_fact", "search",
        "delete_fact", "append_turns", "set_title",
    } <= made  # fmt: skip
    assert all(
        {"key": SECRET, "tenant": "ann"} == context for name, context in calls if name != "close"
    )
    captured = capsys.readouterr()
    said = captured.out + captured.err + "\n".join(lines) + repr(failed.error)
    said += json.dumps([request.body for request in api.requests])
    # The expression itself stands in the file, not what it gives.
    assert SECRET not in said
    for file in tmp_path.glob("s.db*"):
        assert SECRET.encode() not in file.read_bytes()


async def test_it_is_read_once_from_the_message_that_came_in(
    api: FakeMessagesAPI, tmp_path: Path, calls: list[tuple[str, Any]]
) -> None:
    api.add(FakeReply(tool_calls=[{"name": "change", "id": "c1"}]), "done")
    change = [{"type": "set-variable", "settings": {"name": "tenant", "value": '"changed"'}}]
    tool = {"name": "change", "description": "changes it", "process": change}
    document = remembering(api.base_url, tools=[tool], forwardContext='{"tenant": vars.tenant}')
    async with load(tmp_path, document) as service:
        service.memories = Memories(
            service.storage, "watch:", lambda url, memory: Watched(memory, calls)
        )
        await service.invoke("chat", say("hi"), {"tenant": "came in"})
    assert "append_turns" in {name for name, _ in calls}
    assert {"came in"} == {context["tenant"] for name, context in calls if name != "close"}


@pytest.mark.parametrize("forward", ['"k-9f8e7d"', "null", '["k-9f8e7d"]', "body.nothing", "1"])
async def test_one_that_gives_no_map_fails_the_run_before_the_model_is_called(
    api: FakeMessagesAPI, tmp_path: Path, forward: str
) -> None:
    async with load(tmp_path, remembering(api.base_url, forwardContext=forward)) as service:
        result = await service.invoke("chat", say("hi"))
    assert Outcome.FAILED == result.outcome
    assert "forwardContext" in str(result.error)
    assert "service.yaml" in str(result.error)
    assert [] == api.requests


async def test_an_agent_without_it_sends_nothing_along(
    api: FakeMessagesAPI, tmp_path: Path, calls: list[tuple[str, Any]]
) -> None:
    api.add("ok")
    async with load(tmp_path, remembering(api.base_url)) as service:
        service.memories = Memories(
            service.storage, "watch:", lambda url, memory: Watched(memory, calls)
        )
        await service.invoke("chat", say("hi"))
    assert all({} == context for name, context in calls if name != "close")


async def test_a_memory_that_nobody_provides_is_told_at_the_start() -> None:
    storage = Storage.from_urls("test", "memory:", environ={})
    with pytest.raises(CallError, match="FLOWRT_MEMORY names the scheme 'vault'"):
        Memories.from_environ(storage, {"FLOWRT_MEMORY": "vault:somewhere"})
