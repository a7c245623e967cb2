"""An HTTP API on a loopback port that answers what a test says, and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flowrt.testing.loopback import Answer, Call, LoopbackServer
from flowrt.testing.replies import Gate

Script = Answer | Callable[[Call], Answer]


def says(
    body: Any = None,
    status: int = 200,
    *,
    kind: str = "application/json",
    hold: Gate | None = None,
    disconnect: int | None = None,
    **headers: str,
) -> Answer:
    """An answer: JSON, or with another `kind` a text or bytes as they are.

    Of `headers`, `_` is `-`.
    """
    if kind == "application/json":
        body = b"" if body is None else json.dumps(body).encode()
    content = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(
        status, [content], {"content-type": kind, **named}, hold=hold, disconnect=disconnect
    )


class Web:
    """The server: `url`, and `calls` in the order they came."""

    def __init__(self, script: tuple[Script, ...]) -> None:
        self.calls: list[Call] = []
        self._script = list(script)
        self.server = LoopbackServer(self._handle)
        self.url = self.server.url

    @property
    def call(self) -> Call:
        """The only call."""
        (call,) = self.calls
        return call

    async def _handle(self, call: Call) -> Answer:
        self.calls.append(call)
        # The last one answers for ever.
        answer = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return answer if isinstance(answer, Answer) else answer(call)


@contextmanager
def web(*script: Script) -> Iterator[Web]:
    """Serve these answers in turn; a function makes one for the call."""
    made = Web(script)
    made.server.start()
    try:
        yield made
    finally:
        made.server.stop()
