"""Calls of Slack's Web API: their order, their limits, their failures."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from flowrt.connectors.slack.client import SlackClient, SlackFailure
from flowrt.connectors.slack.progress import Progress
from flowrt.testing import FakeSlackAPI, Gate
from flowrt.testing.slack_api import TOKEN
from flowrt.testing.suite.clock import CaseClock
from tests.storage.hands import HandClock


class Hands(HandClock):
    """Notes what it is asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await super().sleep(seconds)


async def test_what_slack_asks_to_wait_is_waited_for_each_channel(tmp_path: Path) -> None:
    clock = Hands()
    with FakeSlackAPI() as slack:
        client = SlackClient("team", TOKEN, slack.base_url, 10)
        for seconds in ("30", "7"):
            slack.add("chat.postMessage", status=429, headers={"retry-after": seconds})
        first = [
            asyncio.ensure_future(
                client.call("chat.postMessage", {"channel": "C1", "text": f"{number}"}, clock)
            )
            for number in range(3)
        ]
        await asyncio.gather(*first)
        assert [30.0, 7.0] == clock.waits
        await client.call("chat.postMessage", {"channel": "C2", "text": "other"}, clock)
        await client.close()
    assert ["0", "1", "2", "other"] == [post.text for post in slack.posts]
    assert [30.0, 7.0] == clock.waits


async def test_another_channel_does_not_wait(tmp_path: Path) -> None:
    gate = Gate()
    with FakeSlackAPI() as slack:
        client = SlackClient("team", TOKEN, slack.base_url, 10)
        slack.add("chat.postMessage", hold=gate)
        held = asyncio.ensure_future(
            client.call("chat.postMessage", {"channel": "C1", "text": "held"}, Hands())
        )
        await gate.reached()
        await client.call("chat.postMessage", {"channel": "C2", "text": "goes on"}, Hands())
        assert not held.done()
        gate.open()
        await held
        await client.close()


async def test_patience_has_an_end() -> None:
    clock = Hands()
    with FakeSlackAPI() as slack:
        client = SlackClient("team", TOKEN, slack.base_url, 10)
        for _ in range(5):
            slack.add("chat.postMessage", status=429, headers={"retry-after": "50"})
        with pytest.raises(SlackFailure, match="asks to wait 50s more") as caught:
            await client.call("chat.postMessage", {"channel": "C1", "text": "x"}, clock)
        await client.close()
    assert ("ratelimited", [50.0, 50.0]) == (caught.value.code, clock.waits)


async def test_an_answer_that_does_not_come_is_not_asked_for_again() -> None:
    gate = Gate()
    with FakeSlackAPI() as slack:
        client = SlackClient("team", TOKEN, slack.base_url, 0.05)
        slack.add("chat.postMessage", hold=gate)
        with pytest.raises(SlackFailure, match="did not answer within") as caught:
            await client.call("chat.postMessage", {"channel": "C1", "text": "x"}, Hands())
        await client.close()
    assert ("timeout", 1) == (caught.value.code, len(slack.calls))


async def test_a_slack_that_is_not_there_and_one_that_speaks_no_json() -> None:
    client = SlackClient("team", TOKEN, "http://127.0.0.1:9/", 10)
    with pytest.raises(SlackFailure, match="was not reached"):
        await client.call("auth.test", {}, Hands())
    await client.close()
    with FakeSlackAPI() as slack:
        client = SlackClient("team", TOKEN, slack.base_url, 10)
        slack.add("auth.test", status=500)
        with pytest.raises(SlackFailure, match="'fatal_error'"):
            await client.call("auth.test", {}, Hands())
        await client.close()


async def test_the_newest_text_is_shown_once_a_second_and_nothing_after_the_answer() -> None:
    clock = CaseClock()
    tasks = []

    def spawn(work, what):  # type: ignore[no-untyped-def]
        task = asyncio.create_task(work)
        tasks.append(task)
        return task

    with FakeSlackAPI() as slack:
        client = SlackClient("team", TOKEN, slack.base_url, 10)
        progress = Progress(client)
        places = []
        for _ in range(2):
            posted = await client.call("chat.postMessage", {"channel": "C1", "text": "…"}, clock)
            places.append(posted["ts"])
        one, other = places

        def show(ts: str, text: str) -> None:
            progress.show("C1", ts, lambda: text, clock, spawn)

        gates = [Gate() for _ in range(3)]
        for gate in gates:
            slack.add("chat.update", hold=gate)
        show(one, "a")
        await gates[0].reached()
        for text in "bcd":
            show(one, text)
        show(other, "x")
        gates[0].open()
        assert ["…", "a"] == slack.post(one).texts
        for gate in gates[1:]:
            while not gate._reached.done():
                clock.advance(1.0)
                await asyncio.sleep(0)
            gate.open()
        show(one, "late")
        await progress.finish("C1", one)
        clock.advance(1.0)
        await asyncio.wait(tasks)
        await client.close()
    assert ["…", "a", "d"] == slack.post(one).texts
    assert ["…", "x"] == slack.post(other).texts
    assert 1 == len(tasks)


async def test_an_answer_waits_for_the_edit_under_way() -> None:
    clock = CaseClock()
    gate = Gate()
    with FakeSlackAPI() as slack:
        client = SlackClient("team", TOKEN, slack.base_url, 10)
        progress = Progress(client)
        ts = (await client.call("chat.postMessage", {"channel": "C1", "text": "…"}, clock))["ts"]
        slack.add("chat.update", hold=gate)
        tasks = []
        progress.show(
            "C1",
            ts,
            lambda: "grows",
            clock,
            lambda work, _: tasks.append(asyncio.create_task(work)),
        )
        await gate.reached()
        finishing = asyncio.ensure_future(progress.finish("C1", ts))
        await asyncio.sleep(0)
        assert not finishing.done()
        gate.open()
        await finishing
        clock.advance(1.0)
        await asyncio.wait(tasks)
        await client.close()


async def test_an_edit_that_fails_is_no_matter_of_the_run() -> None:
    clock = CaseClock()
    with FakeSlackAPI() as slack:
        client = SlackClient("team", TOKEN, slack.base_url, 10)
        progress = Progress(client)
        tasks: list[asyncio.Task[None]] = []

        def spawn(work, what):  # type: ignore[no-untyped-def]
            tasks.append(asyncio.create_task(work))

        progress.show("C1", "9.9", lambda: "x", clock, spawn)
        while not slack.refused:
            await asyncio.sleep(0)
        clock.advance(1.0)
        await asyncio.wait(tasks)
        await client.close()
    assert ["chat.update: message_not_found"] == slack.refused
    assert tasks[0].exception() is None


def test_what_grows_begins_anew_in_another_turn_and_is_not_kept_for_ever() -> None:
    progress = Progress(SlackClient("team", TOKEN, "http://127.0.0.1:9/", 10))
    assert "a" == progress.grow("C1", "1", 1, "a")
    assert "ab" == progress.grow("C1", "1", 1, "b")
    assert "c" == progress.grow("C1", "1", 2, "c")
    for number in range(5000):
        progress.grow("C1", f"x{number}", 1, "a")
    assert len(progress.written) <= 1000
