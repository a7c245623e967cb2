"""Files as content blocks: pictures, PDFs and texts, on their way to a model and from it."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from flowrt.llm.model import Block

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
PDF = "application/pdf"

_FILES = ("image", "document")


@dataclass(frozen=True, slots=True)
class File:
    """A file with its content in base64; `name` may be empty."""

    mime_type: str
    data: str
    name: str = ""

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return len(self.data) // 4 * 3 - self.data[-2:].count("=")

    def __str__(self) -> str:
        size = f"{self.size / 1024:.0f} KB" if self.size >= 1024 else f"{self.size} bytes"
        about = f"{self.mime_type}, {size}"
        return f"{self.name} ({about})" if self.name else about

    def blocks(self) -> list[Block]:
        """The file for a user turn. A picture has its name, if any, as a text in front of it.

        Text of any kind goes as a plain document, which is the only form of it the API has. Raises
        `UnicodeDecodeError` where it is not UTF-8.
        """
        if self.mime_type in IMAGE_TYPES:
            label = [{"type": "text", "text": f"{self.name}:"}] if self.name.strip() else []
            return [*label, {"type": "image", "source": self._source()}]
        if self.mime_type == PDF:
            source = self._source()
        else:
            text = base64.b64decode(self.data).decode()
            source = {"type": "text", "media_type": "text/plain", "data": text}
        title = {"title": self.name} if self.name.strip() else {}
        return [{"type": "document", "source": source, **title}]

    def _source(self) -> dict[str, Any]:
        return {"type": "base64", "media_type": self.mime_type, "data": self.data}


def files_in(content: Iterable[Block]) -> list[File]:
    """The files among content blocks whose content is at hand."""
    return [file for block in content if (file := _file(block)) is not None]


def without_files(content: list[Block]) -> list[Block]:
    """Content in which a text stands for each file; the same list where there is none.

    A reply may hold files, the next request may not: the API takes them from the user alone.
    """
    if not any(block.get("type") in _FILES for block in content):
        return content
    return [_told(block) if block.get("type") in _FILES else block for block in content]


def _told(block: Block) -> Block:
    file = _file(block)
    what = str(file) if file is not None else str(block["type"])
    return {"type": "text", "text": f"[a file was delivered here: {what}]"}


def _file(block: Block) -> File | None:
    name = str(block.get("title") or "")
    match block:
        case {
            "type": "image" | "document",
            "source": {"type": "base64", "media_type": str(mime_type), "data": str(data)},
        }:
            return File(mime_type, data, name)
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return File("text/plain", base64.b64encode(text.encode()).decode(), name)
    return None
