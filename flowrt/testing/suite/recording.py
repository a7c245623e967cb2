"""Replies of real providers, kept beside a suite: recorded once, replayed ever after."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flowrt.errors import CallError, ModelError, ModelRefused
from flowrt.llm.model import ChatModel, Delta, Reply, Request, Usage
from flowrt.llm.scripted import failure
from flowrt.observe.masking import mask
from flowrt.testing.suite.asked import ModelLog
from flowrt.testing.suite.compare import differences

_VERSION = 1
Entry = dict[str, Any]


def recording_path(suite: Path) -> Path:
    """Where the recording of a suite is: `chat_test.yaml` has `chat_test.recording.json`."""
    return suite.with_name(f"{suite.stem}.recording.json")


class Recording:
    """The recorded calls of each case of one suite, in the order they were made."""

    def __init__(self, path: Path, cases: dict[str, list[Entry]] | None = None) -> None:
        self.path = path
        self.cases = cases or {}
        self._changed = False

    @classmethod
    def of(cls, suite: Path) -> Recording:
        """What is stored beside a suite; empty where nothing is. Raises `CallError`."""
        path = recording_path(suite)
        try:
            stored = json.loads(path.read_bytes())
        except FileNotFoundError:
            return cls(path)
        except (OSError, ValueError) as error:
            raise CallError(f"the recording {str(path)!r} cannot be read: {error}") from error
        match stored:
            case {"version": 1, "cases": dict(cases)}:
                return cls(path, cases)
        raise CallError(f"{str(path)!r} is not a recording of this version; record it again")

    def put(self, case: str, entries: list[Entry]) -> None:
        """Keep the calls of a case, without secrets."""
        self.cases[case] = mask(entries)
        self._changed = True

    def save(self) -> None:
        """Write the file where a case was put: whole, or not at all."""
        if not self._changed:
            return
        text = json.dumps(
            {"version": _VERSION, "cases": self.cases}, ensure_ascii=False, indent=1, sort_keys=True
        )
        written = self.path.with_name(self.path.name + ".new")
        written.write_text(text + "\n", encoding="utf-8")
        written.replace(self.path)


def request_json(request: Request) -> Entry:
    """What a recorded request is compared by: all that the answer depends on, without secrets."""
    told: Entry = {
        "system": request.system,
        "messages": request.messages,
        "tools": request.tools,
        "toolChoice": request.tool_choice,
        "model": request.model,
        "maxTokens": request.max_tokens,
        "temperature": request.temperature,
    }
    bare: Entry = mask(_without_cache_marks({key: value for key, value in told.items() if value}))
    return bare


def _without_cache_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_cache_marks(v) for k, v in value.items() if k != "cache_control"}
    if isinstance(value, list):
        return [_without_cache_marks(item) for item in value]
    return value


class Recorder:
    """Asks the real model and keeps what it answered in `entries`."""

    def __init__(self, model: ChatModel, entries: list[Entry]) -> None:
        self.name = model.name
        self.provider = model.provider
        self._model = model
        self._entries = entries

    async def complete(
        self, request: Request, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply:
        entry: Entry = {"connector": self.name, "request": request_json(request)}
        self._entries.append(entry)
        try:
            reply = await self._model.complete(request, on_delta)
        except ModelError as error:
            entry["error"] = {"status": error.status, "text": str(error)}
            raise
        entry["reply"] = {
            "content": reply.content,
            "stopReason": reply.stop_reason,
            "model": reply.model,
            "usage": asdict(reply.usage) if reply.usage else None,
        }
        return reply


class Replayer:
    """Answers with recorded replies. A request that was not recorded is a problem of the case."""

    def __init__(self, name: str, provider: str, entries: Sequence[Entry], log: ModelLog) -> None:
        self.name = name
        self.provider = provider
        self._left = [entry for entry in entries if entry["connector"] == name]
        self._log = log

    async def complete(
        self, request: Request, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply:
        asked = request_json(request)
        # Calls that run side by side come in any order.
        for index, entry in enumerate(self._left):
            if entry["request"] == asked:
                del self._left[index]
                return _replay(entry)
        text = self._difference(asked)
        self._log.problems.append(text)
        raise ModelRefused(text)

    def _difference(self, asked: Entry) -> str:
        way_out = "record the suite again with --record"
        if not self._left:
            return f"connector {self.name!r} is asked more often than was recorded; {way_out}"
        first = differences(self._left[0]["request"], asked, "request")[0]
        return (
            f"a request to {self.name!r} differs from the recorded one at {first.path}: "
            f"recorded was {first.wanted}, now it is {first.got}; {way_out}"
        )


def _replay(entry: Entry) -> Reply:
    """What was answered. Raises what the provider had failed with."""
    if "error" in entry:
        raise failure(entry["error"]["status"], entry["error"]["text"])
    stored = entry["reply"]
    usage = stored["usage"]
    return Reply(
        json.loads(json.dumps(stored["content"])),
        stored["stopReason"],
        stored["model"],
        Usage(**usage) if usage else None,
    )
