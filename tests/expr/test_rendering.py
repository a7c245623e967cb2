"""`templateResource` inside an evaluation: what it sees, and what it leaves alone."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from flowrt.errors import ExpressionError
from flowrt.expr import Expression, Scope, Template, Templates
from flowrt.message import Message


def scope(env: dict[str, str] | None = None, **texts: str) -> Scope:
    made = Scope(env or {}, templates=Templates(texts))
    for name, text in texts.items():
        made.templates.add(name, Template.compile(text, scope=made))
    return made


def value(source: str, within: Scope, body: Any = None, **extra: Any) -> Any:
    expression = Expression.compile(source, None, within, names=tuple(extra))
    return expression.value(Message(body), extra)


def test_a_template_sees_the_extra_names_of_the_expression_that_asks() -> None:
    within = scope(a="{{ input.n }} {{ tool.name }} {{ templateResource('b') }}", b="{{ input.n }}")
    assert "1 t 1" == value("templateResource('a')", within, input={"n": 1}, tool={"name": "t"})


def test_a_name_the_asking_scope_does_not_have_is_null() -> None:
    assert "null 1" == value("templateResource('a')", scope(a="{{ tool }} {{ input }}"), input=1)


def test_equal_sources_of_two_services_render_their_own_templates() -> None:
    one, other = scope({"E": "1"}, a="one {{ env.E }}"), scope({"E": "2"}, a="other {{ env.E }}")
    message = Message()
    expressions = [Expression.compile("templateResource('a')", None, each) for each in (one, other)]
    assert ["one 1", "other 2"] == [each.value(message) for each in expressions]


def test_a_template_is_rendered_anew_each_time() -> None:
    expression = Expression.compile("templateResource('a')", None, scope(a="{{ body }}"))
    assert ["1", "2"] == [expression.value(Message(body)) for body in (1, 2)]


def test_where_templates_are_not_known_yet_a_name_is_looked_for_when_it_runs() -> None:
    with pytest.raises(ExpressionError, match="there is no template resource 'a' here"):
        value("templateResource('a')", Scope())
    with pytest.raises(ExpressionError, match="'a' is not declared"):
        value("templateResource('a')", Scope(templates=Templates([])))


@pytest.mark.parametrize("source", ["body.templateResource", "'templateResource(\\'x\\')'"])
def test_a_field_or_a_text_of_that_name_is_no_call(source: str) -> None:
    assert value(source, Scope(), {"templateResource": 1})


@pytest.mark.parametrize("name", ["1", "null", "['a']", "body.x"])
def test_a_name_is_a_text(name: str) -> None:
    with pytest.raises(ExpressionError):
        value(f"templateResource({name})", scope(a=""), {"x": 1})


def test_what_stands_around_a_call_is_still_there_after_it() -> None:
    """The template's evaluations end inside the outer one, and must not free what it holds."""
    long = "x" * 1000
    within = scope(a="{{ toJson(fromJson(toJson(body))) }}{{ string(body.s) }}")
    source = (
        "[fromJson(toJson(body)), templateResource('a'), fromJson(toJson(body))]"
        ".map(x, x == templateResource('a') ? 'same' : toJson(x))"
    )
    body = {"s": long}
    for _ in range(300):
        found = value(source, within, body)
        assert [f'{{"s":"{long}"}}', "same", f'{{"s":"{long}"}}'] == found


def test_the_guard_of_a_mixed_sum_renders_again_over_doubles() -> None:
    found = value("[body.n * 0.5, templateResource('a')]", scope(a="{{ body.n * 0.5 }}"), {"n": 3})
    assert [1.5, "1.5"] == found


def test_templates_that_multiply_each_other_come_to_an_end() -> None:
    texts = {f"t{n}": f"{{{{ templateResource('t{n + 1}') }}}}" * 12 for n in range(1, 8)}
    within = scope(**texts, t8="x")
    with pytest.raises(ExpressionError, match="more than 10,000 templates") as caught:
        value("templateResource('t1')", within)
    assert 4000 > len(str(caught.value))
    rows = list(range(3000))
    assert "x" * 3000 == value("body.map(r, templateResource('t8')).join()", within, rows)


def test_threads_do_not_see_each_other_s_messages() -> None:
    expression = Expression.compile("templateResource('a')", None, scope(a="{{ body.n }}"))
    wrong: list[str] = []

    def run(number: int) -> None:
        for _ in range(200):
            if (found := expression.value(Message({"n": number}))) != str(number):
                wrong.append(found)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong


def test_a_span_that_uses_no_name_of_a_scope_shares_the_message_s_copy() -> None:
    template = Template.compile("{{ size(body.l) }} {{ size(body.l) + 1 }}")
    message = Message({"l": [1]})
    template.render(message)
    state = message.activation
    template.render(message)
    assert state is not None
    assert state is message.activation
