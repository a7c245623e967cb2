"""What every fake API of a model is: a server that plays a script and remembers its requests."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Self

from flowrt.expr import Expression
from flowrt.llm.model import Request
from flowrt.llm.scripted import request_view
from flowrt.message import Message
from flowrt.testing.loopback import Answer, Call, LoopbackServer
from flowrt.testing.replies import FakeReply, parse_reply


class Refused(Exception):
    """The request is answered with an error instead.

    `code` and `param` are what OpenAI's API says besides the text.
    """

    def __init__(
        self,
        status: int,
        text: str,
        headers: dict[str, str] | None = None,
        *,
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers or {}
        self.code = code
        self.param = param


class ScriptedAPI(ABC):
    """Serves on a loopback port for as long as the `with` block runs.

    `replies` with a `when` come first, the others are played in order, and then `reply` is asked,
    with the request's body. `base_url` is where it serves, `requests` are the calls of the model in
    order, `refused` the texts of all refusals that no script asked for.
    """

    def __init__(self, replies: Iterable[Any], reply: Callable[[Any], Any] | None) -> None:
        self.reply = reply
        self.requests: list[Call] = []
        self.refused: list[str] = []
        self.base_url = ""
        self._queue: list[FakeReply] = []
        self._conditional: list[tuple[Expression, FakeReply]] = []
        self._server: LoopbackServer | None = None
        self.add(*replies)

    def add(self, *replies: Any) -> None:
        """Put more replies at the end of the script."""
        for entry in map(parse_reply, replies):
            if entry.when is None:
                self._queue.append(entry)
            else:
                condition = Expression.compile(entry.when, names=("request",))
                self._conditional.append((condition, entry))

    def __enter__(self) -> Self:
        self._server = LoopbackServer(self._handle)
        self._server.start()
        self.base_url = self._server.url
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving; requests that are being held are cut off."""
        if self._server is not None:
            self._server.stop()

    @property
    def bodies(self) -> list[Any]:
        """What the model was sent: the bodies of `requests`."""
        return [call.body for call in self.requests]

    @abstractmethod
    async def _handle(self, call: Call) -> Answer:
        """The answer to a call."""

    def _pick(self, body: Any, request: Callable[[], Request]) -> FakeReply:
        """The reply to a request; `request` is how conditions see it. Raises `Refused`."""
        if self._conditional:
            view = {"request": request_view(request())}
            for condition, entry in self._conditional:
                if condition.test(Message(), view):
                    return entry
        if self._queue:
            return self._queue.pop(0)
        if self.reply is not None:
            return self._ask_test(self.reply, body)
        text = f"the script of the fake API has no reply for request {len(self.requests)}"
        self.refused.append(text)
        raise Refused(400, text)

    async def _wait(self, entry: FakeReply) -> None:
        """What comes before the answer of an entry. Raises `Refused` where it is a failure."""
        if entry.delay:
            await asyncio.sleep(entry.delay)
        if entry.error is not None:
            if entry.hold is not None:
                await entry.hold.pass_through()
            raise Refused(entry.error, entry.message or f"scripted {entry.error}", entry.headers)

    def _ask_test(self, reply: Callable[[Any], Any], body: Any) -> FakeReply:
        try:
            return parse_reply(reply(body))
        except Exception as error:
            text = f"the test's reply function failed: {error!r}"
            self.refused.append(text)
            raise Refused(500, text, {"x-should-retry": "false"}) from error
