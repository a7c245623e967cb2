"""What is typed reaches whoever asks at that moment, and nothing is lost in between."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from flowrt.agent.live import LiveRun, LiveRuns
from flowrt.cli.keyboard import GateKeeper, Keyboard


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Where a test types: the other end of standard input."""
    read, write = os.pipe()
    with os.fdopen(read) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield write
        os.close(write)


def asked(authorization: str, tool: str = "pay") -> dict[str, object]:
    return {"tool": tool, "input": {}, "authorizationId": authorization}


async def test_a_line_that_nobody_waits_for_any_more_goes_to_the_next(typing: int) -> None:
    keyboard = Keyboard()
    first = asyncio.create_task(keyboard.line("allow? "))
    await asyncio.sleep(0)
    first.cancel()
    second = asyncio.create_task(keyboard.line("> "))
    await asyncio.sleep(0)
    os.write(typing, b"hello\nagain\n")
    assert "hello" == await second
    assert "again" == await keyboard.line("> ")


async def test_questions_are_asked_one_after_the_other(typing: int) -> None:
    runs, live = LiveRuns(), LiveRun("chat.a", "t")
    runs.add(live)
    keeper = GateKeeper(Keyboard(), runs)
    with live.decisions.expect() as (one, first), live.decisions.expect() as (two, second):
        keeper.ask(asked(one))
        keeper.ask(asked(two))
        os.write(typing, b"Y\n")
        assert await first
        assert not second.done()
        os.write(typing, b"maybe\n")
        assert not await second
    await keeper.close()


async def test_a_question_that_is_over_allows_nothing(typing: int) -> None:
    runs, live = LiveRuns(), LiveRun("chat.a", "t")
    runs.add(live)
    keyboard = Keyboard()
    keeper = GateKeeper(keyboard, runs)
    with live.decisions.expect() as (one, answer):
        keeper.ask(asked(one))
        await asyncio.sleep(0)
        await keeper.close()
        os.write(typing, b"y\n")
        assert "y" == await keyboard.line("> ")
        assert not answer.done()
