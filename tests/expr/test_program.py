"""What is made of a source once, and the ways it goes round the runtime."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from flowrt.errors import ExpressionError
from flowrt.expr import Expression
from flowrt.message import Message


def evaluate(source: str, body: Any = None, **variables: Any) -> Any:
    return Expression.compile(source).value(Message(body, variables))


def nested(levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = [value]
    return value


def test_a_guard_keeps_a_failing_constant_from_being_evaluated() -> None:
    assert 1 == evaluate("true ? 1 : 1 / 0")


@pytest.mark.parametrize("source", ["vars", "[vars][0]", "{'v': vars}.v"])
def test_the_variables_as_a_value_are_a_copy_that_later_changes_do_not_reach(source: str) -> None:
    message = Message(None, {"a": 1})
    found = Expression.compile(source).value(message)
    message.set("b", found)
    assert {"a": 1} == found


def test_a_plain_path_reads_through_strange_fields() -> None:
    body = {"items": {"if": {"get": [1]}}, "a": None}
    assert [[1], None] == [evaluate("body.items.if.get", body), evaluate(" body.a ", body)]


def test_a_path_into_a_list_is_an_error() -> None:
    with pytest.raises(ExpressionError, match="not a map"):
        evaluate("body.a.b", {"a": [1]})


@pytest.mark.parametrize(
    "source", ["body.n", "[body.n][0]", "vars.v.n", "body.n == body.n ? body.n : 0"]
)
@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 9007199254740993])
def test_a_json_integer_keeps_every_digit(source: str, value: int) -> None:
    assert value == evaluate(source, {"n": value}, v={"n": value})


@pytest.mark.parametrize("value", [2**63, 2**64, -(2**63) - 1, 10**30])
@pytest.mark.parametrize("source", ["body.n > 5 || body.n < 5", "body.n * 1.5 != 0.0"])
def test_an_integer_beyond_64_bits_counts_as_a_double(source: str, value: int) -> None:
    assert evaluate(source, {"n": value}) is True


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("body.count + 0.5", 1.5),
        ("0.5 + body.count", 1.5),
        ("body.count * 2.5", 2.5),
        ("body.count / 2.0", 0.5),
        ("1.5 - body.count", 0.5),
        ("body.items.map(i, i * 0.5)", [0.5, 1.0]),
        ("vars.n * body.price", 19.0),
        ("{'total': vars.n * body.price}", {"total": 19.0}),
    ],
)
def test_an_int_of_the_data_counts_as_a_double_where_the_arithmetic_needs_one(
    source: str, expected: Any
) -> None:
    assert expected == evaluate(source, {"count": 1, "price": 9.5, "items": [1, 2]}, n=2)


@pytest.mark.parametrize("source", ["body.price * 2", "1 + 1.0", "dyn(1) + 1.0"])
def test_an_int_of_the_file_does_not(source: str) -> None:
    with pytest.raises(ExpressionError, match=r"int and double|double and int"):
        evaluate(source, {"price": 9.5})


def test_integers_stay_integers_where_no_double_is_near() -> None:
    found = evaluate("body.a / body.b", {"a": 7, "b": 2})
    assert (3, int) == (found, type(found))


@pytest.mark.parametrize(
    "source",
    [
        "body.map(a, body.map(b, a * b)).size()",
        "body.exists(a, body.exists(b, a + b < 0))",
        "body.filter(a, body.all(b, b >= 0)).size()",
    ],
)
def test_loops_without_measure_are_refused(source: str) -> None:
    with pytest.raises(ExpressionError, match="10,000 elements"):
        evaluate(source, list(range(2000)))


@pytest.mark.parametrize("count", [10**9, 2**63 - 1])
def test_a_range_without_measure_is_refused(count: int) -> None:
    with pytest.raises(ExpressionError, match=r"lists\.range"):
        evaluate("lists.range(body.n).size()", {"n": count})


@pytest.mark.parametrize("count", [-1, -(2**63)])
def test_a_range_below_zero_is_empty_or_an_error_and_no_crash(count: int) -> None:
    with contextlib.suppress(ExpressionError):
        assert [] == evaluate("lists.range(body.n)", {"n": count})


def test_a_loop_over_some_thousand_elements_is_fine() -> None:
    found = evaluate("body.filter(x, x > 10).map(x, x + 1)", list(range(4000)))
    assert list(range(12, 4001)) == found


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){12}$"])
def test_a_hostile_pattern_takes_bounded_time(pattern: str) -> None:
    assert evaluate("body.s.matches(body.p)", {"s": "a" * 50_000 + "!", "p": pattern}) is False


@pytest.mark.parametrize("source", ["body.s.matches('(')", "regex.replace(body.s, '(', '')"])
def test_a_bad_pattern_is_an_error(source: str) -> None:
    with pytest.raises(ExpressionError, match="invalid regular expression"):
        evaluate(source, {"s": "x"})


@pytest.mark.parametrize("source", ["[body.x]", "toJson(body.x)", "toYaml(body.x)", "body.n + 0.5"])
def test_data_nested_thousands_deep_is_an_error_and_never_a_crash(source: str) -> None:
    with pytest.raises(ExpressionError, match="deep"):
        evaluate(source, {"x": nested(5000), "n": 1})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("optional.none()", None),
        ("optional.of(1)", 1),
        ("body.?x", 1),
        ("body.?y", None),
        ("body[?'x']", 1),
        ("body.?y.orValue('d')", "d"),
        ("body.?y.?z.orValue('d')", "d"),
        ("{?'a': body.?x, ?'b': body.?y}", {"a": 1}),
        ("[?body.?x, ?body.?y]", [1]),
        ("body.l.first()", 3),
        ("body.empty.first()", None),
        ("body.l.last().orValue(0) + 1", 5),
        ("body.empty.first().hasValue()", False),
        ("optional.of(optional.of(1))", 1),
    ],
)
def test_an_optional_is_its_value_or_null(source: str, expected: Any) -> None:
    assert expected == evaluate(source, {"x": 1, "l": [3, 4], "empty": []})


@pytest.mark.parametrize(
    "source",
    [
        "[optional.of(1)]",
        "{'a': optional.none()}",
        "[{'a': [optional.of(1)]}]",
        "toJson([optional.of(1)])",
        "toYaml({'a': optional.none()})",
        "['a'].transformMap(i, v, optional.of(v))",
        "['a'].map(x, optional.of(x))",
        "[body.l].map(x, x.first())",
    ],
)
def test_an_optional_inside_a_value_is_an_error_and_never_a_crash(source: str) -> None:
    with pytest.raises(ExpressionError, match="optional"):
        evaluate(source, {"l": [1]})


def test_an_error_inside_a_map_is_the_error_of_the_expression() -> None:
    with pytest.raises(ExpressionError, match="no such key: x"):
        evaluate("{'a': [body.x]}", {})


def test_a_text_that_reads_like_an_error_is_a_text() -> None:
    text = "Key not found in map : x"
    assert text == evaluate("body.x + ''", {"x": text})
