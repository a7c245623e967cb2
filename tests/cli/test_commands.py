"""The other commands: help, validate, schema, describe, memory, chat."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from flowrt.cli.generate import generated
from flowrt.config.nodes import plain
from flowrt.config.yaml import load_yaml
from flowrt.testing import FakeMessagesAPI
from flowrt.testing.replies import FakeReply, Gate
from tests.cli.conftest import Flowrt, command, environment
from tests.services import agent, flows

Write = Callable[[dict[str, Any]], Path]
ROOT = Path(__file__).parent.parent.parent


def test_help_lists_the_commands_and_the_exit_codes(flowrt: Flowrt) -> None:
    done = flowrt("--help")
    assert 0 == done.returncode
    for word in ("invoke", "chat", "validate", "schema", "describe", "memory", "130 interrupted"):
        assert word in done.stdout.replace("\n ", "")


@pytest.mark.parametrize(
    "heavy", ["anthropic", "redis", "structlog", "yaml", "asyncio", "cel_expr_python"]
)
def test_help_imports_nothing_heavy(heavy: str) -> None:
    code = (
        "import sys\nfrom flowrt.cli.main import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        f"sys.exit({heavy!r} in sys.modules)"
    )
    assert 0 == subprocess.run([sys.executable, "-c", code], capture_output=True).returncode


def test_invoking_without_a_model_imports_no_sdk(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(flows(main=[])), encoding="utf-8")
    code = (
        "import sys\nfrom flowrt.cli.main import app\n"
        f"try: app(['invoke', '--config', {str(path)!r}, '--data', '1'])\n"
        "except SystemExit: pass\n"
        "sys.exit(bool({'anthropic', 'redis', 'structlog'} & set(sys.modules)))"
    )
    assert 0 == subprocess.run([sys.executable, "-c", code], capture_output=True).returncode


def test_validate_says_fine_or_lists_every_fault(flowrt: Flowrt, service_file: Write) -> None:
    service_file(flows(main=[]))
    fine = flowrt("validate", "service.yaml")
    assert (0, "service.yaml: fine, 1 flow\n") == (fine.returncode, fine.stdout)
    service_file(flows(main=[{"type": "lgo"}, {"type": "set-payload"}]))
    wrong = flowrt("validate", "service.yaml")
    assert (2, "", 2) == (wrong.returncode, wrong.stdout, len(wrong.stderr.splitlines()))
    assert wrong.stderr.startswith("service.yaml:")


def test_validate_prints_json_for_editors(flowrt: Flowrt, service_file: Write) -> None:
    service_file(flows(main=[{"type": "lgo"}]))
    done = flowrt("validate", "service.yaml", "--json")
    (fault,) = json.loads(done.stdout)
    assert 2 == done.returncode
    assert ("service.yaml", "flows.main.process[0].type") == (fault["file"], fault["path"])
    assert isinstance(fault["line"], int)


def test_the_schema_takes_the_samples_and_refuses_a_typo(flowrt: Flowrt) -> None:
    schema = json.loads(flowrt("schema").stdout)
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    suites = jsonschema.Draft202012Validator(json.loads(flowrt("schema", "--suite").stdout))
    for sample in (ROOT / "samples").rglob("*.yaml"):
        checks = suites if sample.stem.endswith("_test") else validator
        # Read as an editor does, by YAML 1.2: PyYAML would make a date of a time.
        document = plain(load_yaml(sample.read_bytes(), sample.name))
        assert [] == list(checks.iter_errors(document)), sample
    for wrong in (
        flows(main=[{"type": "set-payload", "vlaue": "1"}]),
        flows(main=[{"type": "nothing"}]),
        flows(main=[{"type": "if", "condition": "true", "then": {"process": [{"type": "x"}]}}]),
        {**flows(main=[]), "conectors": []},
    ):
        assert list(validator.iter_errors(wrong))


def test_every_setting_is_described() -> None:
    schema = json.loads((ROOT / "schemas/service.schema.json").read_text())
    missing = [
        f"{name}.{key}"
        for name, part in schema["$defs"].items()
        for key, field in part.get("properties", {}).items()
        if "description" not in field
    ]
    assert ["subFlow.process"] == missing


def test_the_generated_files_are_up_to_date() -> None:
    stale = [str(p) for p, text in generated().items() if (ROOT / p).read_text() != text]
    assert [] == stale


@pytest.mark.parametrize("type_", ["ai-agent", "set-payload", "llm-anthropic"])
def test_describe_prints_the_page_of_a_type(flowrt: Flowrt, type_: str) -> None:
    done = flowrt("describe", type_)
    assert done.stdout.startswith(f"# {type_}\n")
    assert "```yaml" in done.stdout


def test_describe_names_the_nearest_type(flowrt: Flowrt) -> None:
    done = flowrt("describe", "ai-agnet")
    assert 2 == done.returncode
    assert "did you mean 'ai-agent'" in done.stderr


def test_memory_is_shown_and_cleared(flowrt: Flowrt, service_file: Write) -> None:
    with FakeMessagesAPI(["Hello."]) as api:
        service_file(agent(api.base_url))
        flowrt("invoke", "--config", "service.yaml", "--flow", "chat",
               "--data", '{"thread": "t1", "message": "hi"}')  # fmt: skip
    listed = json.loads(flowrt("memory", "show", "--config", "service.yaml", "--json").stdout)
    assert ["t1"] == [row["thread"] for row in listed]
    shown = flowrt("memory", "show", "--config", "service.yaml", "--thread", "t1").stdout
    assert "user: hi\nassistant: Hello.\n" == shown
    for cleared in (True, False):
        done = flowrt("memory", "clear", "--config", "service.yaml", "--thread", "t1")
        assert {"thread": "t1", "cleared": cleared} == json.loads(done.stdout)


def test_chat_streams_text_and_shows_tools_and_the_gauge(
    flowrt: Flowrt, service_file: Write
) -> None:
    replies = [FakeReply(tool_calls=[{"name": "echo", "input": {"x": 1}}]), "It is one."]
    with FakeMessagesAPI(replies) as api:
        service_file(agent(api.base_url, memoryThreadId="body.threadId"))
        done = flowrt("chat", "--config", "service.yaml", "--flow", "chat", stdin=b"what?\n/quit\n")
    assert 0 == done.returncode
    assert '[echo {"x": 1}]' in done.stdout
    assert "It is one.\n" in done.stdout
    assert "of 200,000 tokens" in done.stdout


@pytest.mark.parametrize(("typed", "paid"), [("y", True), ("yes", True), ("", False), ("n", False)])
def test_chat_asks_whether_a_gated_call_may_run(
    flowrt: Flowrt, service_file: Write, typed: str, paid: bool
) -> None:
    tool = {
        "name": "pay",
        "description": "Pays.",
        "authorize": "true",
        "process": [{"type": "set-payload", "value": '"paid"'}],
    }
    settings = {
        "memoryThreadId": "body.threadId",
        "authorizeId": "null",
        "authorizeAllow": "false",
        "events": {"process": []},
        "tools": [tool],
    }
    replies = [FakeReply(tool_calls=[{"name": "pay", "input": {"x": 1}}]), "So be it."]
    with FakeMessagesAPI(replies) as api:
        service_file(agent(api.base_url, **settings))
        done = flowrt(
            "chat", "--config", "service.yaml", "--flow", "chat",
            stdin=f"Pay.\n{typed}\n/quit\n".encode(),
        )  # fmt: skip
    assert (0, "") == (done.returncode, done.stderr)
    assert "[pay waits to be allowed]" in done.stdout
    [result] = api.bodies[1]["messages"][-1]["content"]
    assert paid is ("is_error" not in result)


def test_in_chat_the_end_of_input_denies(flowrt: Flowrt, service_file: Write) -> None:
    tool = {"name": "pay", "description": "Pays.", "authorize": "true", "process": []}
    settings = {
        "memoryThreadId": "body.threadId",
        "authorizeId": "null",
        "authorizeAllow": "false",
        "events": {"process": []},
        "tools": [tool],
    }
    replies = [FakeReply(tool_calls=[{"name": "pay", "input": {}}]), "So be it."]
    with FakeMessagesAPI(replies) as api:
        service_file(agent(api.base_url, **settings))
        flowrt("chat", "--config", "service.yaml", "--flow", "chat", stdin=b"Pay.\n")
    assert "not approved" in api.bodies[1]["messages"][-1]["content"][0]["content"]


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT to send on Windows")
def test_an_interrupt_in_chat_stops_the_turn_and_not_the_program(
    service_file: Write, tmp_path: Path
) -> None:
    gate = Gate()
    with FakeMessagesAPI([FakeReply(text="never", hold=gate), "Fine."]) as api:
        service_file(agent(api.base_url, memoryThreadId="body.threadId"))
        process = subprocess.Popen(
            command("chat", "--config", "service.yaml", "--flow", "chat"),
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write("first\n")
        process.stdin.flush()
        gate.wait(30)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate("second\n/quit\n", timeout=30)
    assert (0, "") == (process.returncode, stderr)
    assert "[stopped; this turn is not remembered]" in stdout
    assert "Fine." in stdout
    assert ["second"] == [block["text"] for block in api.requests[-1].messages[0]["content"]]
