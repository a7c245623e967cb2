"""Evaluations neither lose memory nor end the process (see `flowrt.expr.mending`)."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest

from flowrt.errors import ExpressionError
from flowrt.expr import Expression, Scope, Template, Templates
from flowrt.message import Message

LONG = "x" * 10_000
MULTIPART = "multipart/form-data; boundary=octo-multipart"


def scope() -> Scope:
    """A service with a template `t` that calls functions of ours itself."""
    made = Scope(templates=Templates(["t"]))
    made.templates.add("t", Template.compile("{{ toJson(body) }}", scope=made))
    return made


def lost(source: str, body: Any) -> float:
    """Bytes an evaluation leaves behind, over a message of its own."""
    expression = Expression.compile(source, None, scope())

    def run(times: int) -> None:
        for _ in range(times):
            try:
                expression.value(Message(body))
            except ExpressionError:
                continue

    run(50)
    gc.collect()
    tracemalloc.start()
    try:
        run(200)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / 200
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("source", "body"),
    [
        ("toJson(body.s)", {"s": LONG}),
        ("fromJson(body.s)", {"s": f'{{"a": ["{LONG}", null, true]}}'}),
        ("string(body.s) + 'x'", {"s": LONG}),
        ("string(body.s)", {"s": {"a": LONG}}),
        ("secureCompare(body.s, body.s)", {"s": LONG}),
        ("hexEncode(hmacSha256(body.s, bytes(body.s)))", {"s": LONG}),
        ("fromYaml(toYaml(body.s))", {"s": "x" * 1000}),
        ("fromFormData(toFormData(body))", {"s": LONG}),
        ("fromEnv(toEnv(body))", {"s": LONG}),
        ("body.transformMap(k, v, v + 'x')", {"s": LONG}),
        ("toMultipart(multipart().addPart('s', body.s))", {"s": LONG}),
        ("fromMultipart(toMultipart({'s': body.s}), body.t)", {"s": LONG, "t": MULTIPART}),
        ("fromAes(toAes(body.s, body.k), body.k)", {"s": LONG, "k": "k" * 32}),
        ("toJson(body.s) + templateResource('t') + toJson(body.s)", {"s": LONG}),
        ("body.l.map(x, x + 'y')", {"l": [LONG] * 100}),
        ("[body.?s.orValue('x') + 'y']", {"s": LONG}),
        ("body.s + body.missing", {"s": LONG}),
        ("{'now': now, 'id': uuid(), 's': body.s}", {"s": LONG}),
    ],
)
def test_an_evaluation_leaves_nothing_behind(source: str, body: Any) -> None:
    assert 500 > lost(source, body)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="constants are immortal from 3.12 on")
@pytest.mark.parametrize("text", ["true", "false", "1", '""', "[]"])
def test_a_constant_that_is_decoded_keeps_its_references(text: str) -> None:
    constant = json.loads(text)
    expression, message = Expression.compile("fromJson(body)"), Message(text)
    expression.value(message)
    before = sys.getrefcount(constant)
    for _ in range(500):
        expression.value(Message(text))
    assert 50 > abs(sys.getrefcount(constant) - before)


def test_a_million_nulls_do_not_end_the_process() -> None:
    script = (
        "from flowrt.expr import Expression\n"
        "from flowrt.message import Message\n"
        "expression = Expression.compile('[body]')\n"
        "message = Message([None] * 10_000)\n"
        "for _ in range(100):\n"
        "    expression.value(message)\n"
        "print('alive')"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "alive" == found.stdout.strip(), found.stderr


def test_a_message_that_lives_long_does_not_collect_its_evaluations() -> None:
    script = (
        "import psutil\n"
        "from flowrt.expr import Expression\n"
        "from flowrt.message import Message\n"
        "expression = Expression.compile('{\"a\": body.s + body.s}')\n"
        "message = Message({'s': 'x' * 1000})\n"
        "def run():\n"
        "    for _ in range(5_000):\n"
        "        expression.value(message)\n"
        "    return psutil.Process().memory_info().rss\n"
        "before = run()\n"
        "print((run() - before) // 1024)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert 4_000 > int(found.stdout), found.stderr
