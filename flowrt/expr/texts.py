"""The runtime's error texts, in words that say what to do."""

from __future__ import annotations

import re

from flowrt.expr.catalogue import ABSENT, FUNCTIONS, MEMBERS, NAMESPACES, VARIABLES
from flowrt.expr.nearest import nearest

_UNDECLARED = re.compile(r"undeclared reference to '([^']+)'")
_LINE = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_MISSING = re.compile(r"Key not found in map : (.*)$", re.DOTALL)
_STATUS = re.compile(r"^[A-Z_]+: ")
_CLASS = re.compile(r" \[[A-Z_]+\]$")
_CHECKED = re.compile(r"found no matching overload for '(\S+)' applied to '\((.*)\)'")
_CALLED = re.compile(r"No matching overloads found : (?:\((.*?)\)\.)?([^\s(]+)(?:\((.*)\))?")
_OPERATOR = re.compile(r"^_(\S+?)_$|^(!|-)_$")
_EXPECTING = re.compile(r" expecting \{.*\}$")
_SLICE = re.compile(r"input ':' expecting (?:'\]'|\{'\[')")
_NO_SLICES = "; a slice is list.slice(from, to) or text.substring(from, to)"
_NO_CONTAINER = re.compile(r"Invalid container type: '(\w+)'")
_CHARACTER = "one character of a text is text.charAt(0)"
_NAMESPACE = re.compile(rf"\b({'|'.join(NAMESPACES)})\s*\.\s*(\w+)")
_NUMBERS = frozenset({"int", "double", "uint"})
_NAMES = {"int64": "int", "uint64": "uint", "null_type": "null", "*opaque*": "an optional"}
_OURS = {"_text_": "string", "_range_": "lists.range", "_sorted": "sortBy", "_pieces": "map"}
_TOO_DEEP = (
    "the expression nests deeper than 32 levels; split it with set-variable blocks, or write a "
    "long a + b + c as [a, b, c].join('')"
)


def compile_text(text: str, source: str, names: tuple[str, ...], *, placed: bool = True) -> str:
    """What is wrong with a source that does not compile.

    `placed` says that the places in the runtime's text are the source's own.
    """
    if "recursion" in text:
        return _TOO_DEEP
    undeclared = _UNDECLARED.findall(text)
    if undeclared:
        return _unknown(undeclared, source, names)
    line = _LINE.search(text)
    if line is None:
        return _plain(text.splitlines()[0])
    what = _CLASS.sub("", line[3])
    checked = _CHECKED.search(what)
    if checked:
        what = _no_operation(checked[1], checked[2])
    way_out = _NO_SLICES if _SLICE.search(what) else ""
    what = _EXPECTING.sub("", what).replace("mismatched input", "unexpected") + way_out
    what = what.replace("'<EOF>'", "the end")
    place = f"line {line[1]}, character {line[2]}" if "\n" in source else f"character {line[2]}"
    return f"does not compile at {place}: {what}" if placed else f"does not compile: {what}"


def _unknown(undeclared: list[str], source: str, names: tuple[str, ...]) -> str:
    """What is wrong with names the runtime does not know.

    Where a macro is misspelt, its variables are unknown too: a name that is called comes first.
    """
    calls = [name for name in undeclared if _is_called(name, source)]
    name = (calls or undeclared)[0]
    for space, member in _NAMESPACE.findall(source):
        if name in (space, member, f"{space}.{member}"):
            return _unknown_member(space, f"{space}.{member}")
    name = name.partition(".")[0]
    if name in NAMESPACES:
        return f"{name} is not a value"
    if calls and name in ABSENT:
        return ABSENT[name]
    if name in FUNCTIONS:
        return f"{name}() does not take these arguments" if calls else f"{name} is a function"
    known = FUNCTIONS if calls else (*VARIABLES, *names, *FUNCTIONS)
    close = nearest(name, known)
    kind = "function" if calls else "name"
    if close:
        return f"unknown {kind} {name!r}; did you mean {close!r}?"
    if calls:
        return f"unknown function {name!r}; there are CEL's own functions and the dialect's"
    return f"unknown name {name!r}; the variables are {', '.join((*VARIABLES, *names))}"


def _unknown_member(space: str, name: str) -> str:
    if name in MEMBERS:
        return f"{name}() does not take these arguments"
    close = nearest(name, [each for each in MEMBERS if each.startswith(f"{space}.")])
    return f"{name}() is not a function" + (f"; did you mean {close!r}?" if close else "")


def _is_called(name: str, source: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\s*\(", source) is not None


def runtime_text(text: str) -> str:
    """What went wrong with the data. A missing key always reads `no such key: <name>`."""
    text = _CLASS.sub("", text)
    missing = _MISSING.search(text)
    if missing:
        return f"no such key: {_unquoted(missing[1])}"
    for found, said in _SAID.items():
        if found in text:
            return said
    container = _NO_CONTAINER.search(text)
    if container:
        found = _NAMES.get(container[1], container[1])
        way_out = f"; {_CHARACTER}" if found == "string" else ""
        return f"'[…]' takes a list or a map, found a {found}{way_out}"
    called = _CALLED.search(text)
    if called:
        types = ", ".join(part for part in (called[1], called[3]) if part)
        return _no_operation(called[2], types)
    return _plain(text)


_SAID = {
    "Applying SELECT to non-message type": "a field was asked of a value that is not a map",
    "jump_condition": "the condition of ?: must be a bool",
    "overloads found : _&&_": "both sides of && must be a bool",
    "overloads found : _||_": "both sides of || must be a bool",
    "budget exceeded": (
        "the expression goes through more than 10,000 elements; filter less at a time, or use a "
        "foreach block"
    ),
    "maximum recursion depth": "the data is nested too deeply",
    "argument optional_type": (
        "an optional stands inside a list or map; give it a value with .orValue(…)"
    ),
}


def _no_operation(function: str, types: str) -> str:
    """What a function or operator cannot take, and what it could."""
    function = _OURS.get(function, function)
    operator = _OPERATOR.match(function)
    name = f"'{(operator[1] or operator[2])}'" if operator else f"{function}()"
    if function == "_[_]":
        name = "'[…]'"
    found = [_NAMES.get(each, each) for each in types.split(", ")] if types else []
    text = f"{name} does not take {' and '.join(found) or 'these types'}"
    if function == "_[_]":
        return f"{text}; {_CHARACTER}" if found[:1] == ["string"] else text
    if len(found) == 2 and set(found) <= _NUMBERS:
        return f"{text}; write whole numbers with a point, such as 2.0, or use double(x) or int(x)"
    if function == "_+_" and "string" in found:
        return f"{text}; make a text of the other with string(x) or toJson(x)"
    return text


def _plain(text: str) -> str:
    return _CLASS.sub("", _STATUS.sub("", text))


def _unquoted(key: str) -> str:
    return key[1:-1] if len(key) > 1 and key[0] == key[-1] and key[0] in "\"'" else key
