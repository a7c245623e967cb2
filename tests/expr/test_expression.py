"""Values, conditions, texts and keys, and what goes wrong with them."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowrt.errors import ExpressionError, Position
from flowrt.expr import Expression, Scope
from flowrt.ids import seed
from flowrt.message import Message, clean

PLACE = Position("flows.yaml", 12, 7)


def value(source: str, body: Any = None, variables: dict[str, Any] | None = None) -> Any:
    return Expression.compile(source, PLACE).value(Message(body, variables))


def failure(source: str, body: Any = None, variables: dict[str, Any] | None = None) -> str:
    with pytest.raises(ExpressionError) as caught:
        value(source, body, variables)
    return str(caught.value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])).map(clean),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text().map(clean), inner, max_size=5)
    ),
    max_leaves=20,
)


def same(one: Any, other: Any) -> bool:
    """Equality that tells 1 from 1.0 and from true."""
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return isinstance(other, dict) and (
            one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
        )
    return type(one) is type(other) and bool(one == other)


@given(JSON)
def test_any_json_value_comes_back_as_it_went_in(body: Any) -> None:
    assert same(body, value("body", body))


@given(JSON)
def test_any_json_value_comes_back_as_it_went_in_through_the_runtime(body: Any) -> None:
    assert same([body, {"x": body}], value("[body, {'x': body}]", body))


@given(JSON)
def test_any_json_value_comes_back_where_optionals_are_about(body: Any) -> None:
    assert same([body], value("[?optional.of(body)]", body))


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=3), JSON)
def test_a_plain_path_is_what_the_runtime_says_it_is(path: list[str], leaf: Any) -> None:
    body = {"a": {"b": {"c": leaf}, "a": [leaf]}, "b": leaf}
    source = ".".join(["body", *path])
    outcomes = []
    for text in (source, f"[{source}][0]"):
        try:
            outcomes.append(value(text, body))
        except ExpressionError as error:
            outcomes.append(str(error).partition(" (in ")[0])
    assert same(outcomes[0], outcomes[1])


@pytest.mark.parametrize(
    ("source", "body", "expected"),
    [
        ("body.n < 4.0", {"n": 10}, False),
        ("4.0 > body.n", {"n": 10}, False),
        ("body.n > 4.0", {"n": 10}, True),
        ("body.n == 200", {"n": 200.0}, True),
        ("200 == body.n", {"n": 200.0}, True),
        ("body.n == 10.0", {"n": 10}, True),
        ("body.n in [10]", {"n": 10.0}, True),
    ],
)
def test_numbers_compare_as_on_a_number_line(source: str, body: Any, expected: bool) -> None:
    assert expected is value(source, body)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("body.n * 2.5", 7.5),
        ("body.n + 0.5", 3.5),
        ("0.5 - body.n", -2.5),
        ("body.list[0] / 0.5", 2.0),
        ("{'a': body.n * 1.5}", {"a": 4.5}),
        ("vars.n * 0.5", 2.0),
        ("body.mixed.sort()", [1.0, 1.5, 2.0]),
        ("body.mixed.sortBy(x, x)", [1, 1.5, 2]),
    ],
)
def test_integers_of_the_data_meet_doubles_as_doubles(source: str, expected: Any) -> None:
    assert expected == value(source, {"n": 3, "list": [1], "mixed": [2, 1.5, 1]}, {"n": 4})


def test_integers_of_an_extra_variable_meet_doubles_as_doubles() -> None:
    expression = Expression.compile("input.n * 0.5", names=("input",))
    assert 1.5 == expression.value(Message(), {"input": {"n": 3}})


def test_a_double_and_a_whole_literal_stay_an_error_that_says_what_to_write() -> None:
    text = failure("body.price * 2", {"price": 9.5})
    assert "'*' does not take double and int" in text
    assert "2.0" in text


def test_integers_keep_every_digit() -> None:
    assert "9007199254740993" == value("string(body.id)", {"id": 9007199254740993})


@pytest.mark.parametrize("source", ["body.n", "[body.n][0]"])
def test_an_integer_beyond_64_bits_becomes_a_double(source: str) -> None:
    found = value(source, {"n": 2**70})
    assert (float, 2.0**70) == (type(found), found)


def test_a_nan_in_the_body_is_refused_where_it_is_read() -> None:
    assert "NaN" in failure("body.n", {"n": float("nan")})


def test_a_value_that_is_passed_on_whole_keeps_its_order() -> None:
    assert ["c", "a"] == list(value("body.m", {"m": {"c": 1, "a": 2}}))


@pytest.mark.parametrize(
    ("source", "key"),
    [
        ("body.missing", "missing"),
        ("body.a.b.c", "b"),
        ("body['x y']", "x y"),
        ("vars.nobody", "nobody"),
        ("env.HOME", "HOME"),
        ("{'a': body.missing}", "missing"),
        ("body['it''s']".replace("''", "\\'"), "it's"),
    ],
)
def test_a_missing_key_is_named_with_the_expression_and_its_place(source: str, key: str) -> None:
    text = failure(source, {"a": {}})
    assert text.startswith(f"flows.yaml:12:7: no such key: {key} (in ")
    assert repr(source) in text


@pytest.mark.parametrize("source", ["has(body.a) ? body.a.b : 'x'", "body.?a.?b.orValue('x')"])
def test_a_guarded_branch_is_never_evaluated(source: str) -> None:
    assert "x" == value(source, {})


@pytest.mark.parametrize("source", ["true || body.a", "body.a || true", "!(false && body.a)"])
def test_an_error_that_cannot_change_the_outcome_is_no_error(source: str) -> None:
    assert value(source, {}) is True


@pytest.mark.parametrize("source", ["'1' == 1", "1 in ['a']", "'x' != 'x' || 1 == 'b'"])
def test_literals_of_different_types_are_unequal(source: str) -> None:
    assert value(source) is False


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("bdy.x", "unknown name 'bdy'; did you mean 'body'?"),
        ("bdy.x == 1 && '1' == 1", "unknown name 'bdy'; did you mean 'body'?"),
        ("toJSON(body)", "unknown function 'toJSON'; did you mean 'toJson'?"),
        ("undefined_var", "the variables are body, vars, eventID, correlationID, env, now"),
        ("body.a +", "does not compile at character 9: Syntax error: unexpected the end"),
        ("body.a\n  + * 2", "does not compile at line 2, character 5"),
        ("'a' + 1", "'+' does not take string and int; make a text of the other with string(x)"),
        ("", "the expression is empty"),
        (" // only a comment", "the expression is empty"),
        ("'a\\u0000b'", "NUL"),
        ("x" * 33_000, "at most 32768"),
        ("(" * 5000 + "1" + ")" * 5000, "deeper than 32 levels"),
        ("[" * 5000, "deeper than 32 levels"),
        ("(" * 5000, "deeper than 32 levels"),
        ("body" + ".a" * 5000, "deeper than 32 levels"),
        ("1" + " + 1" * 5000, "deeper than 32 levels"),
        ("string(" * 2000, "deeper than 32 levels"),
        ("body.map(x, " * 500 + "1" + ")" * 500, "deeper than 32 levels"),
    ],
    ids=lambda text: text[:30],
)
def test_a_source_that_does_not_compile_says_what_is_wrong(source: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(said)) as caught:
        Expression.compile(source, PLACE)
    assert str(caught.value).startswith("flows.yaml:12:7: ")
    assert len(str(caught.value)) < 600


def test_a_name_given_at_compile_is_known_and_suggested() -> None:
    with pytest.raises(ExpressionError, match="did you mean 'request'"):
        Expression.compile("requst.path", names=("request",))


def test_extra_variables_are_seen_and_null_where_nobody_gives_them() -> None:
    expression = Expression.compile("[input, tool.name, body]", names=("input", "tool"))
    assert [None, "t", 1] == expression.value(Message(1), {"tool": {"name": "t"}})


def test_a_scope_gives_env_and_names_of_its_own() -> None:
    scope = Scope({"HOST": "h"}, extra_names=("settings",))
    expression = Expression.compile("env.HOST + ':' + string(settings.port)", None, scope)
    assert "h:80" == expression.value(Message(), {"settings": {"port": 80}})


def test_each_scope_sees_its_own_env_on_the_same_message() -> None:
    message = Message()
    scopes = [Scope({"A": "1"}), Scope({"A": "2"}), Scope({"A": "1"})]
    found = [Expression.compile("'' + env.A", None, scope).value(message) for scope in scopes]
    assert ["1", "2", "1"] == found


@pytest.mark.parametrize(
    ("body", "kind"),
    [(None, "null"), ("true", "string"), (1, "int"), (1.0, "double"), ([], "list"), ({}, "map")],
)
def test_a_condition_must_be_a_bool(body: Any, kind: str) -> None:
    with pytest.raises(ExpressionError, match=f"condition must evaluate to a bool, got {kind}"):
        Expression.compile("body").test(Message(body))


def test_a_condition_is_true_or_false() -> None:
    assert [True, False] == [
        Expression.compile(source).test(Message(1)) for source in ("body == 1", "body == 2")
    ]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("a\"b", "a\"b"),
        (None, "null"),
        (True, "true"),
        (42, "42"),
        (42.0, "42"),
        (4.5, "4.5"),
        ({"b": [1, 2.0, "é 1.0"], "a": None}, '{"a":null,"b":[1,2,"é 1.0"]}'),
    ],
)  # fmt: skip
def test_a_text_is_the_string_itself_or_compact_json(body: Any, text: str) -> None:
    assert text == Expression.compile("body").text(Message(body))


@pytest.mark.parametrize(
    ("body", "key"), [("T1", "T1"), (" T1 ", " T1 "), (42, "42"), (42.0, "42"), (0, "0")]
)
def test_a_key_is_a_text_or_a_number(body: Any, key: str) -> None:
    assert key == Expression.compile("body").key(Message(body), "thread")


@pytest.mark.parametrize("body", [None, "", "  ", "\n", [], {}, {"a": 1}, True, False])
def test_a_key_that_would_pool_people_is_refused(body: Any) -> None:
    with pytest.raises(ExpressionError, match="ai-agent memory threadId is missing: f:1:2: it"):
        Expression.compile("body", Position("f", 1, 2)).key(
            Message(body), "ai-agent memory threadId"
        )


def test_a_key_that_fails_says_whose_key_it_was() -> None:
    with pytest.raises(ExpressionError, match="userId: no such key: user"):
        Expression.compile("body.user").key(Message({}), "userId")


def test_now_is_one_moment_within_an_evaluation_and_a_new_one_in_the_next() -> None:
    expression = Expression.compile("now == now ? now : timestamp(0)")
    message = Message()
    first = expression.value(message)
    assert first.startswith("20")
    seen = {expression.value(message) for _ in range(1000)}
    assert len(seen) > 1


def test_times_are_utc_wherever_the_service_runs() -> None:
    script = (
        "from flowrt.expr import Expression\n"
        "from flowrt.message import Message\n"
        "import datetime\n"
        "found = Expression.compile('[now, timestamp(0), toJson(timestamp(0)), string(now)]')\n"
        "now, zero, text, again = found.value(Message())\n"
        "age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(now)\n"
        "print(zero, text, abs(age.total_seconds()) < 60, again == now)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "TZ": "America/New_York"},
    )
    expected = '1970-01-01T00:00:00Z "1970-01-01T00:00:00Z" True True\n'
    assert expected == found.stdout, found.stderr


def test_uuid_is_a_new_version_4_uuid_each_time_and_can_be_seeded() -> None:
    expression = Expression.compile("uuid()")
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        expression.value(Message()),
    )
    assert expression.value(Message()) != expression.value(Message())
    try:
        seed(1)
        first = value("uuid()")
        seed(1)
        assert first == value("uuid()")
    finally:
        seed(None)


def test_a_constant_is_the_same_each_time_and_nobody_else_s() -> None:
    expression = Expression.compile("{'a': [1, 2]}")
    expression.value(Message())["a"].append(3)
    assert {"a": [1, 2]} == expression.value(Message())


def test_a_constant_that_fails_fails_when_it_runs() -> None:
    expression = Expression.compile("1 / 0", PLACE)
    with pytest.raises(ExpressionError, match=r"flows\.yaml:12:7: divide by zero"):
        expression.value(Message())


def test_a_place_is_the_expression_s_own_though_the_source_is_shared() -> None:
    one, other = (Expression.compile("body.x", Position("f", line, 1)) for line in (1, 2))
    for expression, place in ((one, "f:1:1"), (other, "f:2:1")):
        with pytest.raises(ExpressionError, match=place):
            expression.value(Message({}))


async def test_tasks_that_take_turns_see_their_own_messages() -> None:
    expression = Expression.compile("[vars.n, body.n, toJson(body)]")

    async def run(number: int) -> None:
        message = Message({"n": number})
        for turn in range(20):
            message.set("n", turn)
            assert [turn, number, f'{{"n":{number}}}'] == expression.value(message)
            await asyncio.sleep(0)

    await asyncio.gather(*(run(number) for number in range(20)))


@pytest.mark.parametrize("payload", ["${env.SECRET}", "{{1+1}}", "${HOME}", "body.x", "uuid()"])
def test_text_of_the_data_is_never_run(payload: str) -> None:
    assert payload == value("'' + body", payload)
    assert [payload] == value("fromJson(toJson([body]))", payload)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 4000])
def test_sorting_keeps_what_is_equal_in_its_order_at_any_length(length: int) -> None:
    body = [{"key": number % 7, "at": number} for number in range(length)]
    assert sorted(body, key=lambda item: item["key"]) == value("body.sortBy(x, x.key)", body)


@pytest.mark.parametrize("length", [0, 63, 64, 3000])
def test_a_list_of_any_length_is_transformed(length: int) -> None:
    body = list(range(length))
    assert [2 * each for each in body] == value("body.transformList(i, v, i + v)", body)
    assert body[8:] == value("body.transformList(i, v, i > 7, v)", body)
    table = {str(each): each for each in body}
    assert table == value("body.transformMapEntry(i, v, {string(i): v})", body)
    assert table == value("body.transformMap(k, v, v)", table)


def test_transformations_inside_each_other_compile_in_no_time() -> None:
    source = "1"
    for _ in range(7):
        source = f"body.transformList(i, v, {source}).size()"
    assert 1 == value(f"{source} == 0 ? 0 : 1", [3])
