"""Templates: spans found once, data never read."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.errors import ExpressionError, Position
from flowrt.expr import Scope, Template
from flowrt.message import Message


def render(text: str, body: Any = None) -> str:
    return Template.compile(text).render(Message(body))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("no spans }} { } here", "no spans }} { } here"),
        ("Hello {{ body.name }}!", "Hello Sam!"),
        ("{{body.name}}{{body.name}}", "SamSam"),
        ("{{ body.n }} {{ body.none }} {{ body.list }}", '1 null [1,"a"]'),
        ("{{ 'a }} b' }}", "a }} b"),
        ('{{ "a }} \\" }} b" }}', 'a }} " }} b'),
        ("{{ r'\\d' + '}}' }}", "\\d}}"),
        ("{{ '''a }}\n''' }}", "a }}\n"),
        ("{{ {'a': {'b': 1}} }}", '{"a":{"b":1}}'),
        ("{{ {'a': {'b': 1}}.a.b }}", "1"),
        ("{{{'a': 1}}}", '{"a":1}'),
        ("{{ // }} in a comment\n body.n }}", "1"),
        ("{{\n  body.name\n}}", "Sam"),
        ("{ {{ body.n }} }", "{ 1 }"),
        ("`{{ body.name }}` é😀 {{ body.name }}", "`Sam` é😀 Sam"),
    ],
)
def test_a_template_renders(text: str, expected: str) -> None:
    assert expected == render(text, {"name": "Sam", "n": 1, "none": None, "list": [1, "a"]})


@pytest.mark.parametrize("payload", ["{{ env.SECRET }}", "{{", "}}", "${HOME}", "{{ 1 + 1 }}"])
def test_what_a_span_yields_is_not_looked_through_for_spans(payload: str) -> None:
    scope = Scope({"SECRET": "s"})
    template = Template.compile("<{{ body.x }}{{ body.x }}>", scope=scope)
    assert f"<{payload}{payload}>" == template.render(Message({"x": payload}))


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("a {{ body.x", "t.md:1:3", "never closed"),
        ("a\nb {{ 'x }}", "t.md:2:3", "does not compile"),
        ("a\n\n  {{ }}", "t.md:3:3", "empty"),
        ("{{ bdy }}", "t.md:1:1", "did you mean 'body'"),
        ("ok {{ body.x }}\n{{ 1 + }}", "t.md:2:1", "does not compile"),
        ("{{ body.x) }}", "t.md:1:1", "never closed|does not compile"),
    ],
)
def test_a_bad_span_is_an_error_at_its_own_place(text: str, place: str, what: str) -> None:
    with pytest.raises(ExpressionError, match=what) as caught:
        Template.compile(text, Position("t.md", 1, 1))
    assert str(caught.value).startswith(f"{place}: ")


def test_a_template_inside_a_file_counts_from_where_it_stands() -> None:
    with pytest.raises(ExpressionError, match=r"^f\.yaml:7:14: "):
        Template.compile("ab {{ bdy }}", Position("f.yaml", 7, 11))


def test_a_span_that_fails_names_its_place_and_source() -> None:
    template = Template.compile("x\n{{ body.y }}", Position("t.md", 1, 1))
    with pytest.raises(ExpressionError, match=r"t\.md:2:1: no such key: y \(in 'body\.y'\)"):
        template.render(Message({}))


def test_spans_see_the_names_they_were_compiled_with() -> None:
    template = Template.compile("{{ input.a }}")
    assert "1" == template.render(Message(), {"input": {"a": 1}})
    assert Template.compile("{{ input == null }}").render(Message()) == "true"


def test_a_hundred_thousand_braces_are_read_once() -> None:
    assert "{ " * 100_000 == render("{ " * 100_000)
    with pytest.raises(ExpressionError):
        Template.compile("{{" * 100_000)
