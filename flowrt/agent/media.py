"""Files of a run: what comes with the message that opens it, and what the model produces."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any

from flowrt.errors import FlowError
from flowrt.expr import Expression
from flowrt.llm.estimate import estimate_message
from flowrt.llm.media import IMAGE_TYPES, PDF, File, files_in
from flowrt.llm.model import Block, Reply
from flowrt.memory.entry import Entry
from flowrt.message import Message, clean_text
from flowrt.observe.log import get_logger

MAX_BYTES = 20 * 1024 * 1024
"""Bytes of all attachments of a message. The Messages API takes requests of up to 32 MB, and base64
makes four bytes of three."""

MAX_FILES = 100
"""Attachments of a message; the Messages API takes no more pictures in a request."""

_TEXT_TYPES = ("application/json", "application/xml", "application/yaml")
_ALIASES = {"image/jpg": "image/jpeg"}
_ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    PDF: "pdf",
    "text/plain": "txt",
}
_DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?:;[^;,]*)*?;base64,", re.IGNORECASE)

_log = get_logger("flowrt.agent.media")


@dataclass(frozen=True, slots=True)
class Files:
    """The attachments of one message: how the model is shown them, and what they are called."""

    blocks: tuple[Block, ...] = ()
    told: str = ""


NO_FILES = Files()


@dataclass(frozen=True, slots=True)
class MediaSpec:
    """What a block does with files: `keep` keeps attachments in the transcript.

    `response` is the variable that collects what the model produces.
    """

    attachments: Expression | None = None
    keep: bool = False
    response: str | None = None

    def read(self, message: Message, block: str) -> Files:
        """The attachments of `message`; null is none. `block` is for errors.

        Raises `FlowError` that names the first which no model can be shown.
        """
        if self.attachments is None:
            return NO_FILES
        value = self.attachments.value(message)
        if value is None:
            return NO_FILES
        if not isinstance(value, list):
            raise FlowError(
                f"{block} attachments: expected a list of {{mimeType, data, name}}, "
                f"got {_kind(value)}"
            )
        return _files(value, f"{block} attachments")


class Opening:
    """The user turn that opens a run, with what came with it."""

    __slots__ = ("_files", "entry")

    def __init__(self, text: Entry, files: Files) -> None:
        self._files = files
        self.entry = text
        if files.blocks:
            # In front of the text: a question after the picture is answered better.
            self._show(list(files.blocks))

    @property
    def has_files(self) -> bool:
        """Whether the turn shows files."""
        return bool(self._files.blocks)

    def drop_files(self) -> bool:
        """Put a text in the place of the files; whether there were any left."""
        if not self._files.blocks:
            return False
        shown = len(self._files.blocks)
        self.entry.message = {"role": "user", "content": self.entry.message["content"][shown:]}
        note = f"[shown with this message and not kept: {self._files.told}]"
        self._show([{"type": "text", "text": note}])
        self._files = NO_FILES
        return True

    def _show(self, blocks: list[Block]) -> None:
        content = [*blocks, *self.entry.message["content"]]
        self.entry.message = {"role": "user", "content": content}
        self.entry.tokens = estimate_message(self.entry.message)


class Produced:
    """Collects the files a model produces in one run in a variable of the message.

    Each is `{name, mimeType, size, data}`; the variable is an empty list where there are none.
    """

    __slots__ = ("_files", "_label", "_message", "_name")

    def __init__(self, name: str | None, message: Message, label: str) -> None:
        self._name = name
        self._message = message
        self._label = label
        self._files: list[dict[str, Any]] = []
        if name is not None:
            message.set(name, [])

    def take(self, reply: Reply) -> None:
        """Add the files of a reply."""
        files = files_in(reply.content)
        if not files:
            return
        if self._name is None:
            _log.warning("the model produced files that nobody collects; set responseMedia",
                         block=self._label, files=len(files))  # fmt: skip
            return
        self._files += [self._item(file, len(self._files) + at) for at, file in enumerate(files, 1)]
        self._message.set(self._name, list(self._files))

    def _item(self, file: File, number: int) -> dict[str, Any]:
        kind = "image" if file.mime_type.startswith("image/") else "file"
        name = file.name or f"{kind}-{number}.{_ENDINGS.get(file.mime_type, 'bin')}"
        return {"name": name, "mimeType": file.mime_type, "size": file.size, "data": file.data}


def _files(items: list[Any], place: str) -> Files:
    if len(items) > MAX_FILES:
        raise FlowError(f"{place}: {len(items)} files are too many; at most {MAX_FILES} can be")
    files: list[File] = []
    blocks: list[Block] = []
    total = 0
    for index, item in enumerate(items):
        file = _attached(item, f"{place}[{index}]")
        total += file.size
        if total > MAX_BYTES:
            raise FlowError(
                f"{place}[{index}]: with this one, the files are over {MAX_BYTES // 1024**2} MiB "
                "together, which is more than a request can hold; send fewer or smaller ones"
            )
        try:
            blocks += file.blocks()
        except UnicodeDecodeError as error:
            raise FlowError(f"{place}[{index}]: the text is not UTF-8: {error}") from error
        files.append(file)
    return Files(tuple(blocks), ", ".join(map(str, files)))


def _attached(item: Any, place: str) -> File:
    if not isinstance(item, dict):
        raise FlowError(f"{place}: expected {{mimeType, data, name}}, got {_kind(item)}")
    data, name = item.get("data"), item.get("name") or ""
    if not isinstance(data, str) or not data.strip():
        raise FlowError(f"{place}.data: expected base64 or a data: URL, got {_kind(data)}")
    if not isinstance(name, str):
        raise FlowError(f"{place}.name: expected a text, got {_kind(name)}")
    given = item.get("mimeType") or ""
    if url := _DATA_URL.match(data):
        given = given or url["type"]
        data = data[url.end() :]
    elif data.lower().startswith("data:"):
        raise FlowError(f"{place}.data: this data: URL is not in base64")
    return File(_mime_type(given, place), _base64(data, place), clean_text(name.strip()))


def _mime_type(given: Any, place: str) -> str:
    bare = given.partition(";")[0].strip().lower() if isinstance(given, str) else ""
    mime_type = _ALIASES.get(bare, bare)
    if mime_type in (*IMAGE_TYPES, PDF, *_TEXT_TYPES) or mime_type.startswith("text/"):
        return mime_type
    known = ", ".join((*IMAGE_TYPES, PDF))
    raise FlowError(
        f"{place}.mimeType: {given!r} cannot be shown to a model; it must be one of {known}, "
        "or a text"
    )


def _base64(data: str, place: str) -> str:
    """The data without line breaks. Raises `FlowError` where it is not base64."""
    bare = "".join(data.split())
    if len(bare) > MAX_BYTES * 2:
        raise FlowError(f"{place}.data: the file is over {MAX_BYTES // 1024**2} MiB")
    try:
        decoded = base64.b64decode(bare, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FlowError(f"{place}.data: this is not base64: {error}") from error
    if not decoded:
        raise FlowError(f"{place}.data: the file is empty")
    return bare


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return "a text" if value.strip() else "an empty text"
    names = {bool: "true or false", dict: "a map", list: "a list"}
    return names.get(type(value), "a number")
