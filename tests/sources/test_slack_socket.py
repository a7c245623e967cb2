"""The source `slack` in Socket Mode: what is taken and acknowledged, and what cannot work."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError, ConnectorError
from flowrt.testing import FakeSlackAPI
from tests.services import load
from tests.slack.app import ECHO, bot
from tests.slack.socket_app import connected, socket_bot
from tests.sources.gate import GATE, Gate
from tests.sources.web import HERE

SILENT = {"type": "event_callback", "event": {"type": "reaction_added", "user": "U1"}}
"""An event that starts nothing, and is acknowledged after all that were sent before it."""


async def test_an_event_is_acknowledged_before_the_flow_has_ended(
    tmp_path: Path, slack: FakeSlackAPI
) -> None:
    Gate.opened = asyncio.Event()
    async with connected(tmp_path, GATE, *ECHO, slack=slack) as app:
        socket = await app.sockets.opened()
        assert await socket.send(app.events.mention("hi")).settled()
        assert [] == app.texts
        Gate.opened.set()
        await app.settle()
    assert ["hi"] == app.texts


async def test_what_comes_twice_is_acknowledged_twice_and_answered_once(
    tmp_path: Path, slack: FakeSlackAPI
) -> None:
    async with connected(tmp_path, slack=slack) as app:
        socket = await app.sockets.opened()
        mention = app.events.mention("hi", ts="1.1")
        message = app.events.message("<@UBOT> hi", ts="1.1")
        sent = [
            socket.send(mention, id_="one"),
            socket.send(message),
            socket.send(mention, id_="again"),
            socket.send(mention, id_="late", retry=1),
        ]
        assert all([await each.settled() for each in sent])
        await app.settle()
    assert ["hi"] == app.texts


async def test_a_retry_whose_first_delivery_never_came_is_answered(
    tmp_path: Path, slack: FakeSlackAPI
) -> None:
    async with connected(tmp_path, slack=slack) as app:
        socket = await app.sockets.opened()
        assert await socket.send(app.events.direct("hi"), retry=2).settled()
        await app.settle()
    assert ["hi"] == app.texts


async def test_the_posts_of_a_connection_are_taken_in_order(
    tmp_path: Path, slack: FakeSlackAPI
) -> None:
    async with connected(tmp_path, slack=slack, flow={"workers": 1}) as app:
        socket = await app.sockets.opened()
        # Sent at once: the second is wanted only because the first has opened the thread.
        socket.send(app.events.mention("0", ts="1.0"))
        for number in range(1, 20):
            socket.send(app.events.message(f"{number}", ts=f"1.{number}", thread_ts="1.0"))
        assert await socket.send(SILENT).settled()
        await app.settle()
    assert [f"{number}" for number in range(20)] == app.texts


async def test_where_there_is_no_room_slack_is_to_send_it_again(
    tmp_path: Path, slack: FakeSlackAPI, capsys: pytest.CaptureFixture[str]
) -> None:
    Gate.opened = asyncio.Event()
    flow = {"workers": 1, "buffer": 1}
    async with connected(tmp_path, GATE, *ECHO, slack=slack, flow=flow) as app:
        socket = await app.sockets.opened()
        events = [app.events.direct(f"{number}", channel=f"D{number}") for number in range(3)]
        for event in events[:2]:
            assert await socket.send(event).settled()
        third = socket.send(events[2])
        assert await socket.send(SILENT).settled()
        assert 0 == third.acks
        Gate.opened.set()
        await app.settle()
        assert await socket.send(events[2], retry=1).settled()
        await app.settle()
    assert ["0", "1", "2"] == app.texts
    assert "posts were sent back: the flow is full" in capsys.readouterr().err


async def test_where_the_store_is_away_slack_is_to_send_it_again(
    tmp_path: Path, slack: FakeSlackAPI
) -> None:
    (tmp_path / "file").write_text("no folder")
    storage = f"sqlite:{tmp_path}/file/state.db"
    async with connected(tmp_path, slack=slack, storage=storage) as app:
        socket = await app.sockets.opened()
        envelope = socket.send(app.events.direct("hi"))
        assert await socket.send(SILENT).settled()
        await app.settle()
        assert 0 == envelope.acks
    assert [] == app.texts


async def test_commands_and_clicks_are_acknowledged_and_told_of_once(
    tmp_path: Path, slack: FakeSlackAPI, capsys: pytest.CaptureFixture[str]
) -> None:
    async with connected(tmp_path, slack=slack) as app:
        socket = await app.sockets.opened()
        for type_ in ("slash_commands", "interactive", "slash_commands", "interactive"):
            assert await socket.send({"command": "/x"}, type_=type_).settled()
    told = capsys.readouterr().err
    assert 2 == told.count("what no flow takes")
    assert 1 == told.count('"slash_commands"')


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"a": NaN}', "[" * 100_000, "{}", '{"envelope_id": 7}']
)
async def test_a_message_that_is_no_envelope_costs_nothing_but_a_line(
    tmp_path: Path, slack: FakeSlackAPI, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with connected(tmp_path, slack=slack) as app:
        socket = await app.sockets.opened()
        socket.say(text)
        assert await socket.send(app.events.direct("hi")).settled()
        await app.settle()
        assert [socket] == app.sockets.open
    assert ["hi"] == app.texts
    assert 1 == capsys.readouterr().err.count("a message without an envelope")


@pytest.mark.parametrize("payload", [[], None, {"event": 7}, {"event": {"type": "message"}}])
async def test_an_event_that_is_none_is_acknowledged_and_starts_nothing(
    tmp_path: Path, slack: FakeSlackAPI, payload: Any
) -> None:
    async with connected(tmp_path, slack=slack) as app:
        socket = await app.sockets.opened()
        assert await socket.send(payload).settled()
        await app.settle()
    assert [] == app.texts


async def test_two_replicas_on_one_redis_answer_each_post_once(
    tmp_path: Path, slack: FakeSlackAPI, redis_url: str
) -> None:
    async with (
        connected(tmp_path / "a", slack=slack, storage=redis_url) as app,
        connected(tmp_path / "b", slack=slack, storage=redis_url),
    ):
        one, other = await app.sockets.opened(1), await app.sockets.opened(2)
        events = [app.events.direct(f"{number}") for number in range(40)]
        sent = [socket.send(event) for event in events for socket in (one, other, one)]
        assert all(await asyncio.gather(*(each.settled() for each in sent)))
        for socket in (one, other):
            assert await socket.send(SILENT).settled()
        async with asyncio.timeout(60):
            while len(app.texts) < len(events):
                await asyncio.sleep(0)
    assert sorted(f"{number}" for number in range(40)) == sorted(app.texts)


async def test_a_flow_that_fails_is_not_answered_again(
    tmp_path: Path, slack: FakeSlackAPI, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = {"type": "set-payload", "value": "body.nothing.there"}
    async with connected(tmp_path, chain, slack=slack) as app:
        socket = await app.sockets.opened()
        for _ in range(2):
            assert await socket.send(app.events.direct("hi", ts="1.1")).settled()
            await app.settle()
    assert 1 == capsys.readouterr().err.count("a slack post failed")


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        ({"app_token": "xapp-another"}, r"apps\.connections\.open said 'invalid_auth'; `appToken`"),
        ({"token": "xoxb-another"}, r"auth\.test said 'invalid_auth'"),
    ],
)
async def test_the_service_does_not_start_with_a_token_that_slack_refuses(
    tmp_path: Path, tokens: dict[str, str], told: str
) -> None:
    with FakeSlackAPI(**tokens) as slack:
        service = load(tmp_path, socket_bot(slack.base_url))
        with pytest.raises(ConnectorError, match=told) as caught:
            await service.start(sources=True)
        await service.stop()
    assert "xapp-" not in str(caught.value)


async def test_it_can_be_started_again(tmp_path: Path, slack: FakeSlackAPI) -> None:
    service = load(tmp_path, socket_bot(slack.base_url))
    async with connected(tmp_path, slack=slack) as app:
        for number in (2, 3):
            await service.start(sources=True)
            socket = await slack.sockets.opened(number)
            assert await socket.send(app.events.direct(f"{number}")).settled()
            await service.stop()
            await socket.ended()
    assert ["2", "3"] == app.texts
    assert [] == slack.sockets.open


def refusal(folder: Path, document: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, document, environ=HERE)
    return str(caught.value)


def test_what_cannot_work_is_refused_at_load_with_its_place(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/"
    assert load(tmp_path, socket_bot(url)).flows
    for name, value in (("path", "/slack/events"), ("http", "api")):
        text = refusal(tmp_path, socket_bot(url, **{name: value}))
        assert f".source.settings.{name}: `{name}` is of `mode: events`" in text
        assert "service.yaml:" in text
    without = socket_bot(url)
    del without["connectors"][0]["settings"]["appToken"]
    text = refusal(tmp_path, without)
    assert ".source.settings.mode: Socket Mode needs an app-level token" in text
    mistaken = socket_bot(url)
    mistaken["connectors"][0]["settings"]["appToken"] = "xoxb-not-this-one"
    text = refusal(tmp_path, mistaken)
    assert "connectors.team.settings.appToken: expected an app-level token" in text
    assert "not-this-one" not in text
    two = socket_bot(url)
    two["flows"].append(two["flows"][0] | {"name": "other"})
    assert "flow 'bot' has the events of connector 'team' already" in refusal(tmp_path, two)
    unsigned = bot(url)
    del unsigned["connectors"][0]["settings"]["signingSecret"]
    assert "or the source `mode: socket`" in refusal(tmp_path, unsigned)


def test_a_service_in_socket_mode_has_no_http_server(tmp_path: Path) -> None:
    assert {} == load(tmp_path, socket_bot("http://127.0.0.1:9/")).streams
