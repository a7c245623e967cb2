"""The shared table of CEL cases: each gives what it says, or stands below with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ExpressionError
from flowrt.expr import Expression
from flowrt.message import Message

TABLE = json.loads(Path(__file__).with_name("cel_cases.json").read_text("utf-8"))
CASES: list[dict[str, Any]] = TABLE["cases"]

ERROR = object()
EXCEPTIONS: dict[str, tuple[Any, str]] = {
    "body.count + 0.5": (1.5, "data's integers are doubles where int and double meet"),
    "1.0 / 0.0": (ERROR, "a result is JSON, which has no Infinity (FB-49)"),
    "bytes('abc')": ("YWJj", "a result is JSON: bytes are base64 (dialect 3.2)"),
    "b'abc'": ("YWJj", "a result is JSON: bytes are base64 (dialect 3.2)"),
    "cel.bind(x, 2, x * x)": (ERROR, "absent from the dialect on purpose (3.4)"),
    "upper(body.name)": (ERROR, "a function of the probe that made the table, not the dialect's"),
    "body.name.upper()": (ERROR, "a function of the probe that made the table, not the dialect's"),
}


def expected(case: dict[str, Any]) -> Any:
    if case["expr"] in EXCEPTIONS:
        return EXCEPTIONS[case["expr"]][0]
    return ERROR if case.get("error") else case["want"]


@pytest.mark.parametrize("case", CASES, ids=[case["expr"] for case in CASES])
def test_a_case_gives_what_the_table_says(case: dict[str, Any]) -> None:
    message = Message(TABLE["data"]["body"], TABLE["data"]["vars"])
    want = expected(case)
    try:
        found = Expression.compile(case["expr"]).value(message)
    except ExpressionError:
        found = ERROR
    assert want == found
    assert type(want) is type(found)


def test_every_exception_is_a_row_of_the_table() -> None:
    assert set(EXCEPTIONS) <= {case["expr"] for case in CASES}
