"""The runtime's error texts, in words that say what to do."""

from __future__ import annotations

import difflib
import re

from flowrt.expr.runtime import NAMES

_UNDECLARED = re.compile(r"undeclared reference to '([^']+)'")
_LINE = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_MISSING = re.compile(r'Key not found in map : "?(.*?)"?$', re.DOTALL)
_STATUS = re.compile(r"^[A-Z_]+: ")
_FUNCTIONS = (
    "has",
    "size",
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "map",
    "filter",
    "string",
    "int",
    "double",
    "bool",
    "bytes",
    "uint",
    "type",
    "timestamp",
    "duration",
    "matches",
    "contains",
    "startsWith",
    "endsWith",
    "toJson",
    "fromJson",
    "toFormData",
    "fromFormData",
    "toYaml",
    "fromYaml",
    "toEnv",
    "fromEnv",
    "hmacSha256",
    "hmacSha1",
    "hexEncode",
    "secureCompare",
    "uuid",
    "base64",
    "math",
    "lists",
    "sets",
    "regex",
    "strings",
    "optional",
    "cel",
    "now",
    "trim",
    "lowerAscii",
    "upperAscii",
    "split",
    "join",
    "replace",
    "substring",
    "charAt",
    "indexOf",
    "lastIndexOf",
    "reverse",
    "format",
    "distinct",
    "sort",
    "sortBy",
    "flatten",
    "slice",
    "first",
    "last",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "orValue",
    "hasValue",
)
_LATER = {
    "templateResource": "template resources in expressions",
    "multipart": "multipart bodies",
    "fromMultipart": "multipart bodies",
    "toMultipart": "multipart bodies",
    "addPart": "multipart bodies",
    "toAes": "encryption",
    "fromAes": "encryption",
    "toChacha": "encryption",
    "fromChacha": "encryption",
}


def compile_text(text: str, names: tuple[str, ...]) -> str:
    """What is wrong with a source that does not compile."""
    if "recursion" in text:
        return "the expression nests deeper than 32 levels; split it with variables or cel.bind"
    undeclared = _UNDECLARED.search(text)
    if undeclared:
        return _unknown(undeclared.group(1), names)
    line = _LINE.search(text)
    if line is None:
        return _STATUS.sub("", text.splitlines()[0])
    what = re.sub(r" \|.*$", "", line.group(3)).replace("flowrt_string", "string")
    return f"does not compile at character {line.group(2)}: {what}"


def _unknown(name: str, names: tuple[str, ...]) -> str:
    if name in _LATER:
        return f"{name} ({_LATER[name]}) is not supported by this version of flowrt"
    name = name.partition(".")[0]
    close = difflib.get_close_matches(name, [*NAMES, "now", *names, *_FUNCTIONS], n=1)
    known = ", ".join((*NAMES, "now", *names))
    hint = f"did you mean {close[0]!r}?" if close else f"the variables are {known}"
    return f"unknown name {name!r}; {hint}"


def runtime_text(text: str) -> str:
    """What went wrong with the data. A missing key always reads `no such key: <name>`."""
    missing = _MISSING.search(text)
    if missing:
        return f"no such key: {missing.group(1)}"
    if "Applying SELECT to non-message type" in text:
        return "a field was asked of a value that is not a map"
    if "jump_condition" in text:
        return "the condition of ?: must be a bool"
    if "udget" in text:
        return "the expression takes too many steps; loop over less, or in a foreach block"
    plain = _STATUS.sub("", text).replace("flowrt_string", "string")
    return plain.replace("No matching overloads found : ", "no operation for these types: ")
