"""`flowrt run`: serving, the admin port, reloads, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from flowrt.testing import FakeMessagesAPI
from flowrt.testing.replies import FakeReply, Gate
from tests.blocks.chains import payload
from tests.cli.conftest import Flowrt
from tests.cli.running import PATIENCE, Running, get, write
from tests.services import agent
from tests.sources.serving import document, flow
from tests.sources.web import route

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def chat(api: FakeMessagesAPI, **source: Any) -> dict[str, Any]:
    """An agent behind `POST /chat`."""
    content = agent(api.base_url)
    content["flows"][0]["source"] = {"type": "http", "settings": {"path": "/chat", **source}}
    return content


def test_it_serves_and_says_how_it_is(tmp_path: Path) -> None:
    write(tmp_path, document(route("/", payload('"hello"'))))
    with Running(tmp_path, "--storage", "memory:") as running:
        url, admin = running.serving()
        assert "hello" == get(url).json()
        assert (200, "ok\n") == (get(f"{admin}/healthz").status_code, get(f"{admin}/healthz").text)
        assert (200, "ready\n") == (get(f"{admin}/readyz").status_code, get(f"{admin}/readyz").text)
        assert (404, 405) == (
            get(f"{admin}/x").status_code,
            httpx2.post(f"{admin}/healthz").status_code,
        )
        running.signal()
        assert 0 == running.ended()
    assert ["stopping", "stopped"] == [line["event"] for line in running.lines[-2:]]


def test_metrics_count_runs_tokens_and_failures_under_names_of_the_file(tmp_path: Path) -> None:
    with FakeMessagesAPI([{"text": "hello"}] * 3) as api:
        content = chat(api)
        content["flows"].append(route("/broken/{id}", payload("body.missing"), name="broken"))
        write(tmp_path, content)
        with Running(tmp_path, "--storage", "memory:") as running:
            url, admin = running.serving()
            before = get(f"{admin}/metrics")
            for number in range(3):
                body = {"thread": f"t{number}", "message": "hi"}
                assert 200 == httpx2.post(f"{url}/chat", json=body, timeout=PATIENCE).status_code
                assert 500 == get(f"{url}/broken/{number}").status_code
            after = get(f"{admin}/metrics").text
            running.signal()
            assert 0 == running.ended()
    assert before.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'flowrt_runs_total{flow="broken",outcome="failed"} 0.0' in before.text
    for line in (
        'flowrt_runs_total{flow="chat",outcome="completed"} 3.0',
        'flowrt_runs_total{flow="broken",outcome="failed"} 3.0',
        'flowrt_run_seconds_count{flow="chat"} 3.0',
        'flowrt_model_calls_total{connector="claude",outcome="answered"} 3.0',
        "flowrt_waiting{where=\"flow 'chat'\"} 0.0",
    ):
        assert line in after
    assert 'flowrt_model_tokens_total{connector="claude",kind="input"}' in after
    assert len(after.splitlines()) < 150


def test_a_stop_takes_no_new_work_and_lets_the_running_message_end(tmp_path: Path) -> None:
    """The whole of it: an agent in the middle of its turn is answered, and remembers."""
    gate = Gate()
    reply = FakeReply(text="done", hold=gate)
    with FakeMessagesAPI([reply]) as api, ThreadPoolExecutor(1) as pool:
        write(tmp_path, chat(api))
        with Running(tmp_path, "--grace", "30s") as running:
            url, admin = running.serving()
            body = {"thread": "t", "message": "hi"}
            turn = pool.submit(httpx2.post, f"{url}/chat", json=body, timeout=PATIENCE)
            gate.wait()
            running.signal()
            running.until("stopping")
            refused = httpx2.post(f"{url}/chat", json=body, timeout=PATIENCE)
            ready = get(f"{admin}/readyz")
            gate.open()
            assert (200, "done") == (turn.result().status_code, turn.result().json())
            assert 0 == running.ended()
    assert (503, "1") == (refused.status_code, refused.headers["retry-after"])
    assert (503, "stopping\n") == (ready.status_code, ready.text)


def test_what_outlives_the_grace_is_cut_off_and_named(tmp_path: Path) -> None:
    gate = Gate()
    reply = FakeReply(text="done", hold=gate)
    with FakeMessagesAPI([reply]) as api, ThreadPoolExecutor(1) as pool:
        write(tmp_path, chat(api))
        with Running(tmp_path, "--grace", "200ms") as running:
            url, _ = running.serving()
            body = {"thread": "t", "message": "hi"}
            turn = pool.submit(httpx2.post, f"{url}/chat", json=body, timeout=PATIENCE)
            gate.wait()
            running.signal()
            assert 0 == running.ended()
            assert 503 == turn.result().status_code
        gate.open()
    cut = [line for line in running.lines if "background work was cut off" == line["event"]]
    assert 1 == len(cut)
    assert "to chat" in cut[0]["task"]


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once(tmp_path: Path, second: signal.Signals) -> None:
    gate = Gate()
    reply = FakeReply(text="done", hold=gate)
    with FakeMessagesAPI([reply]) as api, ThreadPoolExecutor(1) as pool:
        write(tmp_path, chat(api))
        with Running(tmp_path, "--grace", "1h") as running:
            url, _ = running.serving()
            body = {"thread": "t", "message": "hi"}
            turn = pool.submit(httpx2.post, f"{url}/chat", json=body, timeout=PATIENCE)
            gate.wait()
            running.signal()
            running.until("stopping")
            running.signal(second)
            assert 0 == running.ended()
            assert 503 == turn.result().status_code
        gate.open()


def test_under_load_a_stop_loses_no_request_that_was_taken(tmp_path: Path) -> None:
    store = {
        "type": "object-write",
        "settings": {"key": '"n:" + string(body.n)', "value": "body.n"},
    }
    write(tmp_path, document(route("/", store, payload("body.n")), flow("read", READ)))
    answered: list[int] = []
    with ThreadPoolExecutor(16) as pool, Running(tmp_path) as running:
        url, _ = running.serving()
        numbers = iter(range(10_000))
        enough = threading.Event()

        def ask() -> None:
            while True:
                number = next(numbers)
                try:
                    answer = httpx2.post(url, json={"n": number}, timeout=PATIENCE)
                except httpx2.TransportError:
                    return  # the port is closed
                if answer.status_code != 200:
                    assert 503 == answer.status_code
                    return
                answered.append(answer.json())
                if len(answered) > 50:
                    enough.set()

        asking = [pool.submit(ask) for _ in range(16)]
        assert enough.wait(PATIENCE)
        running.signal()
        assert 0 == running.ended()
        for each in asking:
            each.result()
    assert len(answered) == len(set(answered)) > 50


READ = {"type": "object-read", "settings": {"key": '"n:" + string(body)', "default": "null"}}


def test_a_change_is_served_and_one_that_does_not_load_is_not(tmp_path: Path) -> None:
    write(tmp_path, document(route("/", payload('"first"'))))
    with Running(tmp_path, "--watch", "--storage", "memory:") as running:
        url, _ = running.serving()
        assert "first" == get(url).json()
        write(tmp_path, document(route("/", payload("nonsense"))))
        refused = running.until("the change does not load")
        assert "unknown name 'nonsense'" in refused["faults"][0]
        assert "first" == get(url).json()
        write(tmp_path, document(route("/", payload('"second"'))))
        running.until("reloaded")
        assert "second" == get(url).json()
        running.signal(signal.SIGINT)
        assert 0 == running.ended()


def test_a_change_that_does_not_start_leaves_the_old_service(tmp_path: Path) -> None:
    write(tmp_path, document(route("/", payload('"first"'))))
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        Running(tmp_path, "--watch", "--storage", "memory:") as running,
    ):
        url, _ = running.serving()
        content = document(route("/", payload('"second"')))
        port = taken.getsockname()[1]
        content["connectors"] = [{"name": "x", "type": "http", "settings": {"port": port}}]
        write(tmp_path, content)
        told = running.until("the changed service does not start")
        assert "cannot listen on" in told["error"]
        assert "first" == get(url).json()
        running.signal()
        assert 0 == running.ended()


@pytest.mark.parametrize("which", ["template", "env file", "resource"])
def test_templates_and_env_files_are_watched_too(tmp_path: Path, which: str) -> None:
    (tmp_path / "hello.md").write_text("Hello", encoding="utf-8")
    (tmp_path / "deploy.env").write_text("NAME=a\n", encoding="utf-8")
    (tmp_path / "more.env").write_text("MORE=a\n", encoding="utf-8")
    render = {"type": "template-resource", "id": "hello"}
    content = document(route("/", render, payload("[body, env.NAME, env.MORE]")))
    content["env"] = [{"name": "NAME"}, {"name": "MORE"}]
    content["resources"] = {
        "templates": [{"resource": "hello.md", "as": "hello"}],
        "env": ["more.env"],
    }
    write(tmp_path, content)
    options = ["--watch", "--storage", "memory:", "--env-file", "deploy.env"]
    with Running(tmp_path, *options) as running:
        running.serving()
        name, text = {
            "template": ("hello.md", "Good morning"),
            "env file": ("deploy.env", "NAME=b\n"),
            "resource": ("more.env", "MORE=b\n"),
        }[which]
        (tmp_path / name).write_text(text, encoding="utf-8")
        told = running.until("reloaded")
        assert [name] == [Path(path).name for path in told["changed"]]
        running.signal()
        assert 0 == running.ended()


def test_traces_are_written_as_they_come(tmp_path: Path) -> None:
    write(tmp_path, document(route("/", payload("1"))))
    with Running(tmp_path, "--traces", "traces.jsonl", "--storage", "memory:") as running:
        url, _ = running.serving()
        get(url)
        lines = (tmp_path / "traces.jsonl").read_text(encoding="utf-8").splitlines()
        running.signal()
        assert 0 == running.ended()
    assert ["source.receive", "flow.started"] == [json.loads(line)["kind"] for line in lines[:2]]


def test_a_service_without_sources_says_so(tmp_path: Path) -> None:
    write(tmp_path, document(flow("main")))
    with Running(tmp_path, "--storage", "memory:") as running:
        running.until("no flow has a source")
        running.signal()
        assert 0 == running.ended()


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--config", "nowhere.yaml"], 2, "nowhere.yaml"),
        (["--grace", "soon"], 2, "--grace: expected a duration"),
        (["--admin", "39999"], 2, "--admin: expected HOST:PORT or off"),
        (["--admin", "127.0.0.1:99999"], 2, "--admin"),
        (["--traces", "no/such/folder"], 2, "--traces: cannot write"),
    ],
)
def test_what_cannot_work_ends_before_anything_starts(
    flowrt: Flowrt, tmp_path: Path, options: list[str], code: int, text: str
) -> None:
    write(tmp_path, document(flow("main")))
    done = flowrt("run", "--config", "service.yaml", *options)
    assert code == done.returncode
    assert text in done.stderr


def test_a_port_that_is_taken_is_one_line(flowrt: Flowrt, tmp_path: Path) -> None:
    write(tmp_path, document(route("/")))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = flowrt(
            *("run", "--config", "service.yaml", "--admin", "off", "--storage", "memory:"),
            HTTP_PORT=port,
            HTTP_HOST="127.0.0.1",
        )
    assert 1 == done.returncode
    (line,) = done.stderr.splitlines()
    assert f"cannot listen on 127.0.0.1:{port}" in line
