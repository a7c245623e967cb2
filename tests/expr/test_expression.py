"""Expressions, against the dialect's cases and the ways they break."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowrt.errors import ExpressionError, Position
from flowrt.expr import Expression, Scope
from flowrt.message import Message, clean

CASES = json.loads((Path(__file__).parent / "cel_cases.json").read_text())
DATA = CASES["data"]

EXCEPTIONS = {
    "body.count + 0.5": "an int of the data counts as a double where only that makes it work",
    "1.0 / 0.0": "infinity is no JSON value, so the result is refused",
    "upper(body.name)": "not a function of the dialect; upperAscii is",
    "body.name.upper()": "not a function of the dialect; upperAscii is",
}


def evaluate(source: str, body: Any = None, **variables: Any) -> Any:
    return Expression.compile(source).value(Message(body, variables))


def wanted(case: dict[str, Any]) -> Any:
    want = case["want"]
    if isinstance(want, dict) and "bytes" in want:
        return base64.b64encode(want["bytes"].encode()).decode()
    return want


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["expr"])
def test_every_case_of_the_dialect_gives_what_it_says(case: dict[str, Any]) -> None:
    if case["expr"] in EXCEPTIONS:
        pytest.xfail(EXCEPTIONS[case["expr"]])
    message = Message(DATA["body"], DATA["vars"])
    if case.get("error"):
        with pytest.raises(ExpressionError):
            Expression.compile(case["expr"]).value(message)
    else:
        found = Expression.compile(case["expr"]).value(message)
        assert (wanted(case), type(wanted(case))) == (found, type(found))


def test_an_int_of_the_data_counts_as_a_double_where_the_arithmetic_needs_one() -> None:
    assert evaluate("body.count + 0.5", {"count": 1}) == 1.5


@pytest.mark.parametrize("value", [10, 10.0])
@pytest.mark.parametrize("literal", ["10", "10.0"])
@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("body.n == {}", True),
        ("{} == body.n", True),
        ("body.n < {}", False),
        ("{} <= body.n", True),
    ],
)
def test_numbers_compare_as_on_a_number_line_in_both_orders(
    value: float, literal: str, template: str, expected: bool
) -> None:
    assert expected == evaluate(template.format(literal), {"n": value})


def test_a_missing_key_is_named_with_the_expression_and_its_place() -> None:
    expression = Expression.compile("body.a.b", Position("f.yaml", 3, 9))
    with pytest.raises(ExpressionError, match=r"f\.yaml:3:9: no such key: a .*body\.a\.b"):
        expression.value(Message({}))


def test_a_guarded_branch_is_never_evaluated() -> None:
    assert evaluate('has(body.a) ? body.a.b : "x"', {}) == "x"


def test_an_unknown_name_is_a_load_error_that_names_the_nearest_one() -> None:
    with pytest.raises(ExpressionError, match="unknown name 'bdy'; did you mean 'body'"):
        Expression.compile("bdy.x")


@pytest.mark.parametrize("value", [None, "", "  ", [], {"a": 1}, True])
def test_an_identity_that_is_null_empty_or_no_text_is_an_error(value: Any) -> None:
    with pytest.raises(ExpressionError, match="ai-agent memory threadId"):
        Expression.compile("body.id").key(Message({"id": value}), "ai-agent memory threadId")


def test_an_identity_may_be_a_number_and_keeps_every_digit() -> None:
    found = Expression.compile("body.id").key(Message({"id": 9007199254740993}), "key")
    assert found == "9007199254740993"


def test_string_of_null_is_an_error_and_never_the_four_letters() -> None:
    with pytest.raises(ExpressionError, match=r"string\(\) takes no null"):
        evaluate("string(body.x)", {"x": None})


def test_text_of_null_is_the_four_letters_as_the_dialect_has_it() -> None:
    assert Expression.compile("body").text(Message(None)) == "null"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[3, 1, 2].sort()", [1, 2, 3]),
        ("body.people.sortBy(p, p.age).map(p, p.name)", ["b", "a"]),
        ("[1, 1, 2].distinct()", [1, 2]),
        ("[[1], [2, [3]]].flatten()", [1, 2, [3]]),
        ("[[1], [2, [3]]].flatten(2)", [1, 2, 3]),
        ("[1, 2, 3].slice(1, 3)", [2, 3]),
        ("[1, 2].reverse()", [2, 1]),
        ("'abc'.reverse()", "cba"),
        ("[].first()", None),
        ("[1, 2].last()", 2),
        ("lists.range(3)", [0, 1, 2]),
        ("sets.contains([1, 2], [1])", True),
        ("sets.equivalent([1, 2], [2, 1, 1])", True),
        ("sets.intersects([1], [2])", False),
        ("['a', 'b'].transformList(i, v, string(i) + v)", ["0a", "1b"]),
        ("['a', 'b'].transformList(i, v, i > 0, v)", ["b"]),
        ("{'a': 1}.transformMap(k, v, v + 1)", {"a": 2}),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v * 10)", {"b": 20}),
        ("{'a': 'x'}.transformMapEntry(k, v, {v: k})", {"x": "a"}),
        ("['a'].transformMapEntry(i, v, v == 'a' ? {} : {v: i})", {}),
        ("[1, 2].all(i, v, v > i)", True),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("[1, 2, 2].existsOne(i, v, v == 2)", False),
        ("regex.extract('ab12', '[0-9]+').orValue('none')", "12"),
        ("regex.extract('ab', '[0-9]+').orValue('none')", "none"),
        ("regex.extractAll('a1b2', '[a-z]([0-9])')", ["1", "2"]),
        (r"regex.replace('a1b2', '([a-z])([0-9])', r'\2\1')", "1a2b"),
        ("regex.replace('aaa', 'a', 'b', 2)", "bba"),
        ("optional.unwrap([optional.of(1), optional.none()])", [1]),
        ("math.greatest(1, 5)", 5),
        ("math.round(1.6)", 2.0),
        ("math.bitAnd(6, 3)", 2),
        ("strings.quote('a')", '"a"'),
        ("'%s is %d'.format(['a', 1])", "a is 1"),
        ("toJson({'a': [1, 2.5, null]})", '{"a":[1,2.5,null]}'),
        ("fromJson('{\"a\": 1}').a", 1),
        ("toFormData({'b': 2, 'a': ['x', 'y']})", "a=x&a=y&b=2"),
        ("fromFormData('a=x&a=y&b=2')", {"a": ["x", "y"], "b": "2"}),
        ("fromYaml('on: yes\\nn: 010')", {"on": "yes", "n": "010"}),
        ("toYaml({'a': 'yes', 'b': [1]})", "a: 'yes'\nb:\n- 1\n"),
        ("toEnv({'B': 'x', 'A': 1})", "A=1\nB=x\n"),
        ("fromEnv('# c\\nexport A=\"x y\"\\nB=2')", {"A": "x y", "B": "2"}),
        ("secureCompare('a', 'a')", True),
        ("base64.encode(b'abc')", "YWJj"),
        ("string(base64.decode('YWJj'))", "abc"),
        ("string(now).size() > 10", True),
        ("now > timestamp('2020-01-01T00:00:00Z')", True),
    ],
)
def test_the_library_of_the_dialect_is_there(source: str, expected: Any) -> None:
    people = {"people": [{"name": "a", "age": 2}, {"name": "b", "age": 1}]}
    assert expected == evaluate(source, people)


def test_hmac_signs_text_and_bytes_alike() -> None:
    signed = "e65232d9a0f4e9ba1b3ac2f83f4b1c5d"
    found = evaluate("hexEncode(hmacSha256('key', 'data'))")
    assert len(signed) * 2 == len(found)
    assert found == evaluate("hexEncode(hmacSha256(b'key', b'data'))")


def test_uuid_is_new_on_each_evaluation() -> None:
    expression = Expression.compile("uuid()")
    assert expression.value(Message()) != expression.value(Message())


def test_a_body_is_seen_anew_after_it_was_replaced() -> None:
    expression, message = Expression.compile("body.n"), Message({"n": 1})
    assert expression.value(message) == 1
    message.body = {"n": 2}
    assert expression.value(message) == 2


def test_a_variable_is_seen_anew_after_it_was_set() -> None:
    expression, message = Expression.compile("vars.n"), Message(None, {"n": 1})
    assert expression.value(message) == 1
    message.set("n", 2)
    assert expression.value(message) == 2


def test_two_scopes_do_not_share_their_env() -> None:
    message = Message()
    one = Expression.compile("env.A", scope=Scope({"A": "1"}))
    two = Expression.compile("env.A", scope=Scope({"A": "2"}))
    assert [one.value(message), two.value(message), one.value(message)] == ["1", "2", "1"]


def test_a_constant_map_is_not_shared_between_messages() -> None:
    expression = Expression.compile('{"a": [1]}')
    expression.value(Message())["a"].append(2)
    assert expression.value(Message()) == {"a": [1]}


@pytest.mark.parametrize("payload", ["${env.SECRET}", "{{1+1}}", "${HOME}", "body.x"])
def test_data_is_never_read_as_an_expression(payload: str) -> None:
    assert payload == evaluate("body.x", {"x": payload})


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("{'a': [0.0 / 0.0]}", r"a\[0\]"),
        ("{'a': {1: 'x'}}", "keys must be strings"),
        ("{'t': type(1)}", "t is a CEL"),
    ],
)
def test_a_value_that_json_cannot_hold_is_refused_with_its_path(source: str, path: str) -> None:
    with pytest.raises(ExpressionError, match=path):
        evaluate(source)


def test_bytes_timestamps_and_durations_become_text() -> None:
    source = "{'b': b'abc', 't': timestamp('2024-01-02T03:04:05.5Z'), 'd': duration('1.5s')}"
    assert evaluate(source) == {"b": "YWJj", "t": "2024-01-02T03:04:05.5Z", "d": "1.5s"}


def test_integers_beyond_64_bits_become_doubles() -> None:
    assert evaluate("fromJson(body.x)", {"x": str(2**70)}) == 2.0**70


def test_a_nul_in_decoded_json_is_replaced() -> None:
    assert evaluate("fromJson(body.x)", {"x": '"\\u0000"'}) == "\ufffd"


@pytest.mark.parametrize(
    "source", ["(" * 5000 + "1" + ")" * 5000, "[" * 5000, "!" * 40_000 + "true", "1" + "+1" * 5000]
)
def test_a_monstrous_expression_is_refused_quickly(source: str) -> None:
    with pytest.raises(ExpressionError):
        Expression.compile(source)


def test_a_hostile_pattern_takes_bounded_time() -> None:
    assert evaluate('body.s.matches("(a+)+$")', {"s": "a" * 50_000 + "!"}) is False


def test_an_endless_loop_is_refused() -> None:
    source = "lists.range(9000).map(x, lists.range(9000).map(y, x * y)).size()"
    with pytest.raises(ExpressionError, match="too many steps"):
        evaluate(source)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text().map(clean),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text().map(clean), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(json_values)
def test_any_json_value_comes_back_equal(value: Any) -> None:
    assert value == evaluate("body.x", {"x": value})
