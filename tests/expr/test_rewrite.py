"""What is rewritten for the runtime means the same, and nothing else is touched."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowrt.errors import ExpressionError
from flowrt.expr import Expression
from flowrt.message import Message


def evaluate(source: str, body: Any = None) -> Any:
    return Expression.compile(source).value(Message(body))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("'string(now)'", "string(now)"),
        ('"it is now (string)"', "it is now (string)"),
        (r"r'now\d' + string(1)", r"now\d1"),
        ("'''now''' + string(1)", "now1"),
        ("// now string( [\n string(1)", "1"),
        ("string (\n 1.0 )", "1"),
        ("string(string(string(1.5)))", "1.5"),
        ("{'string': 1, 'now': 2}['now']", 2),
        ("body.now + body.string", 3),
        ("body . now", 1),
        ("has(body.now)", True),
        ("[1].map(now, now + 1)", [2]),
        ("[1].map(string, string + 1)", [2]),
        ("'%s'.format(['map(x, x)'])", "map(x, x)"),
        ("body.map", "field"),
        ("body.filter == 'f' && body.sortBy == 's'", True),
        ("-body.now", -1),
        ("!has(body.x) ? string(1) : string(2)", "1"),
        ("1 in [1] && string(1) in ['1']", True),
        ("['a'].map(x, ['b'].map(y, string(x) + y))", [["ab"]]),
        ("[[1, 2], [3]].map(l, l.map(x, x + 1))", [[2, 3], [4]]),
        ("[{'a': [1]}].map(m, m.a.map(x, {'n': x}))", [[{"n": 1}]]),
        ("body.l.map(x, x > 1, x * 2)", [4, 6]),
        ("body.l.filter(x, x > 1).map(x, x * 2)", [4, 6]),
        ("body.m.map(k, k)", ["a"]),
        ("body.m.filter(k, k == 'a')", ["a"]),
        ("body.l.map(x, [x])", [[1], [2], [3]]),
        ("body.l.map(x, body.l.filter(y, y < x).size())", [0, 1, 2]),
        ("size(body.l.map(x, x)) + 1", 4),
        ("body.l.map(x, x)[0]", 1),
        ("body.l.map(x, x) == body.l", True),
        ("body.l.transformMap(i, v, v + i)['x' == 'y' ? 0 : 1]", 3),
    ],
)
def test_a_source_means_what_it_says(source: str, expected: Any) -> None:
    body = {
        "now": 1,
        "string": 2,
        "map": "field",
        "filter": "f",
        "sortBy": "s",
        "l": [1, 2, 3],
        "m": {"a": 1},
    }
    assert expected == evaluate(source, body)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(-9, 9) | st.lists(st.integers(-9, 9), max_size=2), max_size=200))
def test_map_and_filter_go_through_lists_of_any_length(items: list[Any]) -> None:
    assert items == evaluate("body.map(x, x)", items)
    kept = [item for item in items if item != 3]
    assert kept == evaluate("body.filter(x, x != 3)", items)
    assert [[item] for item in kept] == evaluate("body.map(x, x != 3, [x])", items)


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 63, 64, 65, 96, 1000])
def test_long_maps_give_all_their_keys(length: int) -> None:
    table = {f"k{n}": n for n in range(length)}
    assert sorted(table) == sorted(evaluate("body.map(k, k)", table))
    assert length == evaluate("body.transformMap(k, v, v).size()", table)


@pytest.mark.parametrize("source", ["body.map(x, x)", "body.filter(x, true)", "body.map(x, x.y)"])
@pytest.mark.parametrize("body", [1, "abc", None, True])
def test_going_through_what_is_no_list_is_an_error(source: str, body: Any) -> None:
    with pytest.raises(ExpressionError):
        evaluate(source, body)


def test_an_error_in_a_long_list_is_the_error_of_the_expression() -> None:
    with pytest.raises(ExpressionError, match="no such key: y"):
        evaluate("body.map(x, x.y)", [{"y": 1}] * 99 + [{}])


@pytest.mark.parametrize(
    "source",
    [
        "now",
        "string(1",
        "body.map(",
        "body.map(x",
        "body.map(x,",
        "body.map(x, x",
        "[string(",
        "{",
        "body.",
        "body..map(x, x)",
        "string)",
        ")(",
        "'",
        '"""',
        "`",
        "\\",
        "@",
        "#",
        "\x00",
        "🙂",
        "map(",
        "string(now",
        "transformMap(",
        "x.transformMap(a,b,",
        "optional.unwrap(",
        ".map(x,x)",
        "now(",
    ],
)
def test_a_broken_source_is_an_error_of_its_own_and_never_a_crash(source: str) -> None:
    if source == "now":
        assert evaluate(source)
    else:
        with pytest.raises(ExpressionError):
            Expression.compile(source)


SOURCES = st.lists(
    st.sampled_from(
        [
            "body",
            "now",
            "string",
            "map",
            "filter",
            "transformMap",
            "toJson",
            "optional",
            "x",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ",",
            ".",
            "?",
            ":",
            " ",
            "'a'",
            "1",
            "==",
            "&&",
            "!",
            "-",
            "in",
        ]
    ),
    max_size=14,
).map("".join)


@settings(deadline=None, max_examples=300)
@given(SOURCES)
def test_any_source_gives_a_value_or_an_expression_error(source: str) -> None:
    with contextlib.suppress(ExpressionError):
        evaluate(source, {"x": 1})


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(-9, 9), max_size=200))
def test_transforming_and_sorting_go_through_lists_of_any_length(items: list[int]) -> None:
    indexed = [[index, item] for index, item in enumerate(items)]
    assert indexed == evaluate("body.transformList(i, v, [i, v])", items)
    kept = [item for index, item in indexed if item > index % 5]
    assert kept == evaluate("body.transformList(i, v, v > i % 5, v)", items)
    assert sorted(items, key=abs) == evaluate("body.sortBy(v, v < 0 ? -v : v)", items)


@pytest.mark.parametrize(
    "source",
    [
        "body.map(x, x + 1).size()",
        "body.filter(x, x >= 0).size()",
        "body.transformList(i, x, x + i).size()",
        "body.transformMap(i, x, x + i).size()",
        "body.sortBy(x, -x).size()",
    ],
)
def test_thousands_of_elements_take_little_memory(source: str) -> None:
    script = (
        "import resource, sys\n"
        "from flowrt.expr import Expression\n"
        "from flowrt.message import Message\n"
        "Expression.compile(sys.argv[1]).value(Message([1]))\n"
        "def most(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = most()\n"
        "assert 4500 == Expression.compile(sys.argv[1]).value(Message(list(range(4500))))\n"
        "print(most() - before)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, source], capture_output=True, text=True, check=True
    )
    assert 40_000 > int(found.stdout)
