"""Every example of `docs/expressions.md` gives what the page says, and every function has one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ExpressionError
from flowrt.expr import Expression, Scope, Template, Templates
from flowrt.expr.catalogue import FUNCTIONS, MEMBERS
from flowrt.message import Message

PAGE = (Path(__file__).parent.parent.parent / "docs/expressions.md").read_text("utf-8")
MESSAGE: dict[str, Any] = json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0])
(GREETING,) = re.findall(r"```markdown\n(.*?)\n```", PAGE, re.DOTALL)
EXAMPLES = [
    tuple(part.strip() for part in line.rsplit(" // ", 1))
    for block in re.findall(r"```cel\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line
]


@pytest.fixture(scope="module")
def scope() -> Scope:
    made = Scope(MESSAGE["env"], templates=Templates(["greeting"]))
    made.templates.add("greeting", Template.compile(GREETING, scope=made))
    return made


@pytest.mark.parametrize(("source", "said"), EXAMPLES, ids=[source for source, _ in EXAMPLES])
def test_an_example_gives_what_the_page_says(source: str, said: str, scope: Scope) -> None:
    message = Message(MESSAGE["body"], MESSAGE["vars"])

    def value() -> Any:
        return Expression.compile(source, None, scope).value(message)

    if said.startswith("error: "):
        with pytest.raises(ExpressionError, match=re.escape(said.removeprefix("error: "))):
            value()
    else:
        expected, found = json.loads(said), value()
        assert (expected, type(expected)) == (found, type(found))


@pytest.mark.parametrize("name", [*FUNCTIONS, *MEMBERS])
def test_every_function_has_an_example(name: str) -> None:
    called = re.compile(rf"\b{re.escape(name)}\(")
    assert any(called.search(source) for source, said in EXAMPLES if "error" not in said)
