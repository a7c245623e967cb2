"""`flowrt run` with a bot in Socket Mode: ready once it is connected, and an orderly end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from flowrt.testing import FakeSlackAPI, Gate, SlackEvents
from flowrt.testing.slack_api import OPEN_SOCKET
from tests.cli.running import Running, get, write
from tests.slack.socket_app import socket_bot

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


async def test_it_is_ready_once_it_is_connected_and_says_goodbye(tmp_path: Path) -> None:
    gate = Gate()
    with FakeSlackAPI() as slack:
        slack.add(OPEN_SOCKET, status=503)
        slack.add(OPEN_SOCKET, hold=gate)
        write(tmp_path, socket_bot(slack.base_url))
        with Running(tmp_path, "--storage", "memory:") as running:
            _, admin = running.serving()
            waiting = get(f"{admin}/readyz")
            assert (503, "flow 'bot' has no connection to Slack yet\n") == (
                waiting.status_code,
                waiting.text,
            )
            gate.open()
            running.until("slack is back")
            assert "ready\n" == get(f"{admin}/readyz").text
            socket = await slack.sockets.opened()
            assert await socket.send(SlackEvents().direct("hi")).settled()
            running.signal()
            assert 0 == running.ended()
            await socket.ended()
    assert ["hi"] == [post.text for post in slack.posts]
    assert "stopped" == running.lines[-1]["event"]


def test_a_token_that_slack_refuses_ends_the_start(tmp_path: Path) -> None:
    with FakeSlackAPI(app_token="xapp-another") as slack:
        write(tmp_path, socket_bot(slack.base_url))
        with Running(tmp_path, "--storage", "memory:") as running:
            assert 0 != running.ended()
    told = "".join(line["event"] for line in running.lines)
    assert "`appToken`" in told
    assert "Traceback" not in told
