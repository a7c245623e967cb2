"""The source `http`: requests in, answers out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from tests.blocks.chains import (
    BROKEN,
    DROP,
    HANG,
    NOTE,
    RAW,
    STOP,
    Note,
    payload,
    variable,
)
from tests.services import load
from tests.sources.serving import document, flow
from tests.sources.web import HERE, route, web

SHOW = payload('{"body": body, "vars": vars}')


async def test_a_request_becomes_a_message(tmp_path: Path) -> None:
    entry = route("/orders/{id}", SHOW, headers=["X-Tenant", "X-Absent"])
    async with web(tmp_path, entry) as site:
        answer = await site.post(
            "/orders/a%20b?q=1&q=2&empty=", {"n": [1, None]}, headers={"x-tenant": "acme"}
        )
    assert (200, "application/json") == (answer.status_code, answer.headers["content-type"])
    assert answer.json() == {
        "body": {"n": [1, None]},
        "vars": {
            "method": "POST",
            "query": {"q": "1", "empty": ""},
            "id": "a b",
            "X-Tenant": "acme",
            "X-Absent": "",
        },
    }


@pytest.mark.parametrize("numbers", ['{"n": 10, "price": 10.0}', '{"n": 10.0, "price": 10}'])
async def test_numbers_of_a_request_compare_as_on_a_number_line(
    numbers: str, tmp_path: Path
) -> None:
    """FB-85."""
    told = payload("[body.n < 4.0, 4.0 > body.n, body.n == 10, 10.0 == body.n, body.price == 10]")
    async with web(tmp_path, route("/", told)) as site:
        answer = await site.post("/", json.loads(numbers))
    assert [False, False, True, True, True] == answer.json()


async def test_a_request_without_a_body_has_none_and_query_is_a_map_all_the_same(
    tmp_path: Path,
) -> None:
    async with web(tmp_path, route("/", SHOW)) as site:
        told = (await site.get()).json()
    assert {"body": None, "vars": {"method": "GET", "query": {}}} == told


@pytest.mark.parametrize(
    ("chain", "status", "body"),
    [
        ([payload('{"a": 1}')], 200, b'{"a":1}'),
        ([payload('"text"')], 200, b'"text"'),
        ([payload("null")], 200, b""),
        ([RAW], 200, b"text"),
        ([payload("1"), variable("httpStatus", "201")], 201, b"1"),
        ([payload("1"), variable("httpStatus", "404.0")], 404, b"1"),
        ([payload("1"), variable("httpStatus", "204")], 204, b""),
        ([payload("1"), variable("httpStatus", "99")], 200, b"1"),
        ([payload("1"), variable("httpStatus", "100")], 200, b"1"),
        ([payload("1"), variable("httpStatus", "600")], 200, b"1"),
        ([payload("1"), variable("httpStatus", '"201"')], 200, b"1"),
        ([payload("1"), STOP, payload("2")], 200, b"1"),
        ([DROP], 204, b""),
        ([BROKEN], 500, b'{"error":"block \\"test-broken\\": boom"}'),
    ],
)
async def test_how_a_flow_ends_is_the_answer(
    tmp_path: Path, chain: list[dict[str, Any]], status: int, body: bytes
) -> None:
    async with web(tmp_path, route("/", *chain)) as site:
        answer = await site.get()
    assert (status, body) == (answer.status_code, answer.content)


async def test_an_error_chain_answers_in_the_flow_s_place(tmp_path: Path) -> None:
    recovery = [variable("httpStatus", "422"), payload("vars.error.block")]
    async with web(tmp_path, route("/", BROKEN, flow={"error": recovery})) as site:
        answer = await site.get()
    assert (422, "test-broken") == (answer.status_code, answer.json())


async def test_a_flow_that_takes_too_long_is_ended_with_504(tmp_path: Path) -> None:
    async with web(tmp_path, route("/", HANG, timeout="50ms")) as site:
        answer = await site.get()
    assert (504, {"error": "the flow took longer than 0.05s"}) == (
        answer.status_code,
        answer.json(),
    )


async def test_the_connector_s_timeout_is_the_one_of_a_source_without(tmp_path: Path) -> None:
    async with web(tmp_path, route("/", HANG), connector={"requestTimeout": "50ms"}) as site:
        assert 504 == (await site.get()).status_code


async def test_a_secret_stays_out_of_the_error(tmp_path: Path) -> None:
    failing = payload('{"a": 1}[env.API_TOKEN]')
    async with web(
        tmp_path,
        route("/", failing),
        env=[{"name": "API_TOKEN", "default": "hunter2-hunter2"}],
    ) as site:
        answer = await site.get()
    assert 500 == answer.status_code
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text


async def test_variables_become_headers_where_they_are_scalar(tmp_path: Path) -> None:
    names = ["X-Text", "X-Number", "X-Yes", "X-Map", "X-Absent", "X-Split"]
    chain = [
        variable("X-Text", '"grüße"'),
        variable("X-Number", "7"),
        variable("X-Yes", "true"),
        variable("X-Map", '{"a": 1}'),
        variable("X-Split", '"a\\r\\nset-cookie: b"'),
    ]
    async with web(tmp_path, route("/", *chain, responseHeaders=names)) as site:
        headers = (await site.get()).headers
    assert ("7", "true") == (headers["x-number"], headers["x-yes"])
    assert "grüße" == headers["x-text"].encode(headers.encoding).decode()
    assert not {"x-map", "x-absent", "x-split", "set-cookie"} & set(headers)


async def test_the_correlation_id_comes_from_its_header(tmp_path: Path) -> None:
    entry = route("/", NOTE, payload("correlationID"), correlationIdHeader="X-Request-Id")
    async with web(tmp_path, entry) as site:
        assert "r-1" == (await site.get(headers={"X-Request-ID": "r-1"})).json()
        assert "" == (await site.get()).json()


async def test_raw_content_goes_in_and_out_as_it_is(tmp_path: Path) -> None:
    async with web(tmp_path, route("/", NOTE, rawBody=True)) as site:
        answer = await site.post(content="a,b\n1,ä", headers={"content-type": "text/csv"})
        empty = await site.get()
    assert ("text/csv", "a,b\n1,ä") == (answer.headers["content-type"], answer.text)
    assert {"contentType": "text/csv", "rawData": "a,b\n1,ä"} == Note.seen[0].body
    assert (200, b"") == (empty.status_code, empty.content)


async def test_the_body_is_kept_as_it_came_beside_its_json(tmp_path: Path) -> None:
    sent = '{ "a" : 1.50 }'
    async with web(tmp_path, route("/", payload("[body.a, vars.raw]"), rawBodyVar="raw")) as site:
        assert [1.5, sent] == (await site.post(content=sent)).json()


@pytest.mark.parametrize("raw", [True, False])
async def test_parts_of_a_form_are_decoded_whatever_the_settings_say(
    tmp_path: Path, raw: bool
) -> None:
    entry = route("/", payload("body.parts.note.data + body.parts.file.data"), rawBody=raw)
    async with web(tmp_path, entry) as site:
        answer = await site.post(
            data={"note": "hi "}, files={"file": ("x.bin", b"\xff\x00", "image/png")}
        )
    assert "hi /wA=" == answer.json()


async def test_one_path_may_have_a_flow_for_each_method(tmp_path: Path) -> None:
    async with web(
        tmp_path,
        route("/x", payload('"read"'), name="a", methods=["get"]),
        route("/x", payload('"written"'), name="b", methods=["POST", "PUT"]),
    ) as site:
        assert "read" == (await site.get("/x")).json()
        assert "written" == (await site.client.put("/x")).json()
        refused = await site.client.delete("/x")
    assert (405, "GET, POST, PUT") == (refused.status_code, refused.headers["allow"])


async def test_a_path_that_is_written_out_goes_before_a_parameter(tmp_path: Path) -> None:
    async with web(
        tmp_path,
        route("/o/{id}", payload('"any " + vars.id'), name="a"),
        route("/o/new", payload('"new"'), name="b", methods=["GET"]),
        connector={"basePath": "/api/v1"},
    ) as site:
        answers = [(await site.get(f"/api/v1/o/{name}")).json() for name in ("new", "7", "new.")]
        posted = (await site.post("/api/v1/o/new")).json()
        gone = [
            (await site.get(path)).status_code for path in ("/o/7", "/api/v1/o/", "/api/v1/o/7/")
        ]
    assert ["new", "any 7", "any new."] == answers
    assert "any new" == posted
    assert [404] * 3 == gone


async def test_a_head_request_gets_no_body(tmp_path: Path) -> None:
    async with web(tmp_path, route("/", payload('"text"'))) as site:
        answer = await site.client.head("/")
    assert ("6", b"") == (answer.headers["content-length"], answer.content)


async def test_an_invoke_opens_no_port_and_finds_the_flow(tmp_path: Path) -> None:
    content = document(route("/", payload("body")))
    async with load(tmp_path, content, environ=HERE) as service:
        result = await service.invoke("main", "x")
        assert "" == service.streams["http"].url  # type: ignore[attr-defined]
    assert result.message is not None
    assert "x" == result.message.body


async def test_the_same_service_serves_again_after_a_stop(tmp_path: Path) -> None:
    async with web(tmp_path, route("/", payload("1"))) as site:
        service = site.service
        await service.stop()
        await service.start(sources=True)
        url = service.streams["http"].url  # type: ignore[attr-defined]
        assert 1 == (await site.client.get(url)).json()


@pytest.mark.parametrize(
    ("settings", "place", "text"),
    [
        ({}, "", "missing key 'path'"),
        ({"path": "orders"}, ".path", "begins with /"),
        ({"path": "/{id:int}"}, ".path", "neither text nor one {name}"),
        ({"path": "/{a}/{a}"}, ".path", "each of its parameters once"),
        ({"path": "/x-{id}"}, ".path", "neither text nor one {name}"),
        ({"path": "/", "methods": ["FETCH"]}, ".methods[0]", "FETCH"),
        ({"path": "/", "headers": ["a b"]}, ".headers[0]", "a b"),
        ({"path": "/", "responseHeaders": ["Content-Type"]}, ".responseHeaders[0]", "server's"),
        ({"path": "/{query}"}, "", "vars.query"),
        ({"path": "/{x}", "rawBodyVar": "x"}, "", "vars.x"),
        ({"path": "/", "sse": {"enabld": True}}, ".sse.enabld", "did you mean 'enabled'"),
        ({"path": "/", "maxBodyBytes": -1}, ".maxBodyBytes", "-1"),
    ],
)
def test_what_cannot_work_does_not_load(
    tmp_path: Path, settings: dict[str, Any], place: str, text: str
) -> None:
    entry = flow("main", source={"type": "http", "settings": settings})
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, document(entry), environ=HERE)
    (fault,) = caught.value.faults
    assert text in str(fault)
    assert f"flows.main.source.settings{place}" == fault.path
    assert fault.position is not None


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"path": "/x"}, "every method at /x"),
        ({"path": "/x", "methods": ["POST", "GET"]}, "every method at /x"),
    ],
)
def test_a_path_that_is_taken_does_not_load(
    tmp_path: Path, other: dict[str, Any], text: str
) -> None:
    entries = route("/x", name="a"), route(name="b", **other)
    with pytest.raises(ConfigError, match=text) as caught:
        load(tmp_path, document(*entries), environ=HERE)
    (fault,) = caught.value.faults
    assert "flows.b.source.settings.path" == fault.path


def test_paths_that_differ_in_their_names_only_do_not_load(tmp_path: Path) -> None:
    entries = (
        route("/x/{a}", name="a", methods=["GET"]),
        route("/x/{b}", name="b", methods=["POST"]),
    )
    with pytest.raises(ConfigError, match="the same path with other names"):
        load(tmp_path, document(*entries), environ=HERE)


async def test_a_failure_leaves_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with web(tmp_path, route("/", BROKEN)) as site:
        await site.get()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    failed = [line for line in lines if "a request failed" == line["event"]]
    assert ['block "test-broken": boom'] == [line["error"] for line in failed]
