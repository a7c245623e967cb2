"""`flowrt slack replay`: recorded events for a running bot."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.cli.slack.replay import replay_command
from flowrt.errors import CallError
from flowrt.testing import SlackEvents
from flowrt.testing.slack_events import SIGNING_SECRET
from tests.slack.app import App, running

events = SlackEvents()
RECORDED = [
    events.mention("one", ts="100.000001"),
    events.message("two", ts="101.000001", thread_ts="100.000001"),
    events.direct("mine", user="UBOT"),
]


def written(folder: Path, *entries: Any) -> str:
    path = folder / "events.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in entries), encoding="utf-8")
    return str(path)


async def replay(app: App, file: str, *, fresh: bool = False) -> int:
    url = f"{app.client.base_url}/slack/events".replace("//slack", "/slack")
    code = await asyncio.to_thread(replay_command, file, url, fresh=fresh)
    await app.settle()
    return code


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_SIGNING_SECRET", SIGNING_SECRET)


async def test_events_are_answered_once_and_again_where_they_are_fresh(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, *RECORDED)
    async with running(tmp_path) as app:
        for fresh in (False, False, True):
            assert 0 == await replay(app, file, fresh=fresh)
    assert ["one", "two"] * 2 == app.texts
    threads = [post.thread_ts for post in app.slack.posts]
    assert threads[0] == threads[1] == "100.000001"
    assert threads[2] == threads[3] != "100.000001"
    assert "app_mention C1 100.000001" in capsys.readouterr().out


async def test_a_bot_with_another_secret_refuses_and_the_command_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLACK_SIGNING_SECRET", "another")
    async with running(tmp_path) as app:
        assert 1 == await replay(app, written(tmp_path, RECORDED))
    assert 3 == capsys.readouterr().out.count("401")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{}\n{", "events.jsonl:2: no JSON"),
        ("7", "an event is an object"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_has_no_events_is_a_wrong_call(
    tmp_path: Path, content: str | None, text: str
) -> None:
    path = tmp_path / "events.jsonl"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(CallError, match=text):
        replay_command(str(path), "http://127.0.0.1:9/", fresh=False)


def test_nobody_there_no_url_and_no_secret_are_wrong_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, *RECORDED)
    with pytest.raises(CallError, match="is the bot running"):
        replay_command(file, "http://127.0.0.1:9/", fresh=False)
    with pytest.raises(CallError, match="no http or https URL"):
        replay_command(file, "file:///etc/passwd", fresh=False)
    monkeypatch.delenv("SLACK_SIGNING_SECRET")
    with pytest.raises(CallError, match="is not set"):
        replay_command(file, "http://127.0.0.1:9/", fresh=False)
