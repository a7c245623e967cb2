"""Each function over each type it takes (dialect 3.3 and 3.4); what it does stands elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.expr import Expression
from flowrt.message import Message

BODY = {"i": 3, "f": 2.5, "s": "abc", "l": [1, 2], "m": {"a": 1, "b": 2}, "z": None}

ANYTHING = {
    "true": ("true", "true\n", "true"),
    "3": ("3", "3\n", "3"),
    "3u": ("3", "3\n", "3"),
    "2.5": ("2.5", "2.5\n", "2.5"),
    "'a'": ('"a"', "a\n", "a"),
    "b'a'": ('"YQ=="', "YQ==\n", "a"),
    "timestamp(0)": ('"1970-01-01T00:00:00Z"', "'1970-01-01T00:00:00Z'\n", "1970-01-01T00:00:00Z"),
    "duration('1s')": ('"1s"', "1s\n", "1s"),
    "null": ("null", "null\n", None),
    "[1]": ("[1]", "- 1\n", None),
    "{'a': 1}": ('{"a":1}', "a: 1\n", None),
}

LANGUAGE = {
    "size": [("size('ü') + size(b'ab') + size([1]) + size({'a': 1})", 5)],
    ".size": [("'ü'.size() + b'ab'.size() + [1].size() + {'a': 1}.size()", 5)],
    "int": [("[int(1), int(2u), int(2.9), int('-4'), int(timestamp(5))]", [1, 2, 2, -4, 5])],
    "uint": [("[uint(1), uint(2u), uint(2.9), uint('4')]", [1, 2, 2, 4])],
    "double": [("[double(1), double(2u), double(2.5), double('1e3')]", [1.0, 2.0, 2.5, 1000.0])],
    "bool": [("[bool(true), bool('false')]", [True, False])],
    "bytes": [("[bytes('a'), bytes(b'a')]", ["YQ==", "YQ=="])],
    "timestamp": [("timestamp(0) == timestamp('1970-01-01T00:00:00Z')", True)],
    "duration": [("duration('60s') == duration('1m') && duration(duration('1s')) != duration('2s')",
                  True)],
    "time": [("timestamp(9) - timestamp(4) + duration('1s') == duration('6s')", True),
             ("timestamp(9) - duration('4s') == timestamp(5)", True)],
    "getters": [("timestamp(0).getHours() + timestamp(0).getHours('+01:00')", 1),
                ("timestamp(0).getFullYear('America/New_York')", 1969),
                ("duration('90m').getHours() + duration('90m').getMinutes()", 91),
                ("duration('1.5s').getSeconds() + duration('1.5s').getMilliseconds()", 501)],
    "in": [("1 in body.l && 'a' in body.m && !('z' in body.m)", True)],
    "+": [("'a' + 'b' + string(b'c' + b'd')", "abcd"), ("[1] + [2]", [1, 2]), ("1u + 2u", 3)],
    "macros": [("body.l.all(x, x > 0) && body.m.all(k, k < 'c')", True),
               ("body.l.exists(x, x > 1) && body.m.exists(k, k == 'b')", True),
               ("body.l.exists_one(x, x > 1) && body.m.exists_one(k, k == 'b')", True),
               ("body.l.map(x, x + 1) + body.l.map(x, x > 1, x)", [2, 3, 2]),
               ("body.m.map(k, k).sort() + body.m.filter(k, k > 'a')", ["a", "b", "b"]),
               ("body.l.filter(x, x > 1)", [2])],
}  # fmt: skip

LIBRARY = {
    "split": [("'a-b-c'.split('-') + 'a-b-c'.split('-', 2) + 'ab'.split('')",
               ["a", "b", "c", "a", "b-c", "a", "b"])],
    "join": [("['a', 'b'].join() + ['a', 'b'].join('-')", "aba-b")],
    "replace": [("'aaa'.replace('a', 'b') + 'aaa'.replace('a', 'b', 1)", "bbbbaa")],
    "substring": [("'hüllo'.substring(1) + 'hüllo'.substring(1, 2)", "ülloü")],
    "charAt": [("'hü'.charAt(1) + 'hü'.charAt(2)", "ü")],
    "indexOf": [("['üxüx'.indexOf('x'), 'üxüx'.indexOf('x', 2), 'a'.indexOf('b')]", [1, 3, -1])],
    "lastIndexOf": [("['xüx'.lastIndexOf('x'), 'xüx'.lastIndexOf('x', 1)]", [2, 0])],
    "reverse": [("'aü'.reverse()", "üa"), ("[1, 'a'].reverse()", ["a", 1])],
    "case": [("' aÄ '.trim().upperAscii() + 'BÄ'.lowerAscii()", "AÄbÄ")],
    "quote": [("strings.quote('a\\n\"')", '"a\\n\\""')],
    "%s": [("'%s %s %s %s %s'.format(['a', 1, 2u, 2.5, true])", "a 1 2 2.5 true"),
           ("'%s %s'.format([null, b'a'])", "null a"),
           ("'%s %s'.format([[1, 'a'], {'k': 1}])", "[1, a] {k: 1}"),
           ("'%s %s'.format([timestamp(0), duration('90s')])", "1970-01-01T00:00:00Z 90s")],
    "%d": [("'%d %d'.format([-1, 2u])", "-1 2")],
    "%f": [("'%f %.2f %.0f'.format([1.5, 2.345, 2.0])", "1.500000 2.35 2"),
           ("'%.2f'.format([body.i])", "3.00")],
    "%e": [("'%e %.1e'.format([1500.0, 1500.0])", "1.500000e+03 1.5e+03")],
    "%b": [("'%b %b %b'.format([5, 5u, true])", "101 101 1")],
    "%o": [("'%o %o'.format([8, 8u])", "10 10")],
    "%x": [("'%x %X %x %x'.format([255, 255u, 'hi', b'hi'])", "ff FF 6869 6869")],
    "%%": [("'100%%'.format([])", "100%")],
    "distinct": [("[1, 'a', 1, 1.0, 'a'].distinct()", [1, "a"])],
    "sort": [("[2, 1].sort()", [1, 2]), ("['b', 'a'].sort()", ["a", "b"]),
             ("[2.5, 1.5].sort()", [1.5, 2.5]), ("[true, false].sort()", [False, True]),
             ("[timestamp(9), timestamp(0)].sort().map(t, int(t))", [0, 9])],
    "sortBy": [("['bb', 'a'].sortBy(s, size(s))", ["a", "bb"]),
               ("body.m.map(k, k).sortBy(k, -body.m[k])", ["b", "a"])],
    "flatten": [("[[1], [[2]]].flatten() + [[[3]]].flatten(1) + [[[4]]].flatten(9)",
                 [1, [2], [3], 4])],
    "slice": [("[1, 2, 3].slice(0, 2) + [1].slice(1, 1)", [1, 2])],
    "ends": [("[1, 2].first().value() + [1, 2].last().value()", 3), ("[].first()", None),
             ("[].last()", None)],
    "range": [("lists.range(3) + lists.range(0)", [0, 1, 2])],
    "base64": [("base64.encode(b'\\x00\\xff') + string(base64.decode('w7w='))", "AP8=ü")],
    "greatest": [("[math.greatest(1), math.greatest(1, 2.5), math.greatest(1, 2, 3), "
                  "math.greatest([4, 5u]), math.greatest(body.l)]", [1, 2.5, 3, 5, 2])],
    "least": [("[math.least(1), math.least(1, 2.5), math.least(3, 2, 1), math.least([4, 5u]), "
               "math.least(body.l)]", [1, 1, 1, 4, 1])],
    "round": [("[math.round(2.5), math.round(-2.5), math.round(body.i)]", [3.0, -3.0, 3.0])],
    "ceil": [("[math.ceil(1.2), math.floor(-1.2), math.trunc(-1.7), math.ceil(body.i)]",
              [2.0, -2.0, -1.0, 3.0])],
    "abs": [("[math.abs(-1), math.abs(1u), math.abs(-1.5)]", [1, 1, 1.5])],
    "sign": [("[math.sign(-2), math.sign(2u), math.sign(-2.5)]", [-1, 1, -1.0])],
    "sqrt": [("[math.sqrt(4), math.sqrt(4u), math.sqrt(6.25)]", [2.0, 2.0, 2.5])],
    "finite": [("[math.isNaN(0.0 / 0.0), math.isInf(-1.0 / 0.0), math.isFinite(body.i)]",
                [True, True, True])],
    "bits": [("[math.bitAnd(6, 3), math.bitOr(6, 3), math.bitXor(6, 3), math.bitNot(0)]",
              [2, 7, 5, -1]),
             ("[math.bitAnd(6u, 3u), math.bitOr(6u, 3u), math.bitXor(6u, 3u)]", [2, 7, 5]),
             ("[math.bitShiftLeft(1, 2), math.bitShiftLeft(1u, 2), math.bitShiftRight(4, 1), "
              "math.bitShiftRight(4u, 1)]", [4, 4, 2, 2])],
    "sets": [("sets.contains(body.l, [1, 1.0]) && sets.equivalent(body.l, [2, 1, 1])", True),
             ("sets.intersects(body.l, [2u, 9]) && !sets.intersects(body.l, [])", True)],
    "regex": [("[regex.extract('k=v', '(.)=').value(), regex.extract('k=v', '.=').value()]",
               ["k", "k="]),
              ("regex.extractAll('a1b2', '[0-9]') + regex.extractAll('a1', '([a-z])[0-9]')",
               ["1", "2", "a"]),
              ("regex.replace('aa', 'a', 'b') + regex.replace('aa', 'a', 'b', 1)", "bbba"),
              (r"regex.replace('ab', '(a)(b)', r'\2-\1') + regex.replace('a', '(a)', '\\1!')",
               "b-aa!")],
    "optionals": [("optional.of(1).or(optional.of(2)).value()", 1),
                  ("optional.none().or(optional.of(2)).orValue(3)", 2),
                  ("[body.?s.hasValue(), body.?q.hasValue(), body[?'s'].hasValue()]",
                   [True, False, True]),
                  ("body.l[?0].orValue(9) + body.l[?7].orValue(9)", 10),
                  ("[optional.ofNonZeroValue('').hasValue()]", [False]),
                  ("body.?m.?a.optMap(x, x + 1).value()", 2),
                  ("body.?l.optFlatMap(l, l.last()).value()", 2),
                  ("optional.unwrap([body.?s, body.?q]) + [body.?i].unwrapOpt()", ["abc", 3])],
    "all": [("body.l.all(i, v, v > i) && body.m.all(k, v, v > 0)", True)],
    "exists": [("body.l.exists(i, v, i == 1) && body.m.exists(k, v, k == 'b' && v == 2)", True)],
    "existsOne": [("body.l.existsOne(i, v, v == 2) && body.m.existsOne(k, v, v == 1)", True)],
    "transformList": [("body.l.transformList(i, v, [i, v])", [[0, 1], [1, 2]]),
                      ("body.l.transformList(i, v, i > 0, v)", [2]),
                      ("body.m.transformList(k, v, k).sort()", ["a", "b"]),
                      ("body.m.transformList(k, v, v > 1, k)", ["b"])],
    "transformMap": [("body.m.transformMap(k, v, k)", {"a": "a", "b": "b"}),
                     ("body.m.transformMap(k, v, v > 1, k)", {"b": "b"}),
                     ("body.l.transformMap(i, v, v)[1] + body.l.transformMap(i, v, i < 1, v)[0]",
                      3)],
    "transformMapEntry": [("body.l.transformMapEntry(i, v, {string(v): i})", {"1": 0, "2": 1}),
                          ("body.m.transformMapEntry(k, v, {string(v): k})", {"1": "a", "2": "b"}),
                          ("body.m.transformMapEntry(k, v, v > 1, {k: v})", {"b": 2}),
                          ("body.m.transformMapEntry(k, v, v > 1 ? {} : {k: v})", {"a": 1})],
}  # fmt: skip


def rows(table: dict[str, list[tuple[str, Any]]]) -> list[Any]:
    return [
        pytest.param(source, result, id=f"{name}-{number}")
        for name, cases in table.items()
        for number, (source, result) in enumerate(cases)
    ]


def same(one: Any, other: Any) -> bool:
    """Equality that tells 1 from 1.0 and from true, at the top and in a list."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize(("source", "result"), rows(LANGUAGE) + rows(LIBRARY))
def test_an_overload_gives(source: str, result: Any) -> None:
    found = Expression.compile(source).value(Message(BODY))
    assert same(result, found), found


@pytest.mark.parametrize(("value", "expected"), ANYTHING.items())
def test_a_function_of_anything_takes_a_value_of_each_type(
    value: str, expected: tuple[str, str, str | None]
) -> None:
    names = ["toJson", "toYaml"] + (["string"] if expected[2] is not None else [])
    calls = [f"{name}({value})" for name in names]
    found = Expression.compile(f"[{', '.join(calls)}]").value(Message())
    assert list(expected[: len(calls)]) == found


@pytest.mark.parametrize("one", ["'a'", "b'a'"])
@pytest.mark.parametrize("other", ["'a'", "b'a'"])
def test_a_function_of_keys_takes_text_and_bytes(one: str, other: str) -> None:
    source = f"secureCompare({one}, {other}) && hmacSha1({one}, {other}) == hmacSha1('a', 'a')"
    assert Expression.compile(source).value(Message()) is True
