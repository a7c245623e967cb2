"""`flowrt invoke`: exit codes, what is printed where, and input from anywhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowrt.testing import FakeMessagesAPI
from flowrt.testing.replies import FakeReply, Gate
from tests.cli.conftest import Flowrt, command, environment
from tests.services import agent, flows, say

Write = Callable[[dict[str, Any]], Path]

ECHO = flows(main=[{"type": "set-payload", "value": '{"got": body}'}])
FAILING = flows(main=[{"type": "set-payload", "value": "body.missing"}])
DROPPING = flows(main=[{"type": "filter", "expr": "false"}])


def test_the_result_alone_is_on_standard_output(flowrt: Flowrt, service_file: Write) -> None:
    service_file(ECHO)
    done = flowrt("invoke", "--config", "service.yaml", "--data", '{"n": 1, "é": "ü"}')
    assert (0, '{"got": {"n": 1, "é": "ü"}}\n', "") == (done.returncode, done.stdout, done.stderr)


def test_the_whole_message_is_printed_where_asked(flowrt: Flowrt, service_file: Write) -> None:
    service_file(ECHO)
    done = flowrt("invoke", "--config", "service.yaml", "--message", "--vars", '{"a": 1}')
    printed = json.loads(done.stdout)
    assert {"a": 1} == printed["variables"]
    assert 32 == len(printed["event_id"])


def test_a_dropped_message_prints_nothing_and_is_no_failure(
    flowrt: Flowrt, service_file: Write
) -> None:
    service_file(DROPPING)
    done = flowrt("invoke", "--config", "service.yaml")
    assert (0, "", "the message was dropped\n") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("document", "arguments", "code", "text"),
    [
        (FAILING, ["--data", "{}"], 1, "no such key: missing"),
        (ECHO, ["--flow", "mian"], 2, "did you mean 'main'"),
        (ECHO, ["--data", "{x}"], 2, "--data is not valid JSON"),
        (ECHO, ["--data", "NaN"], 2, "NaN is not JSON"),
        (ECHO, ["--data", "@nowhere.json"], 2, "cannot read 'nowhere.json'"),
        (ECHO, ["--vars", "[1]"], 2, "--vars must be a JSON object"),
        (ECHO, ["--timeout", "soon"], 2, "expected a duration"),
        (ECHO, ["--storage", "mysql://h"], 2, "memory:"),
        (flows(main=[{"type": "nope"}]), [], 2, "service.yaml:"),
    ],
)
def test_what_is_wrong_decides_the_exit_code(
    flowrt: Flowrt,
    service_file: Write,
    document: dict[str, Any],
    arguments: list[str],
    code: int,
    text: str,
) -> None:
    """FB-100."""
    service_file(document)
    done = flowrt("invoke", "--config", "service.yaml", *arguments)
    assert (code, "") == (done.returncode, done.stdout)
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_a_wrong_call(flowrt: Flowrt) -> None:
    done = flowrt("invoke", "--config", "nowhere.yaml")
    assert 2 == done.returncode
    assert "nowhere.yaml" in done.stderr


def test_debug_shows_where_it_came_from(flowrt: Flowrt) -> None:
    done = flowrt("invoke", "--config", "nowhere.yaml", "--debug")
    assert 2 == done.returncode
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["--data", "-"], b'{"n": 1}'),
        ([], b'{"n": 1}'),
        (["--data", "-"], b'\xef\xbb\xbf{"n": 1}\r\n'),
        (["--data", "@data.json"], b""),
    ],
)
def test_the_body_may_come_from_a_file_or_a_pipe(
    flowrt: Flowrt, service_file: Write, tmp_path: Path, arguments: list[str], stdin: bytes
) -> None:
    service_file(ECHO)
    (tmp_path / "data.json").write_bytes(b'\xef\xbb\xbf{"n":\r\n1}')
    done = flowrt("invoke", "--config", "service.yaml", *arguments, stdin=stdin)
    assert {"got": {"n": 1}} == json.loads(done.stdout)


def test_utf16_is_refused_by_name(flowrt: Flowrt, service_file: Write) -> None:
    service_file(ECHO)
    utf16 = '{"n": 1}'.encode("utf-16")
    done = flowrt("invoke", "--config", "service.yaml", "--data", "-", stdin=utf16)
    assert 2 == done.returncode
    assert "UTF-16" in done.stderr


def test_text_is_utf8_whatever_the_locale_says(flowrt: Flowrt, service_file: Write) -> None:
    service_file(ECHO)
    done = flowrt(
        "invoke", "--config", "service.yaml", "--data", '"é😀"', LC_ALL="C", PYTHONUTF8="0"
    )
    assert '{"got": "é😀"}\n' == done.stdout


def test_a_pipe_that_is_closed_early_is_no_error(service_file: Write, tmp_path: Path) -> None:
    service_file(flows(main=[{"type": "set-payload", "value": "body"}]))
    process = subprocess.Popen(
        command("invoke", "--config", "service.yaml", "--data", "-"),
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, stderr = process.communicate(json.dumps("x" * 200_000).encode(), timeout=60)
    assert (0, b"") == (process.returncode, stderr)


def test_two_processes_are_one_conversation(
    flowrt: Flowrt, service_file: Write, tmp_path: Path
) -> None:
    with FakeMessagesAPI(["Hello Sam.", "Sam."]) as api:
        service_file(agent(api.base_url))
        for text in ("My name is Sam.", "What is my name?"):
            done = flowrt(
                "invoke", "--config", "service.yaml", "--flow", "chat",
                "--data", json.dumps(say(text)),
            )  # fmt: skip
    assert '"Sam."\n' == done.stdout
    database = tmp_path / ".flowrt" / "state.db"
    assert 0o600 == database.stat().st_mode & 0o777
    assert 0o700 == database.parent.stat().st_mode & 0o777


def test_storage_memory_leaves_nothing_behind(
    flowrt: Flowrt, service_file: Write, tmp_path: Path
) -> None:
    with FakeMessagesAPI(["One."]) as api:
        service_file(agent(api.base_url))
        flowrt("invoke", "--config", "service.yaml", "--flow", "chat", "--storage", "memory:",
               "--data", json.dumps(say("hi")))  # fmt: skip
    assert [tmp_path / "service.yaml"] == list(tmp_path.iterdir())


def test_events_and_traces_are_json_lines_of_their_owner(
    flowrt: Flowrt, service_file: Write, tmp_path: Path
) -> None:
    with FakeMessagesAPI(["One."]) as api:
        service_file(agent(api.base_url))
        flowrt("invoke", "--config", "service.yaml", "--flow", "chat", "--events", "e.jsonl",
               "--traces", "t.jsonl", "--data", json.dumps(say("hi")))  # fmt: skip
    events = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()]
    traces = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert ["turn_start", "turn_end", "done"] == [event["type"] for event in events]
    assert "llm.turn" in {record["kind"] for record in traces}
    assert 0o600 == (tmp_path / "t.jsonl").stat().st_mode & 0o777


def test_a_run_that_takes_too_long_fails_with_the_limit(
    flowrt: Flowrt, service_file: Write
) -> None:
    with FakeMessagesAPI([FakeReply(text="late", hold=Gate())]) as api:
        service_file(agent(api.base_url))
        done = flowrt("invoke", "--config", "service.yaml", "--flow", "chat", "--timeout", "1500ms",
                      "--data", json.dumps(say("hi")))  # fmt: skip
    assert 1 == done.returncode
    assert "longer than --timeout 1.5s" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT to send on Windows")
def test_an_interrupt_is_one_line_and_leaves_a_usable_thread(
    flowrt: Flowrt, service_file: Write, tmp_path: Path
) -> None:
    """FB-103."""
    gate = Gate()
    with FakeMessagesAPI([FakeReply(text="never", hold=gate), "Fine."]) as api:
        service_file(agent(api.base_url))
        arguments = ["invoke", "--config", "service.yaml", "--flow", "chat", "--data"]
        process = subprocess.Popen(
            command(*arguments, json.dumps(say("hi"))),
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        gate.wait(30)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
        assert (130, "", "interrupted\n") == (process.returncode, stdout, stderr)
        gate.open()
        done = flowrt(*arguments, json.dumps(say("again")))
    assert (0, '"Fine."\n') == (done.returncode, done.stdout)


def test_secrets_of_the_environment_stay_out_of_errors(flowrt: Flowrt, service_file: Write) -> None:
    document = FAILING | {"env": [{"name": "API_TOKEN", "required": True}]}
    document["flows"] = [
        {"name": "main", "process": [{"type": "set-payload", "value": "body[env.API_TOKEN]"}]}
    ]
    service_file(document)
    done = flowrt(
        "invoke", "--config", "service.yaml", "--data", "{}", API_TOKEN="very-secret-value"
    )
    assert 1 == done.returncode
    assert "very-secret-value" not in done.stderr
    assert "[redacted]" in done.stderr


@pytest.mark.parametrize("numbers", ['{"n": 10, "price": 10.0}', '{"n": 10.0, "price": 10}'])
def test_numbers_from_standard_input_compare_as_on_a_number_line(
    numbers: str, flowrt: Flowrt, service_file: Write
) -> None:
    """FB-85."""
    told = "[body.n < 4.0, 4.0 > body.n, body.n == 10, 10.0 == body.n, body.price == 10]"
    service_file(flows(main=[{"type": "set-payload", "value": told}]))
    done = flowrt("invoke", "--config", "service.yaml", "--data", "-", stdin=numbers.encode())
    assert [False, False, True, True, True] == json.loads(done.stdout)
