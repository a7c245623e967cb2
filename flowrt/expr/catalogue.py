"""The names expressions can use (dialect 3.1, 3.3, 3.4), for suggestions and documentation."""

from __future__ import annotations

VARIABLES = ("body", "vars", "eventID", "correlationID", "env", "now")

SOME_SCOPES = ("input", "request", "settings", "tool")
"""What some scopes see besides. A template may be rendered in any: it sees them all, maybe null."""

_LANGUAGE = """
    has size all exists exists_one map filter string int double bool bytes uint type dyn timestamp
    duration matches contains startsWith endsWith getFullYear getMonth getDate getDayOfMonth
    getDayOfWeek getDayOfYear getHours getMinutes getSeconds getMilliseconds
"""
_OURS = """
    toJson fromJson toFormData fromFormData toYaml fromYaml toEnv fromEnv hmacSha256 hmacSha1
    hexEncode secureCompare uuid multipart addPart fromMultipart toMultipart toAes fromAes toChacha
    fromChacha templateResource
"""
_LIBRARY = """
    trim lowerAscii upperAscii split join replace substring charAt indexOf lastIndexOf reverse
    format distinct sort sortBy flatten slice first last existsOne transformList transformMap
    transformMapEntry orValue hasValue optMap optFlatMap unwrapOpt
"""
_MEMBERS = {
    "base64": "encode decode",
    "lists": "range",
    "math": """greatest least round ceil floor trunc abs sign sqrt isNaN isInf isFinite
        bitAnd bitOr bitXor bitNot bitShiftLeft bitShiftRight""",
    "optional": "of none ofNonZeroValue unwrap",
    "regex": "extract extractAll replace",
    "sets": "contains equivalent intersects",
    "strings": "quote",
}
MEMBERS = tuple(f"{space}.{name}" for space, names in _MEMBERS.items() for name in names.split())
"""The functions with a dot in their names."""

NAMESPACES = tuple(_MEMBERS)
"""What stands before that dot."""

ABSENT = {
    name: f"there is no {name}(): add up in a foreach block that sets a variable"
    for name in ("sum", "fold", "reduce")
} | {
    "min": "there is no min(): use math.least(a, b), which also takes a list",
    "max": "there is no max(): use math.greatest(a, b), which also takes a list",
}
"""What people look for and the dialect leaves out, and what to do instead."""

FUNCTIONS = (*_LANGUAGE.split(), *_OURS.split(), *_LIBRARY.split())
