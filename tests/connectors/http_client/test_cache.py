"""Answers to GET that are used again."""

from __future__ import annotations

from typing import Any

from tests.connectors.http_client.sending import Sender, sender
from tests.http_server import says, web


def cached(url: str, **cache: Any) -> Any:
    return sender(url, cache={"enabled": True, **cache})


async def bodies(client: Sender, *paths: str) -> list[bytes]:
    return [(await client.get(path)).content for path in paths]


async def test_an_answer_is_used_until_its_time_is_over() -> None:
    with web(says(1), says(2)) as api:
        async with cached(api.url, ttl="10s") as client:
            assert [b"1", b"1"] == await bodies(client, "/a", "/a")
            client.clock.advance(9.9)
            assert [b"1"] == await bodies(client, "/a")
            client.clock.advance(0.1)
            assert [b"2"] == await bodies(client, "/a")
    assert 2 == len(api.calls)


async def test_a_ttl_of_0_is_for_ever() -> None:
    with web(says(1)) as api:
        async with cached(api.url, ttl=0) as client:
            await bodies(client, "/a")
            client.clock.advance(10**9)
            await bodies(client, "/a")
    assert 1 == len(api.calls)


async def test_nothing_is_kept_unless_it_is_asked_for() -> None:
    with web(says(1)) as api:
        async with sender(api.url) as client:
            await bodies(client, "/a", "/a")
    assert 2 == len(api.calls)


async def test_query_headers_and_credentials_tell_answers_apart() -> None:
    with web(says(1)) as api:
        async with cached(api.url) as client:
            for more in (
                {},
                {"query": [("q", "1")]},
                {"query": [("q", "2")]},
                {"headers": {"Accept-Language": "de"}},
                {"headers": {"Authorization": "Bearer alice"}},
                {"headers": {"Authorization": "Bearer bob"}},
            ):
                await client.get(**more)
                await client.get(**more)
            await client.get(headers={"accept-language": "de"})
    assert 6 == len(api.calls)


async def test_only_get_and_only_success_are_kept() -> None:
    with web(says(1, 404), says(2, 500), says(3)) as api:
        async with cached(api.url) as client:
            assert [b"1", b"2", b"3", b"3"] == await bodies(client, "/a", "/a", "/a", "/a")
            for _ in range(2):
                await client.get("/a", method="POST")
                await client.get("/a", method="HEAD")
                await client.get("/a", content=b"x")
    assert 3 + 6 == len(api.calls)


async def test_the_longest_unused_answer_goes_first() -> None:
    with web(lambda call: says(call.path)) as api:
        async with cached(api.url, maxEntries=2) as client:
            await bodies(client, "/a", "/b", "/a", "/c", "/a", "/b")
    assert ["/a", "/b", "/c", "/b"] == [call.path for call in api.calls]


async def test_a_close_forgets_them() -> None:
    with web(says(1)) as api:
        async with cached(api.url) as client:
            await client.get()
            await client.client.close()
            await client.get()
    assert 2 == len(api.calls)
