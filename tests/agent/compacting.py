"""A listener, a long text, and the requests of a run told apart from those for summaries."""

from __future__ import annotations

from typing import Any

from flowrt.message import Outcome
from flowrt.service import Service
from flowrt.testing import FakeMessagesAPI
from flowrt.testing.replies import FakeReply
from tests.services import say

LONG = "word " * 200


class Listener:
    """Collects the events of a run."""

    delta: None = None

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def event(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]


def is_summary_request(body: dict[str, Any]) -> bool:
    return "record" in body["system"][0]["text"] and not body.get("tools")


def summaries(api: FakeMessagesAPI) -> list[dict[str, Any]]:
    return [r.body for r in api.requests if is_summary_request(r.body)]


def turns(api: FakeMessagesAPI) -> list[dict[str, Any]]:
    return [r.body for r in api.requests if not is_summary_request(r.body)]


async def talk(service: Service, *said: str, watcher: Listener | None = None) -> None:
    for text in said:
        result = await service.invoke("chat", say(text), watcher=watcher)
        assert Outcome.COMPLETED == result.outcome, result.error


def summarizing(summary: str, reply: str = "fine " * 40) -> Any:
    def answer(body: dict[str, Any]) -> FakeReply:
        return FakeReply(text=summary if is_summary_request(body) else reply)

    return answer
