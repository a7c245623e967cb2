"""`rest-dynamic`: data may say what is called, and nothing beyond what the file allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from tests.blocks.http.calling import answer, document, dynamic, failure
from tests.http_server import says, web
from tests.services import load


async def test_data_says_the_whole_request(tmp_path: Path) -> None:
    block = dynamic(query="body.query", headers="body.headers", body="body.content")
    data = {
        "method": "patch",
        "path": "/orders/7?x=1",
        "query": {"y": [2, 3]},
        "headers": {"X-A": "b"},
        "content": {"qty": 2},
    }
    with web(says({"ok": True})) as api:
        found = await answer(tmp_path, api.url, block, data)
    assert {"ok": True} == found.body
    assert ("PATCH", "/orders/7", "x=1&y=2&y=3") == (
        api.call.method, api.call.path, api.call.query,
    )  # fmt: skip
    assert ("b", b'{"qty": 2}') == (api.call.headers["x-a"], api.call.raw)


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example/orders/1",
        "HTTPS:/evil.example",
        "//evil.example/orders",
        "\\\\evil.example\\orders",
        "/\\evil.example",
        "/orders/../admin",
        "/orders/%2e%2E/admin",
        "/orders/%252e%252e/admin",
        "/orders/..;v=1/admin",
        "/orders/..%5c..%5cadmin",
        "/orders/..%2fadmin",
        "/orders/%2525252e%2525252e/x",
        "/orders/a\r\nHost: evil",
        "/orders#x",
        "/orders2",
        "/admin",
        "",
        "orders%2Fx/y",
        "@evil.example/orders",
        ".evil.example/orders",
        ":81/orders",
    ],
)
async def test_a_path_out_of_bounds_is_never_sent(tmp_path: Path, path: str) -> None:
    with web(says({})) as api:
        text = await failure(
            tmp_path, api.url, dynamic(pathPrefix="/orders"), {"method": "GET", "path": path}
        )
    assert "the path" in text
    assert [] == api.calls


@pytest.mark.parametrize("path", ["/orders", "orders/1", "/orders/a%2F..b", "/orders/…/x y"])
async def test_a_path_in_bounds_is(tmp_path: Path, path: str) -> None:
    with web(says({})) as api:
        block = dynamic(pathPrefix="/orders")
        await answer(tmp_path, f"{api.url}/v1/", block, {"method": "GET", "path": path})
    assert api.call.path.startswith("/v1/orders")


async def test_no_path_leaves_the_base(tmp_path: Path) -> None:
    for path in ("@evil.example/x", ".evil.example", ":81/x", "///x"[2:]):
        with web(says({})) as api:
            await answer(tmp_path, f"{api.url}/v1", dynamic(), {"method": "GET", "path": path})
        assert api.call.path.startswith("/v1/")


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "GET\r\n", "", "get post", "DELETE"])
async def test_a_method_that_is_not_allowed_is_never_sent(tmp_path: Path, method: str) -> None:
    block = dynamic(allowMethods=["HEAD", "POST"])
    with web(says({})) as api:
        text = await failure(tmp_path, api.url, block, {"method": method, "path": "/x"})
    assert "is refused; one of HEAD, POST" in text
    assert [] == api.calls


@pytest.mark.parametrize("name", ["Authorization", "authorization", "Proxy-Authorization"])
async def test_data_cannot_say_who_asks(tmp_path: Path, name: str) -> None:
    block = dynamic(headers="body.headers")
    data = {"method": "GET", "path": "/x", "headers": {name: "Bearer stolen-token-123"}}
    with web(says({})) as api:
        text = await failure(tmp_path, api.url, block, data)
    assert f"the header {name!r} is refused" in text
    assert "stolen" not in text
    assert [] == api.calls


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"method": "GET", "path": 7}, "path must be a text"),
        ({"method": "GET", "path": "/", "query": "a=1"}, "query must be a map, found str"),
        ({"method": "GET", "path": "/", "query": None, "headers": {"Host": "x"}}, "by the client"),
    ],
)
async def test_data_of_the_wrong_shape_is_refused(
    tmp_path: Path, data: dict[str, Any], told: str
) -> None:
    block = dynamic(query="body.query", headers="has(body.headers) ? body.headers : {}")
    if "query" not in data:
        block = dynamic()
    with web(says({})) as api:
        assert told in await failure(tmp_path, api.url, block, data)
    assert [] == api.calls


async def test_a_redirect_cannot_lead_out_of_the_prefix(tmp_path: Path) -> None:
    block = dynamic(pathPrefix="/orders")
    with web(says(None, 302, location="/v1/admin")) as api:
        text = await failure(
            tmp_path, f"{api.url}/v1", block, {"method": "GET", "path": "/orders/1"}
        )
    assert "a redirect (302) that is not followed, to '/v1/admin'" in text
    assert 1 == len(api.calls)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"pathPrefix": "/a/../b"}, "has a `..` segment"),
        ({"pathPrefix": "/a?b"}, "a prefix has no query"),
        ({"allowMethods": ["TRACE"]}, "allowMethods"),
    ],
)
def test_bounds_that_cannot_work_are_load_errors(
    tmp_path: Path, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, document("http://x", dynamic(**settings)))
    (fault,) = caught.value.faults
    assert told in str(fault)
