"""The dialect's functions (3.3) and its library (3.4)."""

from __future__ import annotations

import base64
import hmac
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowrt.errors import ExpressionError
from flowrt.expr import Expression
from flowrt.message import Message, clean


def evaluate(source: str, body: Any = None) -> Any:
    return Expression.compile(source).value(Message(body))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("toJson({'b': [1, 2.5, null], 'a': 'é'})", '{"a":"é","b":[1,2.5,null]}'),
        ("toJson(null)", "null"),
        ("toJson(b'abc')", '"YWJj"'),
        ("toJson(timestamp('2024-01-02T03:04:05Z'))", '"2024-01-02T03:04:05Z"'),
        ("toJson(duration('90s'))", '"90s"'),
        ("toJson(1u)", "1"),
        ("fromJson('{\"a\": 1}').a", 1),
        ("fromJson('[1.0, 1]')", [1.0, 1]),
        (
            "toFormData({'b': 2, 'a': ['x', 'y z'], 'n': null, 't': true})",
            "a=x&a=y+z&b=2&n=&t=true",
        ),
        ("fromFormData('a=x&a=y&b=2&c=&d=%20')", {"a": ["x", "y"], "b": "2", "c": "", "d": " "}),
        ("toYaml({'b': [1], 'a': 'yes'})", "a: 'yes'\nb:\n- 1\n"),
        ("toYaml('plain')", "plain\n"),
        ("fromYaml('on: yes\\nn: 010')", {"on": "yes", "n": "010"}),
        ("toEnv({'B': 'x', 'A': 1, 'C': ' y '})", 'A=1\nB=x\nC=" y "\n'),
        ("toEnv({})", ""),
        (
            "fromEnv('# c\\n\\nexport A=\"x y\"\\n B = 2 \\nC=\\'z\\'')",
            {"A": "x y", "B": "2", "C": "z"},
        ),
        ("secureCompare('a', b'a')", True),
        ("secureCompare('a', 'b')", False),
        ("secureCompare('é', 'e')", False),
        ("hexEncode(b'\\xab\\x01')", "ab01"),
        ("base64.encode(b'abc')", "YWJj"),
        ("string(base64.decode('YWJj'))", "abc"),
    ],
)
def test_a_function_of_the_dialect_gives(source: str, expected: Any) -> None:
    assert expected == evaluate(source)


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
        ("['a', 'b'].transformMapEntry(i, v, i > 0, {v: i})", {"b": 1}),
        ("[1, 2].all(i, v, v > i)", True),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("[1, 2, 2].existsOne(i, v, v == 2)", False),
        ("[1, 2, 2].existsOne(i, v, v == 1)", True),
        ("regex.extract('ab12', '[0-9]+').orValue('none')", "12"),
        ("regex.extract('ab12', 'a(b)')", "b"),
        ("regex.extract('ab', '[0-9]+').orValue('none')", "none"),
        ("regex.extractAll('a1b2', '[a-z]([0-9])')", ["1", "2"]),
        (r"regex.replace('a1b2', '([a-z])([0-9])', r'\2\1')", "1a2b"),
        ("regex.replace('aaa', 'a', 'b', 2)", "bba"),
        ("optional.unwrap([optional.of(1), optional.none()])", [1]),
        ("[optional.of(1), optional.none()].unwrapOpt()", [1]),
        ("[1, 2.5].map(x, math.greatest(x, 2))", [2, 2.5]),
        ("math.least(1, 5)", 1),
        ("math.round(1.6)", 2.0),
        ("math.ceil(1.2) + math.floor(1.8) + math.trunc(-1.5)", 2.0),
        ("math.abs(-3)", 3),
        ("math.sign(-3)", -1),
        ("math.sqrt(9)", 3.0),
        ("math.isNaN(0.0 / 0.0) && math.isInf(1.0 / 0.0) && math.isFinite(1.0)", True),
        ("[math.bitAnd(6, 3), math.bitOr(6, 3), math.bitXor(6, 3)]", [2, 7, 5]),
        ("[math.bitNot(1), math.bitShiftLeft(1, 2), math.bitShiftRight(4, 1)]", [-2, 4, 2]),
        ("strings.quote('a\"')", '"a\\""'),
        ("'%s is %d of %.2f'.format(['a', 1, 2.5])", "a is 1 of 2.50"),
        ("'%b %o %x %X %%'.format([5, 8, 255, 255])", "101 10 ff FF %"),
        ("' x '.trim() + 'Ab'.lowerAscii() + 'Ab'.upperAscii()", "xabAB"),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("['a', 'b'].join() + ['a', 'b'].join('-')", "aba-b"),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
        ("'héllo'.substring(1, 3) + 'abc'.charAt(0)", "éla"),
        ("['abca'.indexOf('a'), 'abca'.lastIndexOf('a'), 'abc'.indexOf('z')]", [0, 3, -1]),
        ("string(now).size() > 10", True),
        ("now > timestamp('2020-01-01T00:00:00Z')", True),
        ("now - duration('1h') < now", True),
        ("now.getFullYear() > 2020", True),
    ],
)
def test_a_library_function_gives(source: str, expected: Any) -> None:
    people = {"people": [{"name": "a", "age": 2}, {"name": "b", "age": 1}]}
    assert expected == evaluate(source, people)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1700000000.123", "1700000000.123"),
        ("1.0", "1"),
        ("-0.5", "-0.5"),
        ("1e300", "1e+300"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("123456789012345.0", "123456789012345"),
        ("-7", "-7"),
        ("7u", "7"),
        ("true", "true"),
        ("'é'", "é"),
        ("b'abc'", "abc"),
        ("timestamp('2024-01-02T03:04:05.250Z')", "2024-01-02T03:04:05.25Z"),
        ("duration('1.5s')", "1.5s"),
        ("duration('-90s')", "-90s"),
    ],
)
def test_string_of_a_scalar_is_what_a_person_writes(value: str, text: str) -> None:
    assert text == evaluate(f"string({value})")


@pytest.mark.parametrize(
    ("value", "what"), [("body.x", "null"), ("[1]", "list"), ("{'a': 1}", "map")]
)
def test_string_of_null_a_list_or_a_map_is_an_error_and_never_a_key_of_four_letters(
    value: str, what: str
) -> None:
    with pytest.raises(ExpressionError, match=rf"string\(\) takes no {what}"):
        evaluate(f"'thread-' + string({value})", {"x": None})


@pytest.mark.parametrize("text", ["b'\\xff'", "b'\\xed\\xa0\\x80'"])
def test_string_of_bytes_that_are_not_utf_8_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError, match="not UTF-8"):
        evaluate(f"string({text})")


@pytest.mark.parametrize("one", ["body.key", "bytes(body.key)"])
@pytest.mark.parametrize("other", ["body.data", "bytes(body.data)"])
@pytest.mark.parametrize(("name", "digest"), [("hmacSha256", "sha256"), ("hmacSha1", "sha1")])
def test_hmac_signs_text_and_bytes_alike(name: str, digest: str, one: str, other: str) -> None:
    body = {"key": "k-é", "data": "d-ü"}
    expected = hmac.new("k-é".encode(), "d-ü".encode(), digest).hexdigest()
    assert expected == evaluate(f"hexEncode({name}({one}, {other}))", body)


@pytest.mark.parametrize(("name", "digest"), [("hmacSha256", "sha256"), ("hmacSha1", "sha1")])
def test_a_signature_with_a_zero_in_it_is_whole(name: str, digest: str) -> None:
    """The runtime cuts what a function gives as `bytes` at the first zero."""
    expression = Expression.compile(f"hexEncode({name}('k', body))")
    texts = [str(number) for number in range(100)]
    expected = [hmac.new(b"k", text.encode(), digest).hexdigest() for text in texts]
    assert expected == [expression.value(Message(text)) for text in texts]


def test_hmac_as_a_result_is_base64() -> None:
    expected = base64.b64encode(hmac.new(b"k", b"d", "sha256").digest()).decode()
    assert expected == evaluate("hmacSha256('k', 'd')")


def test_uuid_is_a_random_one_of_version_4() -> None:
    pattern = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(pattern, evaluate("uuid()"))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1,]", "NaN", "[Infinity]", "{'a': 1}", "1e999", "x" * 10_000, "[" * 100_000],
    ids=lambda text: text[:8],
)
def test_what_is_not_json_is_an_error_that_shows_little_of_it(text: str) -> None:
    with pytest.raises(ExpressionError, match="fromJson") as caught:
        evaluate("fromJson(body)", text)
    assert 400 > len(str(caught.value))


@pytest.mark.parametrize(
    ("source", "body", "expected"),
    [
        ("fromJson(body)", r'{"a\u0000": "\u0000\ud800x"}', {"a\ufffd": "\ufffd\ufffdx"}),
        ("fromYaml(body)", r'"\0"', "\ufffd"),
        ("fromFormData(body)", "a=%00", {"a": "\ufffd"}),
        ("string(b'\\x00')", None, "\ufffd"),
    ],
)
def test_unusable_characters_that_decoding_makes_are_replaced(
    source: str, body: Any, expected: Any
) -> None:
    assert expected == evaluate(source, body)


def test_a_decoded_integer_beyond_64_bits_becomes_a_double() -> None:
    assert [2.0**70] == evaluate("fromJson(body)", f"[{2**70}]")


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("toEnv({'A': [1]})", "flat"),
        ("toEnv({'A': 'x\\ny'})", "line break"),
        ("toEnv({'A B=': 'x'})", "name of a variable"),
        ("toEnv({'': 'x'})", "name of a variable"),
        ("fromEnv('A=1\\nnonsense')", "line 2"),
        ("toFormData({'a': {'b': 1}})", "flat"),
        ("toFormData({1: 'x'})", "keys must be strings"),
        ("toJson({1: 'x'})", "keys must be strings"),
        ("toJson(0.0 / 0.0)", "NaN"),
        ("toYaml({true: 1})", "keys must be strings"),
        ("['a', 'a'].transformMapEntry(i, v, {v: i})", "'a' is given twice"),
        ("[1, 'a'].sort()", "same type"),
        ("[1].slice(0, 5)", "slice"),
        ("'%d'.format(['x'])", "decimal"),
        ("regex.extract('a', '(a)(b)')", "more than one"),
        ("fromFormData(body.x)", "fields"),
    ],
)
def test_what_a_function_cannot_take_is_an_error_that_says_why(source: str, what: str) -> None:
    with pytest.raises(ExpressionError, match=what):
        evaluate(source, {"x": "a=1&" * 20_000})


plain = st.text(st.characters(exclude_characters="\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")).map(clean)
names = st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True)


@settings(deadline=None)
@given(st.dictionaries(names, plain, max_size=5))
def test_from_env_reads_back_what_to_env_wrote(values: dict[str, str]) -> None:
    assert values == evaluate("fromEnv(toEnv(body))", values)


@settings(deadline=None)
@given(st.dictionaries(st.text().map(clean), plain | st.lists(plain, min_size=2), max_size=5))
def test_from_form_data_reads_back_what_to_form_data_wrote(values: dict[str, Any]) -> None:
    assert values == evaluate("fromFormData(toFormData(body))", values)


yaml_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text().map(clean)
    | st.sampled_from(
        ["yes", "on", "012", "1e3", "0o7", "1_000", "~", "=", "2024-01-01", "1:30", ".5"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text().map(clean), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(yaml_values)
def test_from_yaml_reads_back_what_to_yaml_wrote(value: Any) -> None:
    assert value == evaluate("fromYaml(toYaml(body))", value)
