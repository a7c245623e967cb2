"""What the models of a case were asked."""

from __future__ import annotations

from typing import Any

from flowrt.llm.model import Request
from flowrt.llm.scripted import request_view


class ModelLog:
    """What the models of a case were asked, in order, and what was wrong with it.

    `problems` fail the case also where the flow recovered from the error they came with.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, Request]] = []
        self.problems: list[str] = []

    def ask(self, connector: str, request: Request) -> None:
        """Note a request."""
        self.requests.append((connector, request))

    def views(self) -> list[dict[str, Any]]:
        """The requests as conditions see them; `connector` is who was asked."""
        return [{"connector": name, **request_view(each)} for name, each in self.requests]
