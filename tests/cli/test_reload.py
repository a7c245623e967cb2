"""`flowrt run --watch`: what clients notice of a reload, which is nothing."""

from __future__ import annotations

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
from tests.cli.running import PATIENCE, Running, get, write
from tests.services import agent
from tests.sources.serving import document
from tests.sources.web import route

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

WATCH = ["--watch", "--storage", "memory:"]


class Asking:
    """Clients that ask again as soon as they are answered, and what they were told."""

    def __init__(self, url: str, pool: ThreadPoolExecutor) -> None:
        self.told: list[Any] = []
        self._url = url
        self._enough = threading.Event()
        self._asking = [pool.submit(self._ask, keep_alive) for keep_alive in (True, True, False)]

    def _ask(self, keep_alive: bool) -> None:
        with httpx2.Client(timeout=PATIENCE) as client:
            while not self._enough.is_set():
                answer = client.get(self._url) if keep_alive else get(self._url)
                assert 200 == answer.status_code, answer.text
                self.told.append(answer.json())

    def end(self) -> None:
        """Stop asking. Raises what any of them ran into."""
        self._enough.set()
        for asking in self._asking:
            asking.result()


def test_twenty_reloads_refuse_no_connection_and_fail_no_request(tmp_path: Path) -> None:
    write(tmp_path, document(route("/", payload("0"))))
    with ThreadPoolExecutor(3) as pool, Running(tmp_path, *WATCH) as running:
        url, admin = running.serving()
        asking = Asking(url, pool)
        try:
            for number in range(1, 21):
                write(tmp_path, document(route("/", payload(str(number)))))
                running.until("reloaded")
                assert number == get(url).json()
                assert 200 == get(f"{admin}/readyz").status_code
        finally:
            asking.end()
        running.signal()
        assert 0 == running.ended()
    assert set(range(21)) >= set(asking.told)
    assert not [line for line in running.lines if line.get("level") in ("warning", "error")]


def test_a_turn_that_runs_is_finished_by_the_service_it_began_in(tmp_path: Path) -> None:
    gate = Gate()
    with FakeMessagesAPI([FakeReply(text="old", hold=gate)]) as api, ThreadPoolExecutor(1) as pool:
        content = agent(api.base_url)
        content["flows"][0]["source"] = {"type": "http", "settings": {"path": "/chat"}}
        write(tmp_path, content)
        with Running(tmp_path, "--watch") as running:
            url, _ = running.serving()
            body = {"thread": "t", "message": "hi"}
            turn = pool.submit(httpx2.post, f"{url}/chat", json=body, timeout=PATIENCE)
            gate.wait()
            content["flows"][0]["process"] = [payload('"new"')]
            write(tmp_path, content)
            running.until("reloaded")
            assert "new" == httpx2.post(f"{url}/chat", json=body, timeout=PATIENCE).json()
            gate.open()
            assert (200, "old") == (turn.result().status_code, turn.result().json())
            running.signal()
            assert 0 == running.ended()


def test_a_body_that_is_still_coming_is_answered_by_the_new_service(tmp_path: Path) -> None:
    """Its endpoint is gone when it is whole."""
    write(tmp_path, document(route("/{old}", payload('"old"'))))
    rest = threading.Event()

    def pieces() -> Any:
        yield b"[1,"
        rest.wait(PATIENCE)
        yield b"2]"

    with ThreadPoolExecutor(1) as pool, Running(tmp_path, *WATCH) as running:
        url, _ = running.serving()
        asked = pool.submit(httpx2.post, f"{url}/x", content=pieces(), timeout=PATIENCE)
        assert "old" == get(f"{url}/x").json()
        write(tmp_path, document(route("/{new}", payload("[body, vars.new, has(vars.old)]"))))
        running.until("reloaded")
        running.until("stopped")
        rest.set()
        assert [[1, 2], "x", False] == asked.result().json()
        running.signal()
        assert 0 == running.ended()


def test_another_host_on_the_same_port_takes_a_restart(tmp_path: Path) -> None:
    def at(host: str, port: int) -> dict[str, Any]:
        settings = {"host": host, "port": port}
        content = document(route("/", payload('"still here"')))
        return content | {"connectors": [{"name": "x", "type": "http", "settings": settings}]}

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    write(tmp_path, at("127.0.0.1", port))
    with Running(tmp_path, *WATCH) as running:
        url, _ = running.serving()
        write(tmp_path, at("0.0.0.0", port))
        told = running.until("the changed service does not start")
        assert "cannot change from 127.0.0.1 to 0.0.0.0" in told["error"]
        assert "still here" == get(url).json()
        running.signal()
        assert 0 == running.ended()
