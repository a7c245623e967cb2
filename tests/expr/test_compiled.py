"""What a source must be to compile."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.errors import ExpressionError
from flowrt.expr import Expression
from flowrt.message import Message


def evaluate(source: str, body: Any = None) -> Any:
    return Expression.compile(source).value(Message(body))


@pytest.mark.parametrize("source", ["10 < 4.0", "body.n < 4.0", "!(4.0 < body.n)"])
def test_ten_is_not_less_than_four(source: str) -> None:
    assert evaluate(source, {"n": 10}) is False


@pytest.mark.parametrize("source", ["'1' == 1 ? bdy : 2", "'1' == 1 && nope()"])
def test_unknown_names_are_found_beside_a_comparison_of_different_types(source: str) -> None:
    with pytest.raises(ExpressionError, match="unknown"):
        Expression.compile(source)


@pytest.mark.parametrize(
    "source",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "[" * 5000 + "]" * 5000,
        "{'a': " * 3000 + "1" + "}" * 3000,
        "[" * 5000,
        "1" + "+1" * 5000,
        "body" + ".a" * 10_000,
        "body" + "[0]" * 5000,
        "true ? 1 : " * 2500 + "1",
        "string(" * 4000 + "1" + ")" * 4000,
        "[1].map(x, " * 2500 + "1" + ")" * 2500,
        "body" + ".map(x, x)" * 3000,
    ],
    ids=lambda source: source[:12],
)
def test_an_expression_nested_thousands_deep_is_refused(source: str) -> None:
    with pytest.raises(ExpressionError, match=r"deeper than 32|does not compile"):
        Expression.compile(source)


def test_a_source_longer_than_32_kib_is_refused_before_it_is_read() -> None:
    with pytest.raises(ExpressionError, match="40000 characters; at most 32768"):
        Expression.compile("'" + "x" * 39_998 + "'")


def test_a_text_put_together_of_many_parts_compiles() -> None:
    source = " + ".join(["body.x"] * 24)
    assert "a" * 24 == evaluate(source, {"x": "a"})


def test_a_nul_written_in_the_file_is_refused() -> None:
    with pytest.raises(ExpressionError, match="NUL"):
        Expression.compile(r"'a\u0000b'")


def test_a_backslash_before_what_looks_like_a_nul_is_text() -> None:
    assert r"\u0000" == evaluate(r"'\\u0000'")
