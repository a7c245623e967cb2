"""`flowrt run` that is told to end while it is in the middle of something."""

from __future__ import annotations

import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from flowrt.testing import FakeMessagesAPI
from flowrt.testing.replies import FakeReply, Gate
from tests.blocks.chains import payload
from tests.cli.running import PATIENCE, Running, get, write
from tests.http_server import says, web
from tests.redis_server import RedisServer
from tests.services import agent
from tests.slack.app import bot
from tests.sources.serving import document, flow, listening
from tests.sources.web import route

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

CUT_OFF = "background work was cut off"
CALL = {"type": "rest", "connector": "outside", "method": "POST", "path": "/", "body": "body"}
KEEP = {"type": "object-write", "settings": {"key": '"k"', "value": "body"}}
KEPT = route(
    "/kept", {"type": "object-read", "settings": {"key": '"k"', "default": "null"}}, name="kept"
)


def outside(url: str) -> dict[str, Any]:
    """The connector of `CALL`."""
    return {"name": "outside", "type": "http-client", "settings": {"baseURL": url}}


def events(running: Running) -> list[str]:
    """What the log told."""
    return [line["event"] for line in running.lines]


def post(url: str, body: Any) -> httpx2.Response:
    """One request on a connection of its own."""
    return httpx2.post(url, json=body, timeout=PATIENCE)


def watched(api: FakeMessagesAPI) -> dict[str, Any]:
    """An agent whose turn is streamed."""
    event = {"type": "sse-event", "event": "text", "data": "body.text", "ifClosed": "ignore"}
    content = agent(api.base_url, stream=True, emit=["text"], events={"process": [event]})
    settings = {"path": "/chat", "sse": {"enabled": True, "finalEvent": True}}
    content["flows"][0]["source"] = {"type": "http", "settings": settings}
    return content


@pytest.mark.parametrize("grace", ["30s", "100ms"])
def test_a_stream_is_written_to_its_end_within_the_grace_and_cut_off_after_it(
    tmp_path: Path, grace: str
) -> None:
    gate = Gate()
    reply = FakeReply(text="one two three", hold=gate, hold_after=4)
    with FakeMessagesAPI([reply]) as api, ThreadPoolExecutor(1) as pool:
        write(tmp_path, watched(api))
        with Running(tmp_path, "--grace", grace) as running:
            url, _ = running.serving()
            body = {"thread": "t", "message": "hi"}
            stream = pool.submit(post, f"{url}/chat", body)
            gate.wait()
            running.signal()
            if grace == "30s":
                running.until("stopping")
                gate.open()
            assert 0 == running.ended()
            told = stream.result()
        gate.open()
    assert 200 == told.status_code
    assert "event: text" in told.text
    cut = grace == "100ms"
    assert (cut, not cut) == ("event: error" in told.text, "event: result" in told.text)
    assert cut == (CUT_OFF in events(running))


def test_a_job_of_a_queue_that_runs_is_finished(tmp_path: Path) -> None:
    gate = Gate()
    with web(says("done", hold=gate)) as api:
        send = {"type": "queue-dispatch", "subject": '"jobs"'}
        job = flow("job", CALL, KEEP, source=listening("queue", "jobs"))
        content = document(route("/", send), job, KEPT)
        write(tmp_path, content | {"connectors": [outside(api.url)]})
        with Running(tmp_path) as running:
            url, _ = running.serving()
            assert 200 == post(url, "work").status_code
            gate.wait()
            running.signal()
            running.until("stopping")
            gate.open()
            assert 0 == running.ended()
        assert CUT_OFF not in events(running)
        with Running(tmp_path) as again:
            url, _ = again.serving()
            assert "done" == get(f"{url}/kept").json()


def test_an_agent_in_a_tool_call_is_finished(tmp_path: Path) -> None:
    gate = Gate()
    replies = [FakeReply(tool_calls=[{"name": "ask", "input": {}}]), "Found."]
    with FakeMessagesAPI(replies) as model, web(says("42", hold=gate)) as api:
        tool = {"name": "ask", "description": "Asks.", "process": [CALL]}
        content = agent(model.base_url, tools=[tool])
        content["connectors"].append(outside(api.url))
        content["flows"][0]["source"] = {"type": "http", "settings": {"path": "/chat"}}
        write(tmp_path, content)
        with ThreadPoolExecutor(1) as pool, Running(tmp_path) as running:
            url, _ = running.serving()
            turn = pool.submit(post, f"{url}/chat", {"thread": "t", "message": "hi"})
            gate.wait()
            running.signal()
            running.until("stopping")
            gate.open()
            assert 0 == running.ended()
            assert (200, "Found.") == (turn.result().status_code, turn.result().json())


def test_every_part_of_a_split_is_finished(tmp_path: Path) -> None:
    gate = Gate()
    with web(says("done", hold=gate)) as api:
        split = {"type": "split", "items": "body"}
        write(tmp_path, document(route("/", split, CALL)) | {"connectors": [outside(api.url)]})
        with Running(tmp_path) as running:
            url, _ = running.serving()
            assert 200 == post(url, [*range(20)]).status_code
            gate.wait()
            running.signal()
            running.until("stopping")
            gate.open()
            assert 0 == running.ended()
        assert [*range(20)] == sorted(int(call.raw) for call in api.calls)
    assert CUT_OFF not in events(running)


def test_ctrl_c_twice_ends_at_once_and_in_order(tmp_path: Path) -> None:
    gate = Gate()
    with web(says("done", hold=gate)) as api, ThreadPoolExecutor(1) as pool:
        write(tmp_path, document(route("/", CALL)) | {"connectors": [outside(api.url)]})
        with Running(tmp_path, "--grace", "1h") as running:
            url, _ = running.serving()
            turn = pool.submit(post, url, 1)
            gate.wait()
            running.signal(signal.SIGINT)
            running.until("stopping")
            running.signal(signal.SIGINT)
            assert 0 == running.ended()
            assert 503 == turn.result().status_code
        gate.open()
    told = events(running)
    for event in ("no new work from now on", "a second signal", CUT_OFF, "stopped"):
        assert any(each.startswith(event) for each in told), told


def test_a_signal_ends_a_start_that_waits_for_a_redis(tmp_path: Path) -> None:
    folder = tmp_path / "redis"
    folder.mkdir()
    redis = RedisServer(folder)
    redis.start()
    content = document(
        route("/", payload("body")),
        flow("job", payload("body"), source=listening("queue", "jobs")),
        flow("heard", payload("body"), source=listening("events", "news")),
    )
    write(tmp_path, content)
    redis.signal(signal.SIGSTOP)
    try:
        with Running(tmp_path, "--storage", redis.url) as running:
            running.until("listening")
            running.signal()
            assert 0 == running.ended()
    finally:
        redis.signal(signal.SIGCONT)
        redis.stop()
    assert "stopped" == running.lines[-1]["event"]
    assert not [line for line in running.lines if "Traceback" in line["event"]]


def test_a_signal_ends_a_start_that_waits_for_somebody_else(tmp_path: Path) -> None:
    gate = Gate()
    with web(says({}, hold=gate)) as slack:
        write(tmp_path, bot(f"{slack.url}/api/", payload("body")))
        with Running(tmp_path, "--storage", "memory:") as running:
            gate.wait(PATIENCE)
            running.signal()
            assert 0 == running.ended()
        gate.open()
    assert ["stopped before it had started", "stopping", "stopped"] == events(running)[-3:]
