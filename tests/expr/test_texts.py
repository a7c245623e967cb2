"""Error texts say where, what, the rule and the way out."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.errors import ExpressionError
from flowrt.expr import Expression
from flowrt.message import Message


def error_of(source: str, body: Any = None, names: tuple[str, ...] = ()) -> str:
    with pytest.raises(ExpressionError) as caught:
        Expression.compile(source, names=names).value(Message(body))
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("bdy.x", "unknown name 'bdy'; did you mean 'body'?"),
        ("body.x + inptu.y", "unknown name 'inptu'; did you mean 'input'?"),
        ("zzz", "the variables are body, vars, eventID, correlationID, env, now, input"),
        ("formJson(body)", "unknown function 'formJson'; did you mean 'fromJson'?"),
        ("body.x.transformlist(i, v, v)", "did you mean 'transformList'?"),
        ("upper(body.x)", "did you mean 'upperAscii'?"),
        ("body.x +", "character 9"),
        ("math.rond(1.0)", "math.rond() is not a function; did you mean 'math.round'?"),
        ("math.abs(1) + math.flor(1.0)", "math.flor() is not a function"),
        ("sets.union([1], [2])", "sets.union() is not a function"),
        ("math.sqrt()", "math.sqrt() does not take these arguments"),
        ("math", "math is not a value"),
        ("cel.bind(x, 1, x)", "set a variable with a set-variable block before"),
        ("'abc'[0]", "one character of a text is text.charAt(0)"),
        ("body.l[1:2]", "a slice is list.slice(from, to) or text.substring(from, to)"),
        ("body.l[:2]", "a slice is"),
        ("'abc'[1:]", "a slice is"),
        ("body.l.sum()", "there is no sum(): add up in a foreach block"),
        ("body.l.fold(a, b, 0, a + b)", "there is no fold(): add up in a foreach block"),
        ("max(1, 2)", "use math.greatest(a, b)"),
        ("1 +\n* 2", "line 2, character 1"),
        ("string(1) + + 2", "does not compile at character 13"),
        ("now + now", "'+' does not take"),
        ("'a' + 1", "make a text of the other with string(x)"),
        ("1 + 1.0", "write whole numbers with a point"),
        ("has(body)", "has()"),
        ("", "empty"),
    ],
)
def test_what_does_not_compile_is_named_with_the_way_out(source: str, text: str) -> None:
    assert text in error_of(source, names=("input",))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("body.missing", "no such key: missing (in 'body.missing')"),
        ("body.n.x", "a field was asked of a value that is not a map"),
        ("body.n ? 1 : 2", "the condition of ?: must be a bool"),
        ("body.n && true", "&&"),
        ("body.f * 2", "write whole numbers with a point, such as 2.0"),
        ("body.s + body.n", "make a text of the other with string(x) or toJson(x)"),
        ("body.n.size()", "size() does not take int"),
        ("size(body.nul)", "size() does not take null"),
        ("body.l[7]", "7"),
        ("body.n / 0", "divide by zero"),
        ("int(body.s)", "int"),
        ("timestamp(body.s)", "Timestamp"),
    ],
)
def test_what_fails_on_its_data_is_named_with_the_way_out(source: str, text: str) -> None:
    body = {"n": 1, "f": 1.5, "s": "x", "l": [1], "nul": None}
    assert text in error_of(source, body)


@pytest.mark.parametrize(
    "source",
    [
        "string(null)",
        "size(now)",
        "body.x.map(y, y.z) + 1",
        "now.foo()",
        "toJson(1, 2)",
        "uuid",
        "uuid(1)",
        "string()",
        "string(1, 2)",
        "[1].map(x, string(x) + 1)",
        "{'a': now + 1}",
        "body.l.transformMap(k, v, v + 'x')",
        "optional.unwrap(1)",
    ],
)
def test_no_error_shows_what_flowrt_made_of_the_source(source: str) -> None:
    text = error_of(source, {"l": [1]})
    for made in ("_text_", "_now_", "_pieces", "_pairs", "_merged", "_t1_", "_probe_", "<input>"):
        assert made not in text


@pytest.mark.parametrize(("source", "name"), [("uuid", "uuid"), ("toJson(1, 2)", "toJson")])
def test_a_known_name_used_wrongly_is_not_suggested_to_be_itself(source: str, name: str) -> None:
    assert f"did you mean '{name}'" not in error_of(source)


def test_the_place_named_is_inside_the_source() -> None:
    assert "character 28" not in error_of("size(now)")
