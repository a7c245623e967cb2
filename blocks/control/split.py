"""`split`: one message in, many out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr, SubFlow
from flowrt.engine.pool import run_pooled
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import FlowError
from flowrt.expr.values import kind_of
from flowrt.ids import new_id
from flowrt.message import Message
from flowrt.observe.log import get_logger


class SplitSettings(Settings):
    """Settings of `split`."""

    mode: Literal["expression", "lines", "delimiter", "chunk"] = Field(
        default="expression",
        description="What the elements are: those of a list, or parts of text.",
    )
    items: Expr | None = Field(
        default=None, description="The list; required for, and only for, `expression`."
    )
    delimiter: str | None = Field(
        default=None,
        min_length=1,
        description="What stands between elements; required for, and only for, `delimiter`.",
    )
    chunk_size: int | None = Field(
        default=None,
        ge=1,
        description="Characters of an element; required for, and only for, `chunk`.",
    )
    on_error: Literal["skip", "abort"] = Field(
        default="skip",
        description="Where an element fails for good: go on with the others, or give up on them.",
    )
    build_response: SubFlow | None = Field(
        default=None, description="Makes the caller's answer; without it, the message as it is."
    )


_NEEDS = {"expression": "items", "delimiter": "delimiter", "chunk": "chunkSize"}


class Split(Block[SplitSettings]):
    """Sends each element through the rest of the flow, as a message of its own.

    An element's message has the variables of its parent, and `vars.groupId` (the parent's event
    id), `groupIndex` and `groupSize`. In the text modes the size is -1 for all but the last
    element. The text is raw content, or a body that is text; an empty last part is none.

    The caller does not wait for the elements: its own message goes to `buildResponse`, which sees
    the real `groupSize`, and ends there. As many elements as the flow's `pool` says are worked on
    at a time. One that fails goes to the flow's `error` chain; where that cannot help, a log line
    says so. Allowed in the `process` list of a flow only, not inside other blocks.

    ```yaml
    - type: split
      items: body.lines
      buildResponse:
        process:
          - type: set-payload
            value: '{"accepted": vars.groupSize}'
    - type: log
      message: '"line " + string(vars.groupIndex)'
    ```
    """

    Settings = SplitSettings

    def __init__(self, settings: SplitSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._pool = site.pool
        self._rest = site.rest()
        self._address = site.address
        self._log = get_logger(site.address)
        needed = _NEEDS.get(settings.mode)
        given = {
            "items": settings.items,
            "delimiter": settings.delimiter,
            "chunkSize": settings.chunk_size,
        }
        for key, value in given.items():
            if key == needed and value is None:
                raise site.refuse(("mode",), f"split mode {settings.mode} needs {key}")
            if key != needed and value is not None:
                raise site.refuse((key,), f"split mode {settings.mode} has no {key}")
        self._response = None
        if settings.build_response is not None:
            self._response = site.chain(settings.build_response, "buildResponse")

    async def run(self, message: Message, run: Run) -> Message | None:
        elements, size = self._elements(message)
        message.update({"groupId": message.event_id, "groupSize": size})
        if size:
            messages = self._messages(elements, size, message.scoped())
            work = self._work(messages, min(size, self._pool), run.detached())
            run.runtime.spawn(work, f"the elements of {self._address}")
        answer: Message | None = message
        if self._response is not None:
            answer = await self._response.run(message, run)
        if answer is not None:
            answer.stop = True
        return answer

    def _elements(self, message: Message) -> tuple[Iterator[Any], int]:
        """The elements, and how many there are."""
        settings = self.settings
        if settings.items is not None:
            items = settings.items.value(message)
            if not isinstance(items, list):
                raise FlowError(f"split items must evaluate to an array, got {kind_of(items)}")
            return iter(items), len(items)
        text = message.body["rawData"] if message.raw else message.body
        if not isinstance(text, str):
            kind = kind_of(text)
            raise FlowError(f"split mode {settings.mode} needs a text as the body, got {kind}")
        # Cut twice rather than kept: a large text in parts takes many times its room.
        return self._parts(text), sum(1 for _ in self._parts(text))

    def _parts(self, text: str) -> Iterator[str]:
        size, delimiter = self.settings.chunk_size, self.settings.delimiter
        if size is not None:
            return (text[at : at + size] for at in range(0, len(text), size))
        if delimiter is not None:
            return _between(text, delimiter)
        return (line.removesuffix("\r") for line in _between(text, "\n"))

    def _messages(self, elements: Iterator[Any], size: int, parent: Message) -> Iterator[Message]:
        known = self.settings.mode == "expression"
        for index, element in enumerate(elements):
            message = parent.scoped()
            message.event_id = new_id()
            message.body = element
            message.raw = False
            message.body_schema = None
            told = size if known or index == size - 1 else -1
            message.update({"groupIndex": index, "groupSize": told})
            yield message

    async def _work(self, messages: Iterator[Message], pool: int, run: Run) -> None:
        await run_pooled((partial(self._one, message, run) for message in messages), pool)

    async def _one(self, message: Message, run: Run) -> None:
        try:
            await self._rest.flow.run(message, run)
        except FlowError as error:
            index = message.vars["groupIndex"]
            if self.settings.on_error == "abort":
                raise FlowError(f"element {index} failed, the rest is given up: {error}") from error
            self._log.error(
                "an element failed", event_id=message.event_id, index=index, error=str(error)
            )


def _between(text: str, delimiter: str) -> Iterator[str]:
    """The parts of `text` between delimiters; what ends with one has no empty part after it."""
    start = 0
    while start < len(text):
        end = text.find(delimiter, start)
        if end < 0:
            end = len(text)
        yield text[start:end]
        start = end + len(delimiter)
