"""`rest`: requests as a flow describes them, and what becomes of their answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from flowrt.errors import ConfigError
from flowrt.expr.multipart import decode_parts
from tests.blocks.http.calling import answer, call, document, failure, rest
from tests.http_server import says, web
from tests.services import load


async def test_json_becomes_the_body_and_the_status_a_variable(tmp_path: Path) -> None:
    with web(says({"id": 9007199254740993, "price": 1.0}, 201)) as api:
        found = await answer(tmp_path, f"{api.url}/v1", rest(path="/orders"), {"n": 1})
    assert ({"id": 9007199254740993, "price": 1.0}, False) == (found.body, found.raw)
    assert {"statusCode": 201} == dict(found.vars)
    assert ("GET", "/v1/orders", b"") == (api.call.method, api.call.path, api.call.raw)


async def test_other_texts_become_raw_content_in_their_own_charset(tmp_path: Path) -> None:
    kind = "text/plain; charset=iso-8859-1"
    with web(says("grün".encode("latin-1"), kind=kind)) as api:
        found = await answer(tmp_path, api.url, rest())
    assert ({"contentType": kind, "rawData": "grün"}, True) == (found.body, found.raw)


async def test_bytes_need_an_encoding(tmp_path: Path) -> None:
    with web(says(b"\x89PNG\xff", kind="image/png")) as api:
        text = await failure(tmp_path, api.url, rest(path="/logo"))
        found = await answer(tmp_path, api.url, rest(path="/logo", encoding="base64"))
    assert "GET /logo was answered with 200 and 'image/png' that is no utf-8 text" in text
    assert "`encoding: base64`" in text
    assert {"contentType": "image/png", "rawData": "iVBOR/8="} == found.body


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_an_empty_answer_is_null(tmp_path: Path, method: str) -> None:
    with web(says(None, 204 if method == "GET" else 200)) as api:
        found = await answer(tmp_path, api.url, rest(method=method), {"n": 1})
    assert (None, False) == (found.body, found.raw)


@pytest.mark.parametrize("kind", ["application/problem+json", "text/json; charset=utf-8"])
async def test_json_goes_by_many_names(tmp_path: Path, kind: str) -> None:
    with web(says('{"a": "\\u0000"}', kind=kind)) as api:
        assert {"a": "\ufffd"} == (await answer(tmp_path, api.url, rest())).body


@pytest.mark.parametrize("text", ["{", "NaN", "[" * 100_000])
async def test_json_that_cannot_be_read_fails(tmp_path: Path, text: str) -> None:
    with web(says(text.encode(), kind="application/json; charset=utf-8")) as api:
        told = await failure(tmp_path, api.url, rest())
    assert "GET / was answered with 200 and JSON that cannot be read" in told


@pytest.mark.parametrize(
    ("value", "sent", "kind"),
    [
        ('{"n": 1, "t": "ä"}', '{"n": 1, "t": "ä"}'.encode(), "application/json"),
        ('"n=1"', b"n=1", "text/plain; charset=utf-8"),
        ("[1, 2.5]", b"[1, 2.5]", "application/json"),
        ("false", b"false", "application/json"),
        ("null", b"", None),
    ],
)
async def test_a_text_is_sent_as_it_is_and_everything_else_as_json(
    tmp_path: Path, value: str, sent: bytes, kind: str | None
) -> None:
    with web(says({})) as api:
        await answer(tmp_path, api.url, rest(method="post", body=value))
    assert ("POST", sent) == (api.call.method, api.call.raw)
    assert kind == api.call.headers.get("content-type")


async def test_the_message_is_not_sent_unless_body_says_so(tmp_path: Path) -> None:
    with web(says({})) as api:
        await answer(tmp_path, api.url, rest(method="POST"), {"secret": "s"})
    assert b"" == api.call.raw


async def test_a_header_may_say_what_the_text_is(tmp_path: Path) -> None:
    with web(says({})) as api:
        headers = {"content-type": '"application/x-www-form-urlencoded"', "X-Name": '"Jörg"'}
        await answer(tmp_path, api.url, rest(method="POST", body='"a=1"', headers=headers))
    assert "application/x-www-form-urlencoded" == api.call.headers["content-type"]
    assert "Jörg" == api.call.headers["x-name"].encode("latin-1").decode()


async def test_query_and_headers_are_expressions_and_null_leaves_them_out(tmp_path: Path) -> None:
    block = rest(
        path="/find?fixed=1",
        query={"q": "body.q", "tag": '["a", "b"]', "n": "2", "flag": "true", "none": "null"},
        headers={"X-N": "1", "X-None": "null", "X-List": '["a", "b"]'},
    )
    with web(says({})) as api:
        await answer(tmp_path, api.url, block, {"q": "a&b=c ?#ü"})
    assert [
        ("fixed", "1"), ("q", "a&b=c ?#ü"), ("tag", "a"), ("tag", "b"), ("n", "2"),
        ("flag", "true"),
    ] == parse_qsl(api.call.query)  # fmt: skip
    assert ("1", "a, b") == (api.call.headers["x-n"], api.call.headers["x-list"])
    assert "x-none" not in api.call.headers


async def test_a_status_of_400_or_more_fails_with_what_was_said(tmp_path: Path) -> None:
    with web(says({"detail": "x" * 1000}, 422)) as api:
        result = await call(tmp_path, api.url, rest(path="orders", method="PUT"), {"kept": 1})
    text = str(result.error)
    begin = "connector 'api': PUT /orders was answered with 422 Unprocessable"
    assert text.startswith(f'block "rest": {begin}')
    assert len(text) < 450


async def test_the_error_chain_sees_the_status(tmp_path: Path) -> None:
    entry = document("http://x", rest())
    entry["flows"][0]["error"] = [{"type": "set-payload", "value": "vars.statusCode"}]
    with web(says({}, 503)) as api:
        entry["connectors"][0]["settings"]["baseURL"] = api.url
        async with load(tmp_path, entry) as service:
            result = await service.invoke("main", None)
    assert result.message is not None
    assert 503 == result.message.body


async def test_a_failure_may_be_an_answer(tmp_path: Path) -> None:
    with web(says({"detail": "no"}, 404)) as api:
        found = await answer(tmp_path, api.url, rest(failOnError=False, statusVar="s"))
    assert ({"detail": "no"}, {"s": 404}) == (found.body, dict(found.vars))


async def test_multipart_sends_the_parts_of_a_map(tmp_path: Path) -> None:
    block = rest(
        method="POST",
        bodyType="multipart",
        body='{"title": body.title, "file": {"data": "AP8=", "encoding": "base64", '
        '"filename": "a.bin"}}',
    )
    with web(says({})) as api:
        await answer(tmp_path, api.url, block, {"title": "hello\r\n--octo-multipart--"})
    parts = decode_parts(api.call.raw, api.call.headers["content-type"])
    assert "hello\r\n--octo-multipart--" == parts["title"]["data"]
    assert ("a.bin", "AP8=") == (parts["file"]["filename"], parts["file"]["data"])


@pytest.mark.parametrize(
    ("settings", "data", "told"),
    [
        ({"bodyType": "multipart", "body": "body"}, "text", "bodyType multipart needs a map"),
        ({"bodyType": "multipart", "body": "body"}, {"a": {"x": 1}}, "the part 'a' has no 'x'"),
        ({"query": {"q": "body"}}, {"a": 1}, "query: 'q' is a text, number or bool"),
        ({"headers": {"X-A": "body"}}, "a\r\nHost: evil", "the header 'X-A' has a line break"),
        ({"headers": {"X-A": "body"}}, {"a": 1}, "headers: 'X-A' is a text"),
    ],
)
async def test_data_that_does_not_fit_is_not_sent(
    tmp_path: Path, settings: dict[str, Any], data: Any, told: str
) -> None:
    with web(says({})) as api:
        assert told in await failure(tmp_path, api.url, rest(method="POST", **settings), data)
    assert [] == api.calls


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"path": "https://evil.example/x"}, "is an absolute URL"),
        ({"path": "/a/%252e%252e/b"}, "has a `..` segment"),
        ({"path": "/a#b"}, "has a `#`"),
        ({"method": "TRACE"}, "method"),
        ({"headers": {"Content-Length": "1"}}, "is written by the client"),
        ({"headers": {"a b": "1"}}, "cannot be the name of a header"),
        ({"bodyType": "multipart"}, "needs a body"),
        (
            {"bodyType": "multipart", "body": "body", "headers": {"Content-Type": '"x"'}},
            "writes its own Content-Type",
        ),
        ({"connector": "nope"}, 'connector "nope" is not configured'),
        ({"query": {"q": "body."}}, "query"),
        ({"bdy": "1"}, "bdy"),
    ],
)
def test_what_cannot_work_is_a_load_error(
    tmp_path: Path, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, document("http://x", rest(**settings)))
    (fault,) = caught.value.faults
    assert fault.position is not None
    assert told in str(fault)


async def test_the_connector_must_be_an_http_client(tmp_path: Path) -> None:
    entry = document("http://x", rest())
    entry["connectors"] = [{"name": "api", "type": "embed-local"}]
    with pytest.raises(ConfigError, match='connector "api" is not an http-client'):
        load(tmp_path, entry)


async def test_a_body_of_two_megabytes_arrives_whole(tmp_path: Path) -> None:
    with web(lambda sent: says({"size": len(sent.raw)})) as api:
        found = await answer(tmp_path, api.url, rest(method="POST", body="body"), "x" * 2_000_000)
    assert {"size": 2_000_000} == found.body
    assert json.loads("2000000") == len(api.call.raw)
