"""Connections of Socket Mode that are replaced, break, fall silent, or cannot be had."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from flowrt.clock import SystemClock
from flowrt.connectors.slack.client import SlackFailure
from flowrt.connectors.slack.socket_connection import QUIET, dial
from flowrt.observe.log import get_logger
from flowrt.testing import FakeSlackAPI, Gate
from flowrt.testing.slack_api import OPEN_SOCKET
from flowrt.testing.suite.clock import CaseClock
from tests.services import load
from tests.slack.socket_app import Hasty, connected, socket_bot


async def until(condition: Callable[[], object]) -> None:
    """Wait for what other threads and connections bring about."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0)


@pytest.mark.parametrize("reason", ["warning", "refresh_requested", "link_disabled"])
async def test_a_connection_that_slack_ends_is_left_after_its_successor_is_there(
    tmp_path: Path, slack: FakeSlackAPI, reason: str
) -> None:
    clock = CaseClock()
    async with connected(tmp_path, slack=slack, clock=clock) as app:
        old = await app.sockets.opened()
        old.disconnect(reason)
        old.disconnect(reason)
        new = await app.sockets.opened(2)
        assert old.is_open
        assert await old.send(app.events.direct("over the old")).settled()
        assert await new.send(app.events.direct("over the new")).settled()
        for _ in range(2):
            await new.ping()
            clock.advance(QUIET)
        await old.ended()
        assert [new] == app.sockets.open
        assert 2 == len(app.sockets.all)
        await app.settle()
    assert ["over the old", "over the new"] == app.texts


async def test_while_the_successor_cannot_be_had_the_old_connection_works(
    tmp_path: Path, slack: FakeSlackAPI, capsys: pytest.CaptureFixture[str]
) -> None:
    async with connected(tmp_path, slack=slack, clock=Hasty()) as app:
        old = await app.sockets.opened()
        for _ in range(5):
            slack.add(OPEN_SOCKET, error="internal_error")
        slack.add(OPEN_SOCKET, error="internal_error", hold=(gate := Gate()))
        old.disconnect()
        await gate.reached()
        assert await old.send(app.events.direct("hi")).settled()
        gate.open()
        await app.sockets.opened(2)
        await app.settle()
    assert ["hi"] == app.texts
    assert "slack is away" not in capsys.readouterr().err


async def test_connections_are_replaced_under_load_and_nothing_is_lost_or_answered_twice(
    tmp_path: Path, slack: FakeSlackAPI
) -> None:
    async with connected(tmp_path, slack=slack, clock=Hasty(), flow={"buffer": 1000}) as app:
        await app.sockets.opened()
        events = [app.events.direct(f"{number}", channel=f"D{number}") for number in range(300)]
        sending = [asyncio.create_task(app.sockets.deliver(event)) for event in events]
        for count in range(2, 12):
            old = app.sockets.open[-1]
            old.disconnect("warning")
            await app.sockets.opened(count)
            sending += [asyncio.create_task(app.sockets.deliver(event)) for event in events[::7]]
            old.close()
        await asyncio.gather(*sending)
        await until(lambda: len(app.texts) >= len(events))
        await app.settle()
    assert sorted(f"{number}" for number in range(300)) == sorted(app.texts)


async def test_a_connection_is_killed_fifty_times_and_each_post_is_answered_once(
    tmp_path: Path, slack: FakeSlackAPI, capsys: pytest.CaptureFixture[str]
) -> None:
    async with connected(tmp_path, slack=slack, clock=Hasty(), flow={"buffer": 1000}) as app:
        sending = []
        for count in range(1, 51):
            socket = await app.sockets.opened(count)
            sending += [
                asyncio.create_task(app.sockets.deliver(app.events.direct(f"{count}.{number}")))
                for number in range(3)
            ]
            await until(lambda socket=socket: socket.sent)
            socket.drop()
        await app.sockets.opened(51)
        await asyncio.gather(*sending)
        await app.settle()
        assert 1 == len(app.sockets.open)
    expected = [f"{count}.{number}" for count in range(1, 51) for number in range(3)]
    assert sorted(expected) == sorted(app.texts)
    told = capsys.readouterr().err
    assert (50, 50) == (told.count("slack is away"), told.count("slack is back"))
    assert "Traceback" not in told


async def test_a_connection_that_falls_silent_is_replaced(
    tmp_path: Path, slack: FakeSlackAPI, capsys: pytest.CaptureFixture[str]
) -> None:
    async with connected(tmp_path, slack=slack, clock=(clock := CaseClock())) as app:
        old = await app.sockets.opened()
        await old.ping()
        old.freeze()
        for _ in range(2):
            assert 1 == len(app.sockets.all)
            clock.advance(QUIET)
            await clock.settle()
        new = await app.sockets.opened(2)
        assert await new.send(app.events.direct("hi")).settled()
        await app.settle()
    assert ["hi"] == app.texts
    assert "a ping had no answer within 15s" in capsys.readouterr().err


async def test_a_connection_on_which_nothing_happens_stays(
    tmp_path: Path, slack: FakeSlackAPI
) -> None:
    async with connected(tmp_path, slack=slack, clock=(clock := CaseClock())) as app:
        socket = await app.sockets.opened()
        for _ in range(10):
            # Its pong comes after that of the connection's own ping.
            await socket.ping()
            clock.advance(QUIET)
            await clock.settle()
        assert [socket] == app.sockets.all
        assert socket.is_open


async def test_where_slack_is_away_at_the_start_the_service_is_not_ready_until_it_is_back(
    tmp_path: Path, slack: FakeSlackAPI, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = CaseClock()
    slack.add("auth.test", status=503)
    slack.add(OPEN_SOCKET, error="internal_error")
    slack.add(OPEN_SOCKET, status=503)
    async with connected(tmp_path, slack=slack, clock=clock) as app:
        assert "flow 'bot' has no connection to Slack yet" == app.service.not_ready()
        while not app.sockets.all:
            clock.advance(1)
            await asyncio.sleep(0)
        socket = await app.sockets.opened()
        assert await socket.send(app.events.direct("hi")).settled()
        assert "" == app.service.not_ready()
        await app.settle()
        socket.drop()
        await app.sockets.opened(2)
        assert "" == app.service.not_ready()
    assert ["hi"] == app.texts
    told = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert 2 == sum("slack is away" in line for line in told)


async def test_an_outage_is_one_line_when_it_begins_and_one_when_it_ends(
    tmp_path: Path, slack: FakeSlackAPI, capsys: pytest.CaptureFixture[str]
) -> None:
    async with connected(tmp_path, slack=slack, clock=Hasty()) as app:
        socket = await app.sockets.opened()
        for number in range(20):
            slack.add(OPEN_SOCKET, error="internal_error" if number % 2 else "token_revoked")
        socket.drop()
        new = await app.sockets.opened(2)
        assert await new.send(app.events.direct("hi")).settled()
        await app.settle()
    assert ["hi"] == app.texts
    assert 22 == len(slack.called(OPEN_SOCKET))
    told = capsys.readouterr().err
    assert (1, 1) == (told.count("slack is away"), told.count("slack is back"))


async def test_attempts_become_rarer_and_a_good_connection_begins_anew(
    tmp_path: Path, slack: FakeSlackAPI
) -> None:
    slept: list[float] = []

    class Noting(Hasty):
        async def sleep(self, seconds: float) -> None:
            slept.append(seconds)
            await super().sleep(seconds)

    for _ in range(9):
        slack.add(OPEN_SOCKET, status=503)
    async with connected(tmp_path, slack=slack, clock=Noting()) as app:
        await app.sockets.opened()
    pauses = [seconds for seconds in slept if seconds != QUIET][:9]
    assert 0 == pauses[0]
    for pause, longest in zip(pauses[1:], [1, 2, 4, 8, 16, 30, 30, 30], strict=True):
        assert longest / 2 <= pause <= longest


async def test_an_eleventh_connection_waits_until_there_is_room(
    tmp_path: Path, slack: FakeSlackAPI, capsys: pytest.CaptureFixture[str]
) -> None:
    async with aiohttp.ClientSession() as session:
        others = [await session.ws_connect(await url(session, slack)) for _ in range(10)]
        await slack.sockets.opened(10)
        async with connected(tmp_path, slack=slack, clock=Hasty()) as app:
            assert "no connection to Slack" in app.service.not_ready()
            await others[0].close()
            socket = await slack.sockets.opened(11)
            assert await socket.send(app.events.direct("hi")).settled()
            await app.settle()
        for other in others:
            await other.close()
    assert ["hi"] == app.texts
    assert "too_many_websockets" in capsys.readouterr().err


async def test_an_address_that_is_refused_is_not_told(slack: FakeSlackAPI) -> None:
    log = get_logger("test")
    async with aiohttp.ClientSession() as session:
        address = await url(session, slack)
        connection = await dial(address, "team", SystemClock(), log)
        with pytest.raises(SlackFailure, match=r"connector 'team': .* with status 400") as caught:
            await dial(address, "team", SystemClock(), log)
        await connection.close()
    assert "ticket" not in str(caught.value)


@pytest.mark.parametrize("address", ["None", "http://127.0.0.1/", "ws://127.0.0.1:9/?ticket=1"])
async def test_an_address_that_leads_nowhere_is_a_failure_that_may_pass(address: str) -> None:
    with pytest.raises(SlackFailure, match="was not reached") as caught:
        await dial(address, "team", SystemClock(), get_logger("test"))
    assert caught.value.passing
    assert "ticket" not in str(caught.value)


async def test_an_outage_may_last_for_days(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attempts = 0

    class Counting(Hasty):
        async def sleep(self, seconds: float) -> None:
            nonlocal attempts
            attempts += 1
            await super().sleep(seconds)

    with FakeSlackAPI() as slack:
        document = socket_bot(slack.base_url)
    service = load(tmp_path, document, clock=Counting())
    await service.start(sources=True)
    await until(lambda: attempts > 1100)
    await service.stop()
    told = capsys.readouterr().err
    assert (1, 0) == (told.count("slack is away"), told.count("has ended"))


async def url(session: aiohttp.ClientSession, slack: FakeSlackAPI) -> str:
    headers = {"authorization": f"Bearer {slack.app_token}"}
    async with session.post(slack.base_url + OPEN_SOCKET, headers=headers) as answer:
        address: str = (await answer.json())["url"]
        return address


async def test_a_service_that_stops_says_goodbye_and_stays_away(
    tmp_path: Path, slack: FakeSlackAPI
) -> None:
    async with connected(tmp_path, slack=slack) as app:
        socket = await app.sockets.opened()
    await socket.ended()
    assert [socket] == app.sockets.all


async def test_a_service_can_be_stopped_while_slack_is_away(tmp_path: Path) -> None:
    with FakeSlackAPI() as slack:
        document = socket_bot(slack.base_url)
    service = load(tmp_path, document)
    await service.start(sources=True)
    assert "no connection to Slack" in service.not_ready()
    await service.stop()
