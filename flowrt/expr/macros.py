"""What CEL flows write and the runtime does not know, rewritten before it compiles.

* Two-variable comprehensions (`all exists existsOne transformList transformMap transformMapEntry`)
  and `sortBy` become the one-variable macros and `cel.bind` that the runtime has.
* `reverse`, `regex.extract` and `optional.unwrap` become what the runtime can express.
* `string(x)` becomes a function of ours: the runtime writes 1700000000.123 as 1.700000000123e+09.
* `now` becomes a timestamp made of a variable: the runtime takes no dates as data.

Only the file's own text is rewritten, once, at load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?x)
    (?P<space>(?:\s+|//[^\n]*)+)
  | (?P<string>[bBrR]{0,2}(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}
        |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
  | (?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\d+)(?:[eE][+-]?\d+)?[uU]?|\.\d+(?:[eE][+-]?\d+)?)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<mark>\.\?|\[\?|==|!=|<=|>=|&&|\|\||.)
    """,
    re.DOTALL,
)
# A raw string takes backslashes as they are, so its end is found differently.
_RAW = re.compile(
    r"""(?x)[bB]?[rR][bB]?(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')""", re.DOTALL
)

_OPEN = {"(": ")", "[": "]", "[?": "]", "{": "}"}
_TWO_VARIABLES = frozenset(
    {"all", "exists", "existsOne", "exists_one", "transformList", "transformMap"}
)
NOW = "flowrt_now"


def tokens(source: str, at: int = 0) -> Iterator[str]:
    """The source in tokens; white space and comments are kept as tokens of their own."""
    while at < len(source):
        match = _RAW.match(source, at) or _TOKEN.match(source, at)
        assert match is not None  # the last alternative takes any character
        yield match.group()
        at = match.end()


def expand(source: str) -> tuple[str, bool]:
    """The source in the runtime's own words, and whether it asks for the time."""
    if not _NEEDS.search(source):
        return source, False
    expander = _Expander(list(tokens(source)))
    return expander.text(), expander.uses_now


_NEEDS = re.compile(
    r"\b(?:string|now|all|exists|existsOne|exists_one|transformList|transformMap|transformMapEntry"
    r"|sortBy|reverse|extract|unwrap)\b"
)


class _Expander:
    """Walks the tokens once, keeping the text of the operand it is in."""

    def __init__(self, found: list[str]) -> None:
        self._tokens = found
        self._at = 0
        self._made = 0
        self.uses_now = False

    def text(self) -> str:
        return self._until(None)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _until(self, end: str | None) -> str:
        """Everything up to the closing mark `end`, which is left standing."""
        out: list[str] = []
        while self._at < len(self._tokens) and self._peek() != end:
            out.append(self._operand() if self._starts_operand() else self._next())
        return "".join(out)

    def _starts_operand(self) -> bool:
        token = self._peek()
        return token in _OPEN or token[0].isalnum() or token[0] in "_\"'"

    def _operand(self) -> str:
        """A primary with everything that hangs on it: fields, calls, indexes."""
        text = self._primary()
        while self._at < len(self._tokens):
            token = self._peek()
            if token in (".", ".?"):
                text = self._member(text, self._next())
            elif token in ("[", "[?", "{", "("):
                text += self._group()
            else:
                break
        return text

    def _primary(self) -> str:
        if self._peek() in _OPEN:
            return self._group()
        name = self._next()
        if name == "string" and self._peek() == "(":
            return "flowrt_string"
        if name == "now" and self._peek() not in ("(", "."):
            self.uses_now = True
            return f"timestamp({NOW})"
        if name == "now" and self._peek() == ".":
            self.uses_now = True
            return f"timestamp({NOW})"
        return name

    def _group(self) -> str:
        opening = self._next()
        inside = self._until(_OPEN[opening])
        return opening + inside + (self._next() if self._at < len(self._tokens) else "")

    def _member(self, target: str, dot: str) -> str:
        while self._at < len(self._tokens) and self._peek().isspace():
            self._next()
        if self._at >= len(self._tokens):
            return target + dot
        name = self._next()
        if self._peek() != "(":
            return f"{target}{dot}{name}"
        arguments = self._arguments()
        return self._macro(target, name, arguments) or (
            f"{target}{dot}{name}({','.join(arguments)})"
        )

    def _arguments(self) -> list[str]:
        """The arguments of a call, each rewritten; the marks around them are taken."""
        self._next()
        arguments: list[str] = []
        current: list[str] = []
        while self._at < len(self._tokens) and self._peek() != ")":
            if self._peek() == ",":
                self._next()
                arguments.append("".join(current))
                current = []
            else:
                current.append(self._operand() if self._starts_operand() else self._next())
        if self._at < len(self._tokens):
            self._next()
        if current or arguments:
            arguments.append("".join(current))
        return arguments

    def _macro(self, target: str, name: str, arguments: list[str]) -> str | None:
        if name == "sortBy" and len(arguments) == 2:
            variable, key = arguments
            bound = self._fresh()
            return (
                f"cel.bind({bound}, {target}, "
                f"flowrt_sort_by({bound}, {bound}.map({variable}, {key})))"
            )
        if name == "reverse" and not arguments:
            return f"flowrt_reverse({target})"
        if (target, name) == ("regex", "extract") and len(arguments) == 2:
            return f"flowrt_extract({','.join(arguments)}).first()"
        if (target, name) == ("optional", "unwrap") and len(arguments) == 1:
            item = self._fresh()
            return f"({arguments[0]}).filter({item}, {item}.hasValue()).map({item}, {item}.value())"
        if name == "transformMapEntry" and len(arguments) in (3, 4):
            return self._comprehension(target, "flowrt_merge", arguments)
        if name in _TWO_VARIABLES and len(arguments) in (3, 4):
            return self._comprehension(target, name, arguments)
        return None

    def _comprehension(self, target: str, name: str, arguments: list[str]) -> str | None:
        key, value = (argument.strip() for argument in arguments[:2])
        if not (key.isidentifier() and value.isidentifier()):
            return None  # the three-argument `map(x, filter, result)` family, or a plain call
        bound = self._fresh()

        def over(expression: str) -> str:
            return f"cel.bind({value}, {bound}[{key}], {expression})"

        keys = f"flowrt_keys({bound})"
        if name in ("all", "exists", "existsOne", "exists_one"):
            if len(arguments) != 3:
                return None
            one = "exists_one" if name == "existsOne" else name
            body = f"{keys}.{one}({key}, {over(arguments[2])})"
        else:
            if len(arguments) == 4:
                keys = f"{keys}.filter({key}, {over(arguments[2])})"
            mapped = f"{keys}.map({key}, {over(arguments[-1])})"
            body = mapped
            if name == "transformMap":
                body = f"flowrt_zip({keys}, {mapped})"
            elif name == "flowrt_merge":
                body = f"flowrt_merge({mapped})"
        return f"cel.bind({bound}, {target}, {body})"

    def _fresh(self) -> str:
        self._made += 1
        return f"flowrt_t{self._made}"
