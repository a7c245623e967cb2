"""Results become JSON, or are refused at their place."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from flowrt.errors import ExpressionError
from flowrt.expr import Expression
from flowrt.message import Message


def evaluate(source: str, body: Any = None) -> Any:
    return Expression.compile(source).value(Message(body))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("b'abc'", "YWJj"),
        ("timestamp('2024-01-02T03:04:05Z')", "2024-01-02T03:04:05Z"),
        ("timestamp('2024-01-02T03:04:05.5Z')", "2024-01-02T03:04:05.5Z"),
        ("timestamp('2024-01-02T03:04:05+02:00')", "2024-01-02T01:04:05Z"),
        ("timestamp('0001-01-01T00:00:00Z')", "0001-01-01T00:00:00Z"),
        ("timestamp('9999-12-31T23:59:59Z')", "9999-12-31T23:59:59Z"),
        ("duration('90s')", "90s"),
        ("duration('1h30m')", "5400s"),
        ("duration('-1.5s')", "-1.5s"),
        ("duration('1ms')", "0.001s"),
        ("duration('0s')", "0s"),
        ("7u", 7),
        ("18446744073709551615u", 18446744073709551615),
        ("{'a': [b'x', {'t': duration('1s')}]}", {"a": ["eA==", {"t": "1s"}]}),
    ],
)
def test_what_json_does_not_have_becomes_text_or_an_integer(source: str, expected: Any) -> None:
    assert expected == evaluate(source)


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("0.0 / 0.0", "the result is NaN"),
        ("{'a': [0.0 / 0.0]}", r"the result at a\[0\] is NaN"),
        ("[1, {'b': -1.0 / 0.0}]", r"the result at \[1\]\.b is -Infinity"),
        ("{'a': {1: 'x'}}", "the result at a has the key 1; keys must be strings"),
        ("{true: 1}", "the result has the key True; keys must be strings"),
        ("{'t': [type(1)]}", r"the result at t\[0\] is the type"),
        ("int", "the result is the type"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(source: str, where: str) -> None:
    with pytest.raises(ExpressionError, match=where):
        evaluate(source)


def test_a_map_comes_back_in_the_order_of_its_keys() -> None:
    found = evaluate("{'b': 1, 'c': {'z': 1, 'y': 2}, 'a': 3}")
    assert [["a", "b", "c"], ["y", "z"]] == [list(found), list(found["c"])]


def test_a_prompt_made_of_a_map_is_the_same_in_every_process() -> None:
    script = (
        "from flowrt.expr import Expression\n"
        "from flowrt.message import Message\n"
        "body = {'k%d' % n: n for n in range(30)}\n"
        "print(Expression.compile('[body]').text(Message(body)))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
