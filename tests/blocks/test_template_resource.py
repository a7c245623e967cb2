"""`template-resource`, `templateResource` and the templates of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.message import Message
from flowrt.service import Result, Service
from tests.services import flows, load

Templates = dict[str, str]


def service(folder: Path, templates: Templates, *chain: dict[str, Any], **document: Any) -> Service:
    """A flow `main`; each template is a file, known by its name without the suffix."""
    for name, text in templates.items():
        (folder / name).write_text(text, encoding="utf-8")
    declared = [{"resource": name, "as": name.partition(".")[0]} for name in templates]
    return load(folder, flows(main=list(chain)) | {"resources": {"templates": declared}} | document)


async def result(folder: Path, templates: Templates, *chain: dict[str, Any], data: Any) -> Result:
    async with service(folder, templates, *chain) as made:
        return await made.invoke("main", data)


async def message(
    folder: Path, templates: Templates, *chain: dict[str, Any], data: Any = None
) -> Message:
    found = await result(folder, templates, *chain, data=data)
    assert found.message is not None, found.error
    return found.message


def block(id_: str, **settings: Any) -> dict[str, Any]:
    return {"type": "template-resource", "settings": {"id": id_, **settings}}


def payload(value: str) -> dict[str, Any]:
    return {"type": "set-payload", "value": value}


def faults(folder: Path, templates: Templates, *chain: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        service(folder, templates, *chain)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize("id_", ["hello", "hello.md"])
async def test_a_template_becomes_the_body_by_its_alias_or_its_id(tmp_path: Path, id_: str) -> None:
    templates = {"hello.md": "Hi {{ body.name }}!"}
    found = await message(tmp_path, templates, block(id_), data={"name": "Sam"})
    assert ("Hi Sam!", False) == (found.body, found.raw)


async def test_a_template_becomes_a_variable_and_leaves_the_body(tmp_path: Path) -> None:
    found = await message(
        tmp_path, {"hello.md": "Hi {{ body.name }}!"}, block("hello", target="t"), data={"name": 1}
    )
    assert ({"name": 1}, {"t": "Hi 1!"}) == (found.body, dict(found.vars))


async def test_a_template_becomes_raw_content(tmp_path: Path) -> None:
    raw = block("page", rawBody=True, contentType="text/html")
    found = await message(tmp_path, {"page.html": "<p>{{ body }}</p>"}, raw, data="x")
    assert ({"contentType": "text/html", "rawData": "<p>x</p>"}, True) == (found.body, found.raw)


async def test_text_after_raw_content_is_a_body_again(tmp_path: Path) -> None:
    chain = [block("a", rawBody=True), block("a")]
    found = await message(tmp_path, {"a.md": "x"}, *chain)
    assert ("x", False) == (found.body, found.raw)


@pytest.mark.parametrize(
    ("settings", "path", "said"),
    [
        ({"id": "helo"}, "id", "template resource 'helo' is not declared; did you mean 'hello'?"),
        ({"id": "zzz"}, "id", "declare it under resources.templates"),
        ({"id": ""}, "id", "1"),
        ({"id": "hello", "target": "t", "rawBody": True}, "rawBody", "leave target out"),
        ({"id": "hello", "contentType": "text/html"}, "contentType", "needs rawBody"),
        ({"id": "hello", "targt": "t"}, "targt", "target"),
    ],
)
def test_a_block_that_cannot_work_does_not_load(
    tmp_path: Path, settings: dict[str, Any], path: str, said: str
) -> None:
    chain = {"type": "template-resource", "settings": settings}
    (fault,) = faults(tmp_path, {"hello.md": ""}, chain)
    assert f"flows.main.process[0].settings.{path}: " in fault
    assert said in fault


async def test_a_template_renders_inside_an_expression_over_the_same_message(
    tmp_path: Path,
) -> None:
    templates = {"row.md": "{{ body.n }}/{{ vars.v }}/{{ eventID }}/{{ correlationID == '' }}"}
    chain = [
        {"type": "set-variable", "settings": {"name": "v", "value": "7"}},
        payload("[eventID, templateResource('row'), templateResource('ro' + body.w)]"),
    ]
    found = await message(tmp_path, templates, *chain, data={"n": 1, "w": "w"})
    event, constant, computed = found.body
    assert f"1/7/{event}/true" == constant == computed


async def test_templates_use_each_other_whatever_their_order(tmp_path: Path) -> None:
    templates = {"a.md": "<{{ templateResource('b') }}>", "b.md": "{{ body }}"}
    assert "<x>" == (await message(tmp_path, templates, block("a"), data="x")).body


async def test_what_a_template_yields_is_not_looked_through_again(tmp_path: Path) -> None:
    """FB-90."""
    templates = {"a.md": "{{ templateResource('b') }}", "b.md": "{{ body }}"}
    found = await message(tmp_path, templates, block("a"), data="{{ env.SECRET }} ${HOME}")
    assert "{{ env.SECRET }} ${HOME}" == found.body


async def test_names_that_the_scope_lacks_are_null_in_a_template(tmp_path: Path) -> None:
    templates = {"a.md": "{{ [input, tool, settings, request] }}"}
    assert "[null,null,null,null]" == (await message(tmp_path, templates, block("a"))).body


@pytest.mark.parametrize("levels", [1, 8])
async def test_eight_templates_may_stand_inside_each_other(tmp_path: Path, levels: int) -> None:
    assert "x" == (await message(tmp_path, nested(levels), payload("templateResource('t1')"))).body


async def test_nine_may_not(tmp_path: Path) -> None:
    found = await result(tmp_path, nested(9), payload("templateResource('t1')"), data=None)
    assert "more than 8 templates deep: t1 -> t2 -> t3" in str(found.error)
    assert "t8 -> t9" in str(found.error)


def nested(levels: int) -> Templates:
    inner = {f"t{n}.md": f"{{{{ templateResource('t{n + 1}') }}}}" for n in range(1, levels)}
    return inner | {f"t{levels}.md": "x"}


async def test_a_circle_is_an_error_that_shows_it(tmp_path: Path) -> None:
    templates = {
        "a.md": "{{ templateResource('b') }}",
        "b.md": "{{ templateResource('c.md') }}",
        "c.md": "{{ templateResource('a') }}",
    }
    found = await result(tmp_path, templates, payload("templateResource('a')"), data=None)
    assert "the templates go round in a circle: a -> b -> c.md -> a" in str(found.error)


async def test_after_a_circle_the_next_message_renders(tmp_path: Path) -> None:
    templates = {"a.md": "{{ body == 1 ? templateResource('a') : 'fine' }}"}
    async with service(tmp_path, templates, payload("templateResource('a')")) as made:
        assert (await made.invoke("main", 1)).error is not None
        after = await made.invoke("main", 2)
        assert after.message is not None
        assert "fine" == after.message.body


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_constant_that_is_not_declared_does_not_load(tmp_path: Path, quote: str) -> None:
    (fault,) = faults(tmp_path, {"hello.md": ""}, payload(f"templateResource({quote}helo{quote})"))
    assert "flows.main.process[0].value: " in fault
    assert "template resource 'helo' is not declared; did you mean 'hello'?" in fault


async def test_a_computed_one_that_is_not_declared_fails_where_it_runs(tmp_path: Path) -> None:
    found = await result(tmp_path, {"hello.md": ""}, payload("templateResource(body)"), data="helo")
    assert "template resource 'helo' is not declared; did you mean 'hello'?" in str(found.error)


async def test_a_span_that_fails_names_the_template_its_line_and_what_asked(
    tmp_path: Path,
) -> None:
    templates = {"a.md": "one\ntwo {{ body.missing }}"}
    found = await result(tmp_path, templates, payload("templateResource('a')"), data={})
    assert "template 'a': a.md:2:5: no such key: missing (in 'body.missing')" in str(found.error)
    assert "service.yaml:" in str(found.error)


def test_every_bad_span_of_an_unused_template_fails_the_load_at_its_own_place(
    tmp_path: Path,
) -> None:
    templates = {
        "a.md": "x\n {{ bdy }} {{ }}\n{{ 1 + }}\n{{ open",
        "b.md": "{{ templateResource('c') }}",
    }
    found = faults(tmp_path, templates, payload("1"))
    places = [fault.partition(": ")[0] for fault in found]
    assert ["a.md:2:2", "a.md:2:12", "a.md:3:1", "a.md:4:1", "b.md:1:1"] == places
    assert "did you mean 'body'?" in found[0]
    assert "template resource 'c' is not declared" in found[4]


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "does not exist"), (b"\xff\xfea", "UTF-16"), (b"\xe9\xe9\xe9", "UTF-8")],
)
def test_a_template_that_cannot_be_read_fails_the_load_where_it_is_declared(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "a.md").write_bytes(content)
    document = flows(main=[block("a.md"), payload("templateResource('a.md')")])
    document["resources"] = {"templates": [{"resource": "a.md"}]}
    with pytest.raises(ConfigError, match=said) as caught:
        load(tmp_path, document)
    assert 1 == len(caught.value.faults), str(caught.value)
    assert "resources.templates[0].resource" in str(caught.value)


async def test_an_alias_goes_before_the_id_of_another(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("file x")
    (tmp_path / "y.md").write_text("file y")
    for declared in (
        [{"resource": "x.md", "as": "one"}, {"resource": "y.md", "as": "x.md"}],
        [{"resource": "y.md", "as": "x.md"}, {"resource": "x.md", "as": "one"}],
    ):
        document = flows(main=[block("x.md")]) | {"resources": {"templates": declared}}
        async with load(tmp_path, document) as made:
            found = await made.invoke("main")
        assert found.message is not None
        assert "file y" == found.message.body
