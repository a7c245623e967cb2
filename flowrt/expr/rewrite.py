"""What CEL flows write and the runtime cannot do, put into its own words before it compiles.

* ``string(x)`` becomes a function of ours: the runtime writes 1700000000.123 as 1.700000000123e+09.
* ``now`` becomes a variable bound once around the expression: the runtime takes no dates as data.
* ``transformMap`` and ``transformMapEntry`` become lists that a function of ours makes maps of: the
  runtime parses and checks both, and then lacks the function that they are made of.
* ``optional.unwrap(x)`` and ``x.unwrapOpt()`` become a filter and a map.
* ``lists.range`` becomes a bounded one.
* ``map``, ``filter``, ``transformList`` and ``sortBy`` go through long lists in pieces: the runtime
  copies what it has so far for every element, 9,000 of them take 4 s and 1.3 GB whole and 30 ms in
  pieces. Sorting is stable besides, which the runtime's is not.
* Where optionals are made, what is handed to a function of ours is written through `format` first,
  which refuses an optional inside a list or map; in a function of ours it would end the process.

Only text from the file is ever rewritten, once, at load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

NOW_CALL = "_now_()"
PIECES = "_pieces"
LONG = 64
"""Elements from which `map` and `filter` work in pieces."""

_MOST_TWICE = 1000
"""Characters that are written twice, see `_worth_two`."""

_DEEPEST = 100
"""Nested brackets above which nothing is rewritten; the runtime refuses such a source (32)."""

_TOKEN = re.compile(
    r"""(?x)
    (?P<space>(?:\s+|//[^\n]*)+)
  | (?P<raw>(?:[bB]?[rR]|[rR][bB])(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*'))
  | (?P<string>[bB]?(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}
        |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
  | (?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\d+)(?:[eE][+-]?\d+)?[uU]?
        |\.\d+(?:[eE][+-]?\d+)?)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*|`[^`\n]*`)
  | (?P<mark>\.\?|\[\?|==|!=|<=|>=|&&|\|\||.)
    """,
    re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "[?": "]", "{": "}"}
_REWRITTEN = re.compile(
    r"\b(?:string|now|range|sortBy|transformList|map|filter|transformMap|transformMapEntry|unwrap|unwrapOpt|toJson|toYaml"
    r"|toFormData|toEnv|addPart|fromMultipart|toMultipart)\b"
)
_NUL = re.compile(r"^[^bB](?:[^\\]|\\.)*?\\(?:x00|000|u0000|U00000000)", re.DOTALL)
_PLAIN = re.compile(r"""'([^'\\]*)'|"([^"\\]*)\"""")
_OPTIONAL_MARK = re.compile(r"[.\[{(,]\?")
_OPTIONAL_NAMES = frozenset(
    {"optional", "first", "last", "extract", "optMap", "optFlatMap", "or", "unwrapOpt"}
)
_WHOLE = frozenset(
    {"toJson", "toYaml", "toFormData", "toEnv", "addPart", "fromMultipart", "toMultipart"}
)
_GUARD = "cel.bind({0}, {1}, '%s'.format([{0}]) == '' ? {0} : {0})"


def pieces_of(text: str, at: int = 0) -> Iterator[tuple[str, str]]:
    """Kind and text of each token from `at`, white space and comments among them (`space`)."""
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None  # the last alternative takes any character
        yield match.lastgroup or "", match.group()
        at = match.end()


class Source:
    """A source in tokens: which names it uses, and its text for the runtime."""

    __slots__ = (
        "_deep",
        "_text",
        "_tokens",
        "binds",
        "empty",
        "makes_nul",
        "makes_optionals",
        "names",
        "templates",
        "uses_now",
    )

    def __init__(self, text: str) -> None:
        self._text = text
        found = [(kind, piece) for kind, piece in pieces_of(text) if kind != "space"]
        self._tokens = [piece for _, piece in found]
        self.empty = not found
        names = {piece for kind, piece in found if kind == "name"}
        self.names = names
        """Every name outside strings, fields and functions among them."""
        self.makes_nul = any(kind == "string" and _NUL.search(piece) for kind, piece in found)
        marks = "".join(piece if kind == "mark" else "x" for kind, piece in found)
        self.makes_optionals = bool(names & _OPTIONAL_NAMES or _OPTIONAL_MARK.search(marks))
        self.binds = "cel" in names and _stands(self._tokens, "cel", ".", "bind", "(")
        self.uses_now = "now" in names
        self.templates = _constants(self._tokens, "templateResource")
        """The templates that are asked for by a plain string."""
        self._deep = _depth(self._tokens) > _DEEPEST

    def for_runtime(self, *, in_pieces: bool = True) -> str:
        """The text the runtime compiles; the file's own where nothing has to change."""
        if self._deep or not _REWRITTEN.search(self._text):
            return self._text
        # What is handed to `pieces` passes through a function of ours, see the module's last point.
        writer = _Writer(self._tokens, in_pieces and not self.makes_optionals, self.makes_optionals)
        text = writer.sequence("")
        return f"cel.bind(now, {NOW_CALL}, {text})" if self.uses_now else text


def _stands(tokens: list[str], *wanted: str) -> bool:
    found = (at for at, piece in enumerate(tokens) if piece == wanted[0])
    return any(tuple(tokens[at : at + len(wanted)]) == wanted for at in found)


def _constants(tokens: list[str], function: str) -> list[str]:
    """The arguments of calls of `function` that are one string without escapes."""
    found = []
    for at, piece in enumerate(tokens):
        if piece == function and tokens[at + 1 : at + 4 : 2] == ["(", ")"]:
            plain = _PLAIN.fullmatch(tokens[at + 2])
            found += [plain[1] or plain[2] or ""] if plain else []
    return found


def _depth(tokens: list[str]) -> int:
    deepest = depth = 0
    for piece in tokens:
        if piece in _CLOSING:
            depth += 1
            deepest = max(deepest, depth)
        elif piece in (")", "]", "}"):
            depth -= 1
    return deepest


class _Writer:
    """Walks the tokens once, keeping the text of the operand it is in."""

    def __init__(self, tokens: list[str], in_pieces: bool, guarded: bool) -> None:
        self._tokens = tokens
        self._in_pieces = in_pieces
        self._guarded = guarded
        self._at = 0
        self._made = 0

    def sequence(self, end: str) -> str:
        """Everything up to the closing mark `end`, which is left standing."""
        out: list[str] = []
        while self._at < len(self._tokens) and self._peek() != end:
            out.append(self._operand() if self._starts_operand() else self._next())
        return " ".join(out)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _starts_operand(self) -> bool:
        piece = self._peek()
        return piece in _CLOSING or (piece != "in" and (piece[0].isalnum() or piece[0] in "_\"'`"))

    def _operand(self) -> str:
        """A primary with everything that hangs on it: fields, calls, indexes."""
        text = self._group() if self._peek() in _CLOSING else self._primary()
        while (piece := self._peek()) in (".", ".?", "[", "[?"):
            text = text + self._group() if piece in _CLOSING else self._member(text)
        return text

    def _primary(self) -> str:
        name = self._next()
        if self._peek() == "(" and (name[0].isalpha() or name[0] == "_"):
            return self._function(name, self._arguments())
        return name

    def _group(self) -> str:
        opening = self._next()
        inside = self.sequence(_CLOSING[opening])
        return opening + inside + (self._next() if self._peek() else "")

    def _member(self, target: str) -> str:
        dot = self._next()
        name = self._next() if self._peek() else ""
        if self._peek() != "(":
            return f"{target}{dot}{name}"
        arguments = self._arguments()
        return self._macro(target, name, arguments) or (
            f"{target}{dot}{name}({', '.join(arguments)})"
        )

    def _arguments(self) -> list[str]:
        """The arguments of a call, each rewritten; the marks around them are taken."""
        self._next()
        arguments: list[str] = []
        current: list[str] = []
        while self._at < len(self._tokens) and self._peek() != ")":
            if self._peek() == ",":
                self._next()
                arguments.append(" ".join(current))
                current = []
            else:
                current.append(self._operand() if self._starts_operand() else self._next())
        closed = self._peek() == ")" and self._next()
        if current or arguments:
            arguments.append(" ".join(current))
        # A call that is never closed stays one, so that the runtime says so.
        return arguments if closed else [*arguments, "("]

    def _function(self, name: str, arguments: list[str]) -> str:
        if name == "string":
            name = "_text_"
        if name in _WHOLE:
            arguments = [self._guard(argument) for argument in arguments]
        return f"{name}({', '.join(arguments)})"

    def _macro(self, target: str, name: str, arguments: list[str]) -> str | None:
        count = len(arguments)
        if (name, count) in (("map", 2), ("map", 3), ("filter", 2)):
            return self._long(target, name, arguments)
        if (name, count) == ("sortBy", 2):
            return self._sorted(target, *arguments)
        if name == "transformList" and count in (3, 4):
            return self._listed(target, arguments)
        if name == "transformMap" and count in (3, 4):
            rest, pair = arguments[:-1], f"[dyn({arguments[0]}), dyn({self._guard(arguments[-1])})]"
            return f"{self._listed(target, [*rest, pair])}._pairs()"
        if name == "transformMapEntry" and count in (3, 4):
            rest, entry = arguments[:-1], self._guard(arguments[-1])
            return f"{self._listed(target, [*rest, entry])}._merged()"
        if (target, name, count) == ("lists", "range", 1):
            return f"_range_({arguments[0]})"
        if (target, name, count) == ("optional", "unwrap", 1):
            return self._unwrapped(f"({arguments[0]})")
        if name == "unwrapOpt" and count == 0:
            return self._unwrapped(target)
        if name in _WHOLE:
            whole = [self._guard(argument) for argument in (target, *arguments)]
            return f"({whole[0]}).{name}({', '.join(whole[1:])})"
        return None

    def _long(self, target: str, name: str, arguments: list[str]) -> str | None:
        # A literal is as long as it is written.
        if not self._in_pieces or target.startswith("["):
            return None
        whole, piece = self._fresh(), self._fresh()
        call = f"{name}({', '.join(arguments)})"
        return (
            f"cel.bind({whole}, {target}, (size({whole}) < {LONG} ? [dyn({whole})] : "
            f"{whole}.{PIECES}()).map({piece}, {piece}.{call}).flatten())"
        )

    def _sorted(self, target: str, variable: str, key: str) -> str | None:
        if not self._in_pieces:
            return None
        whole = self._fresh()
        keys = self._long(whole, "map", [variable, key])
        return f"cel.bind({whole}, {target}, {whole}._sorted({keys}))"

    def _listed(self, target: str, arguments: list[str]) -> str:
        call = f"transformList({', '.join(arguments)})"
        if not self._worth_two(target, call):
            return f"{target}.{call}"
        whole, piece, entry = self._fresh(), self._fresh(), self._fresh()
        key, value, *results = arguments
        bound = [
            f"cel.bind({key}, {entry}[0], cel.bind({value}, {entry}[1], {each}))"
            for each in results
        ]
        return (
            f"cel.bind({whole}, {target}, size({whole}) < {LONG} ? {whole}.{call} : "
            f"{whole}._entries().map({piece}, {piece}.map({entry}, {', '.join(bound)})).flatten())"
        )

    def _worth_two(self, target: str, text: str) -> bool:
        """Whether `text` may stand twice, for short lists and for long ones.

        Bounded, because nested in each other they double with every level.
        """
        return self._in_pieces and not target.startswith("[") and len(text) < _MOST_TWICE

    def _unwrapped(self, target: str) -> str:
        item = self._fresh()
        return f"{target}.filter({item}, {item}.hasValue()).map({item}, {item}.value())"

    def _guard(self, argument: str) -> str:
        return _GUARD.format(self._fresh(), argument) if self._guarded else argument

    def _fresh(self) -> str:
        self._made += 1
        return f"_t{self._made}_"
