"""`http-client` against servers that are late, full, broken, or lead elsewhere."""

from __future__ import annotations

import asyncio
import gzip
import socket
from pathlib import Path

import pytest

from flowrt.observe.log import capture_logs
from flowrt.testing.replies import Gate
from tests.connectors.http_client.sending import sender
from tests.http_server import says, web


async def test_headers_of_a_request_go_before_those_of_the_connector() -> None:
    with web(says({})) as api:
        async with sender(api.url, headers={"X-A": "connector", "X-B": "b"}) as client:
            await client.get(headers={"x-a": "request"})
    sent = api.call.headers
    assert ("request", "b", "flowrt") == (sent["x-a"], sent["x-b"], sent["user-agent"])


async def test_429_is_tried_again_when_the_server_says() -> None:
    lines: list[dict[str, object]] = []
    capture_logs(lines.append)
    answers = (says({}, 429, retry_after="7"), says({}, 429), says({"ok": True}))
    with web(*answers) as api:
        async with sender(api.url) as client:
            answer = await client.get()
            waited = client.clock.monotonic()
    assert (200, 3) == (answer.status, len(api.calls))
    assert 7 + 0.75 <= waited <= 7 + 1.0
    assert ["a request was answered with 429 and is sent again"] * 2 == [x["event"] for x in lines]
    assert ("GET /x", 1, 7.0) == (lines[0]["request"], lines[0]["attempt"], lines[0]["wait"])


async def test_a_date_may_say_when() -> None:
    with web(
        says({}, 429, retry_after="Thu, 01 Jan 2026 00:00:20 GMT"), says({})
    ) as api:  # the clock of the test begins at midnight
        async with sender(api.url) as client:
            await client.get()
            assert 20 == client.clock.monotonic()


@pytest.mark.parametrize("attempts", [1, 4])
async def test_429_is_the_answer_once_all_attempts_are_made(attempts: int) -> None:
    with web(says({"slow": "down"}, 429)) as api:
        async with sender(api.url, retry={"maxAttempts": attempts}) as client:
            assert 429 == (await client.get()).status
    assert attempts == len(api.calls)


async def test_a_server_that_asks_for_an_hour_is_not_waited_for() -> None:
    with web(says({}, 429, retry_after="3600")) as api:
        async with sender(api.url, retry={"maxBackoff": "30s"}) as client:
            assert 429 == (await client.get()).status
            assert 0 == client.clock.monotonic()
    assert 1 == len(api.calls)


@pytest.mark.parametrize("status", [408, 500, 503])
async def test_nothing_but_429_is_sent_again(status: int) -> None:
    with web(says({}, status, retry_after="1")) as api:
        async with sender(api.url) as client:
            assert status == (await client.get(method="POST", content=b"pay")).status
    assert 1 == len(api.calls)


async def test_a_late_answer_fails_and_is_not_waited_for_any_longer() -> None:
    gate = Gate()
    with web(lambda call: says({}, hold=gate if call.path == "/late" else None)) as api:
        async with sender(api.url, timeout="300ms") as client:
            await client.get()
            text = await client.failure("/late")
            await api.calls[1].abandoned()
        gate.open()
    assert "connector 'api': GET /late had no answer within 0.3s" == text


async def test_a_cancelled_request_is_let_go_of() -> None:
    gate = Gate()
    with web(says({}, hold=gate)) as api:
        async with sender(api.url) as client:
            task = asyncio.create_task(client.get())
            await gate.reached()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await api.call.abandoned()
        gate.open()


async def test_a_broken_connection_is_a_failure() -> None:
    with web(says({}, disconnect=0)) as api:
        async with sender(api.url) as client:
            text = await client.failure()
    assert text.startswith("connector 'api': GET /x had no answer: ")


async def test_a_server_that_is_not_there_is_named_by_what_the_system_says() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with sender(f"http://127.0.0.1:{unused.getsockname()[1]}") as client:
            text = await client.failure()
    assert "connector 'api': GET /x had no answer: All connection attempts failed" in text
    assert "refused" in text or "Connect call failed" in text


@pytest.mark.parametrize("size", [1000, 1001, 2_000_000])
async def test_an_answer_has_a_size(size: int) -> None:
    with web(says(b"x" * size, kind="text/plain")) as api:
        async with sender(api.url, maxResponseBytes=1000) as client:
            if size <= 1000:
                assert size == len((await client.get()).content)
            else:
                text = "was answered with more than 1000 bytes (maxResponseBytes)"
                assert text in await client.failure()


async def test_what_is_compressed_counts_as_it_unfolds() -> None:
    bomb = gzip.compress(b"\0" * 5_000_000)
    with web(says(bomb, kind="text/plain", content_encoding="gzip")) as api:
        async with sender(api.url, maxResponseBytes=100_000) as client:
            assert "more than 100000 bytes" in await client.failure()


async def test_redirects_within_the_origin_are_followed() -> None:
    moved = says(None, 303, location="/v2/x?y=1")
    with web(moved, says(None, 307, location="z"), says({"ok": 1})) as api:
        async with sender(api.url, auth={"type": "bearer", "token": "t"}) as client:
            await client.get(method="POST", content=b"data")
    assert [("POST", "/x"), ("GET", "/v2/x"), ("GET", "/v2/z")] == [
        (call.method, call.path) for call in api.calls
    ]
    assert {"Bearer t"} == {call.headers["authorization"] for call in api.calls}


async def test_redirects_to_another_origin_are_not() -> None:
    with web(says({"secret": 1})) as other:
        for place in (f"{other.url}/y?key=abc", other.url.replace("127.0.0.1", "localhost")):
            with web(says(None, 302, location=place)) as api:
                async with sender(api.url, auth={"type": "bearer", "token": "t"}) as client:
                    text = await client.failure()
            assert "a redirect (302) that is not followed, to http://" in text
            assert "abc" not in text
    assert [] == other.calls


async def test_a_circle_of_redirects_ends() -> None:
    with web(says(None, 302, location="/x")) as api:
        async with sender(api.url) as client:
            assert "was redirected more than 5 times" in await client.failure()
    assert 6 == len(api.calls)


async def test_cookies_of_one_request_are_not_in_the_next() -> None:
    with web(says({}, set_cookie="session=alice; Path=/")) as api:
        async with sender(api.url) as client:
            await client.get()
            await client.get()
    assert "cookie" not in api.calls[1].headers


@pytest.mark.parametrize("kept", [True, False])
async def test_connections_are_kept_unless_the_pool_says_otherwise(kept: bool) -> None:
    with web(says({})) as api:
        async with sender(api.url, pool={"disableKeepAlives": not kept}) as client:
            for _ in range(3):
                await client.get()
    assert (1 if kept else 3) == len({call.port for call in api.calls})


async def test_a_hundred_at_once_share_a_client() -> None:
    with web(lambda call: says({"path": call.path})) as api:
        async with sender(api.url, pool={"maxIdleConns": 4}) as client:
            answers = await asyncio.gather(*(client.get(f"/{n}") for n in range(100)))
    assert {f'{{"path": "/{n}"}}'.encode() for n in range(100)} == {x.content for x in answers}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_private_addresses_can_be_denied(host: str) -> None:
    with web(says({})) as api:
        url = api.url.replace("127.0.0.1", host)
        async with sender(url, denyPrivate=True) as client:
            assert "which is private, and denyPrivate is set" in await client.failure()
        async with sender(url) as client:
            assert 200 == (await client.get()).status
    assert 1 == len(api.calls)


async def test_it_works_in_another_event_loop_after_a_close(tmp_path: Path) -> None:
    with web(says({})) as api:
        async with sender(api.url) as client:
            await client.get()
            await client.client.close()
            await asyncio.to_thread(asyncio.run, _one(client.get, client.client.close))
    assert 2 == len(api.calls)


async def _one(get, close) -> None:  # type: ignore[no-untyped-def]
    await get()
    await close()
