"""Who asks: bearer, basic, and tokens that are fetched, kept and renewed."""

from __future__ import annotations

import asyncio
import base64
from typing import Any
from urllib.parse import parse_qsl

import pytest

from flowrt.testing.loopback import Answer, Call
from flowrt.testing.replies import Gate
from tests.connectors.http_client.sending import sender
from tests.http_server import Web, says, web


def oauth2(api: Web, **more: Any) -> dict[str, Any]:
    return {
        "type": "oauth2", "tokenURL": f"{api.url}/token", "clientID": "me&you",
        "clientSecret": "s3cr3t-value", **more,
    }  # fmt: skip


def token(value: str, expires: Any = 3600, **more: Any) -> Answer:
    return says({"access_token": value, "token_type": "Bearer", "expires_in": expires, **more})


class Authority:
    """Gives out `token-1`, `token-2`, …; `good` is the only one that is not answered with 401."""

    def __init__(self) -> None:
        self.given = 0
        self.good = ""
        self.expires: Any = 3600
        self.gate: Gate | None = None

    def __call__(self, call: Call) -> Answer:
        if call.path == "/token":
            self.given += 1
            self.good = f"token-{self.given}"
            answer = token(self.good, self.expires)
            answer.hold = self.gate
            return answer
        good = call.headers.get("authorization") == f"Bearer {self.good}"
        return says({"sent": call.headers.get("authorization")}, 200 if good else 401)


async def test_bearer_and_basic() -> None:
    with web(says({})) as api:
        async with sender(api.url, auth={"type": "bearer", "token": "abc"}) as client:
            await client.get()
        basic = {"type": "basic", "username": "Jörg", "password": "p:w"}
        async with sender(api.url, auth=basic) as client:
            await client.get()
    sent = [call.headers["authorization"] for call in api.calls]
    assert "Bearer abc" == sent[0]
    assert "Jörg:p:w" == base64.b64decode(sent[1].removeprefix("Basic ")).decode()


async def test_a_request_may_bring_its_own_credentials() -> None:
    authority = Authority()
    with web(authority) as api:
        async with sender(api.url, auth=oauth2(api)) as client:
            assert 401 == (await client.get(headers={"authorization": "Bearer mine"})).status
    assert 0 == authority.given


async def test_a_token_is_fetched_once_and_kept() -> None:
    authority = Authority()
    with web(authority) as api:
        async with sender(api.url, auth=oauth2(api, scopes=["a", "b"])) as client:
            for _ in range(3):
                assert 200 == (await client.get()).status
    assert ["/token", "/x", "/x", "/x"] == [call.path for call in api.calls]
    asked = api.calls[0]
    assert {"grant_type": "client_credentials", "scope": "a b"} == dict(
        parse_qsl(asked.raw.decode())
    )
    basic = base64.b64decode(asked.headers["authorization"].removeprefix("Basic ")).decode()
    assert "me%26you:s3cr3t-value" == basic


async def test_those_who_come_while_it_is_fetched_wait_for_it() -> None:
    authority = Authority()
    authority.gate = Gate()
    with web(authority) as api:
        async with sender(api.url, auth=oauth2(api)) as client:
            tasks = [asyncio.create_task(client.get()) for _ in range(20)]
            await authority.gate.reached()
            tasks[0].cancel()
            authority.gate.open()
            results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert {200} == {answer.status for answer in results[1:]}  # type: ignore[union-attr]
    assert 2 >= authority.given


@pytest.mark.parametrize(
    ("expires", "good_for"), [(3600, 3570), ("3600", 3570), (40, 20), (None, 10**6), (0, 10**6)]
)
async def test_a_token_is_renewed_before_it_ends(expires: Any, good_for: int) -> None:
    authority = Authority()
    authority.expires = expires
    with web(authority) as api:
        async with sender(api.url, auth=oauth2(api)) as client:
            await client.get()
            client.clock.advance(good_for - 1)
            await client.get()
            assert 1 == authority.given
            client.clock.advance(2)
            await client.get()
            assert (1 if good_for == 10**6 else 2) == authority.given


async def test_a_token_that_is_refused_is_fetched_once_more() -> None:
    authority = Authority()
    with web(authority) as api:
        async with sender(api.url, auth=oauth2(api)) as client:
            await client.get()
            authority.good = "another"
            assert 200 == (await client.get(method="POST", content=b"x")).status
            assert 2 == authority.given
    assert [b"x", b"x"] == [call.raw for call in api.calls if call.method == "POST"
                            and call.path == "/x"]  # fmt: skip


async def test_a_server_that_refuses_every_token_is_asked_twice() -> None:
    def refuse(call: Call) -> Answer:
        return token("t") if call.path == "/token" else says({}, 401)

    with web(refuse) as api:
        async with sender(api.url, auth=oauth2(api)) as client:
            assert 401 == (await client.get()).status
    assert ["/token", "/x"] * 2 == [call.path for call in api.calls]


async def test_a_server_may_want_the_client_in_the_form() -> None:
    def give(call: Call) -> Answer:
        if call.path == "/x":
            return says({})
        form = dict(parse_qsl(call.raw.decode()))
        good = form.get("client_secret") == "s3cr3t-value"
        return token("t") if good else says({"error": "invalid_client"}, 401)

    with web(give) as api:
        async with sender(api.url, auth=oauth2(api)) as client:
            assert 200 == (await client.get()).status


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            says({"error": "invalid_client", "got": "s3cr3t-value"}, 401),
            "answered 401 Unauthorized",
        ),
        (says({}, 503), "answered 503 Service Unavailable"),
        (says("<html>", kind="text/html"), "something that is not JSON"),
        (says({}), "without an access_token"),
        (says({"access_token": "a\r\nb"}), "without an access_token"),
        (token("t", token_type="mac"), "a token of the type 'mac'"),
        (token("t", "soon"), "an expires_in that is no number"),
        (says(None, 302, location="http://127.0.0.1:9/"), "answered 302 Found"),
    ],
)
async def test_where_no_token_is_given_out_the_request_fails(answer: Answer, told: str) -> None:
    with web(answer) as api:
        async with sender(api.url, auth=oauth2(api)) as client:
            text = await client.failure()
    assert told in text
    assert "(for GET /x)" in text
    assert "s3cr3t" not in text


async def test_a_secret_that_the_server_repeats_is_not_in_the_error() -> None:
    def repeat(call: Call) -> Answer:
        if call.path == "/token":
            return token("t0k3n-value")
        return says(f"you sent {call.headers['authorization']}", 500, kind="text/plain")

    with web(repeat) as api:
        basic = {"type": "basic", "username": "u", "password": "pw-of-u"}
        for auth in ({"type": "bearer", "token": "t0k3n-value"}, basic, oauth2(api)):
            async with sender(api.url, auth=auth) as client:
                answer = await client.get()
                told = client.client.masked(answer.said)
            assert "500 Internal Server Error: you sent" in told
            assert "t0k3n" not in told
            assert base64.b64encode(b"u:pw-of-u").decode() not in told
