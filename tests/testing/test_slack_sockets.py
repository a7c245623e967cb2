"""The fake Slack's Socket Mode: addresses that are good for one, and envelopes that are counted."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from flowrt.testing import FakeSlackAPI, SlackEvents

EVENT = SlackEvents().direct("hi")


async def opened(slack: FakeSlackAPI, token: str = "") -> Any:
    headers = {"authorization": f"Bearer {token or slack.app_token}"}
    async with httpx2.AsyncClient(base_url=slack.base_url, headers=headers) as client:
        return (await client.post("apps.connections.open")).json()


async def dialled(slack: FakeSlackAPI) -> ClientConnection:
    return await connect((await opened(slack))["url"])


async def test_only_the_app_token_opens_a_connection_and_for_nothing_else() -> None:
    with FakeSlackAPI() as slack:
        assert "not_allowed_token_type" == (await opened(slack, slack.token))["error"]
        assert "invalid_auth" == (await opened(slack, "xapp-another"))["error"]
        headers = {"authorization": f"Bearer {slack.app_token}"}
        async with httpx2.AsyncClient(base_url=slack.base_url, headers=headers) as client:
            answer = (await client.post("auth.test")).json()
    assert "not_allowed_token_type" == answer["error"]
    assert 3 == len(slack.refused)


async def test_an_address_is_good_for_one_connection() -> None:
    with FakeSlackAPI() as slack:
        url = (await opened(slack))["url"]
        async with connect(url) as app:
            assert "hello" == json.loads(await app.recv())["type"]
            with pytest.raises(InvalidStatus):
                await connect(url)


async def test_an_envelope_is_settled_by_its_acknowledgement_or_the_end_of_its_connection() -> None:
    with FakeSlackAPI() as slack:
        app = await dialled(slack)
        await app.recv()
        socket = await slack.sockets.opened()
        one, twice, lost = (socket.send(EVENT, id_=id_) for id_ in ("a", "b", "c"))
        said = [json.loads(await app.recv()) for _ in range(3)]
        assert [("events_api", EVENT, 0)] * 3 == [
            (each["type"], each["payload"], each["retry_attempt"]) for each in said
        ]
        for id_ in ("b", "a", "b"):
            await app.send(json.dumps({"envelope_id": id_}))
        assert await one.settled()
        await socket.ping()
        socket.drop()
        assert not await lost.settled()
        assert [1, 2, 0] == [each.acks for each in (one, twice, lost)]
        assert not await socket.send(EVENT).settled()
        assert [] == slack.sockets.open
        with pytest.raises(ConnectionClosed):
            await app.recv()


async def test_what_a_connection_took_to_its_grave_is_delivered_over_the_next() -> None:
    with FakeSlackAPI() as slack:
        first = await dialled(slack)
        await first.recv()
        await slack.sockets.opened()
        delivery = asyncio.create_task(slack.sockets.deliver(EVENT))
        id_ = json.loads(await first.recv())["envelope_id"]
        await first.close()
        second = await dialled(slack)
        await second.recv()
        again = json.loads(await second.recv())
        assert (id_, 1, "timeout") == (
            again["envelope_id"],
            again["retry_attempt"],
            again["retry_reason"],
        )
        await second.send(json.dumps({"envelope_id": id_}))
        assert 1 == (await delivery).acks
        await second.close()
