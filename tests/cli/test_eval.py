"""`flowrt eval`: one line, and the exit code 0 wherever the call itself is right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Flowrt


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        (["--expr", "1 + 1"], 2),
        (["--expr", "body"], None),
        (["--expr", "body.n * 2", "--data", '{"n": 21}'], 42),
        (["--expr", "body.id", "--data", '{"id": 9007199254740993}'], 9007199254740993),
        (["--expr", "vars.a + env.B", "--vars", '{"a": "x"}', "--env", '{"B": "é"}'], "xé"),
        (["--expr", "body", "--data", '"a\\u0000b"'], "a\ufffdb"),
        (["--expr", "'ü' + body", "--data", '"ö"'], "üö"),
        (["--expr", "string(now).size() > 9"], True),
    ],
)
def test_a_value_is_one_line_of_json(flowrt: Flowrt, arguments: list[str], result: Any) -> None:
    done = flowrt("eval", *arguments)
    assert (0, "") == (done.returncode, done.stderr)
    assert 1 == done.stdout.count("\n")
    assert {"ok": True, "result": result} == json.loads(done.stdout)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("body.missing", "no such key: missing (in 'body.missing')"),
        ("1 +", "does not compile"),
        ("", "empty"),
        ("0.0 / 0.0", "NaN"),
        ("[1, 2", "does not compile"),
        ("templateResource('x')", "there is no template resource 'x' here"),
        ("(" * 5000, "deeper than 32 levels"),
    ],
)
def test_an_expression_that_fails_says_so_in_json(
    flowrt: Flowrt, expression: str, said: str
) -> None:
    done = flowrt("eval", "--expr", expression, "--data", "{}")
    assert (0, "") == (done.returncode, done.stderr)
    printed = json.loads(done.stdout)
    assert (False, None) == (printed["ok"], printed["result"])
    assert said in printed["error"]


def test_the_body_comes_from_a_file_or_from_standard_input(flowrt: Flowrt, tmp_path: Path) -> None:
    (tmp_path / "body.json").write_bytes(b"\xef\xbb\xbf[7]")
    for arguments in (["--data", "@body.json"], ["--data", "-"], []):
        done = flowrt("eval", "--expr", "body[0]", *arguments, stdin=b"[7]")
        assert '{"ok":true,"result":7}\n' == done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data", "{x}"], "--data is not valid JSON"),
        (["--data", "@nowhere"], "cannot read 'nowhere'"),
        (["--vars", "[1]"], "--vars must be a JSON object"),
        (["--env", "{"], "--env is not valid JSON"),
        (["--env", '{"PORT": 80}'], "'PORT' must be a text, found 80"),
    ],
)
def test_a_call_that_is_wrong_exits_with_2(flowrt: Flowrt, arguments: list[str], said: str) -> None:
    done = flowrt("eval", "--expr", "1", *arguments)
    assert (2, "") == (done.returncode, done.stdout)
    assert said in done.stderr


def test_without_an_expression_it_exits_with_2(flowrt: Flowrt) -> None:
    assert 2 == flowrt("eval").returncode


def test_it_imports_no_service_store_or_model() -> None:
    heavy = {"pydantic", "anthropic", "redis", "sqlite3", "structlog", "yaml", "flowrt.service"}
    script = (
        "import sys\n"
        "from flowrt.cli.eval import eval_command\n"
        "eval_command('toJson(1)', '1', None, None)\n"
        f"sys.exit(', '.join({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "" == done.stderr.strip()
