"""Markdown, as models write it, in Slack's own markup. Needs the extra `slack`.

markdown-it-py reads it. What is written out is ours: the converters at hand leave code and links
unescaped, and there `<!channel>` still rings every phone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cache
from typing import TYPE_CHECKING, Any

from flowrt.slack.escaping import escape, escape_but

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_LINKS = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_BULLETS = "•◦▪"
_INDENT = "    "


def to_mrkdwn(markdown: str, allowed: Collection[str] = ()) -> str:
    """`markdown` as Slack shows it, every mention defused but those that are `allowed`."""
    from markdown_it.tree import SyntaxTreeNode

    tree = SyntaxTreeNode(_parser().parse(markdown))
    return _Writer(allowed).blocks(tree.children)


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


class _Writer:
    """Writes a tree out. Slack's markup does not nest bold: a heading is bold already."""

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = allowed
        self._in_heading = False
        self._blocks: dict[str, Callable[[SyntaxTreeNode, int], str]] = {
            "heading": self._heading,
            "bullet_list": self._list,
            "ordered_list": self._list,
            "blockquote": self._quote,
            "fence": self._code,
            "code_block": self._code,
            "hr": lambda node, depth: "———",
            "table": self._table,
        }
        self._marks = {"strong": "*", "em": "_", "s": "~"}

    def blocks(self, nodes: list[SyntaxTreeNode], depth: int = 0) -> str:
        return "\n\n".join(self._block(node, depth) for node in nodes)

    def _block(self, node: SyntaxTreeNode, depth: int) -> str:
        write = self._blocks.get(node.type)
        return write(node, depth) if write is not None else self._inline(node)

    def _heading(self, node: SyntaxTreeNode, depth: int) -> str:
        self._in_heading = True
        text = self._inline(node)
        self._in_heading = False
        return f"*{text}*" if text else ""

    def _list(self, node: SyntaxTreeNode, depth: int) -> str:
        first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
        bullet = _BULLETS[min(depth, len(_BULLETS) - 1)]
        lines = []
        for number, item in enumerate(node.children):
            mark = bullet if first is None else f"{first + number}."
            text = "\n".join(self._block(child, depth + 1) for child in item.children)
            lines.append(f"{mark} " + text.replace("\n", f"\n{_INDENT}"))
        return "\n".join(lines)

    def _quote(self, node: SyntaxTreeNode, depth: int) -> str:
        text = self.blocks(node.children, depth)
        return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))

    def _code(self, node: SyntaxTreeNode, depth: int) -> str:
        return _fenced(node.content.rstrip("\n"))

    def _table(self, node: SyntaxTreeNode, depth: int) -> str:
        rows = [
            [_plain(cell) for cell in row.children]
            for part in node.children
            for row in part.children
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        lines.insert(1, "-+-".join("-" * width for width in widths))
        return _fenced("\n".join(lines))

    def _inline(self, node: SyntaxTreeNode) -> str:
        return "".join(self._piece(child) for child in node.children)

    def _piece(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "text":
                return escape_but(node.content, self._allowed)
            case "code_inline":
                return f"`{escape(node.content)}`"
            case "softbreak" | "hardbreak":
                return "\n"
            case "link":
                return _link(str(node.attrs.get("href", "")), _plain(node))
            case "image":
                return _link(str(node.attrs.get("src", "")), node.content)
        text = self._inline(node)
        mark = self._marks.get(node.type, "")
        if not text or (self._in_heading and mark == "*"):
            return text
        return f"{mark}{text}{mark}"


def _fenced(code: str) -> str:
    # A fence inside of a fence would end it.
    return "```\n" + escape(code).replace("```", "`\u200b`\u200b`") + "\n```"


def _link(address: str, label: str) -> str:
    # Only these: what stands behind the `<` of a link is a mention as well, `<!channel|click>`.
    if not _LINKS.match(address):
        return escape(f"{label} ({address})" if address and address != label else label)
    target = escape(address).replace("|", "%7C")
    shown = escape(" ".join(label.split())).replace("|", "¦")
    return f"<{target}|{shown}>" if shown and shown != escape(address) else f"<{target}>"


def _plain(node: SyntaxTreeNode) -> str:
    if node.type in ("text", "code_inline", "image"):
        return str(node.content)
    if node.type in ("softbreak", "hardbreak"):
        return " "
    return "".join(_plain(child) for child in node.children)
