"""Blocks are found by address, and an address that is none names what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.engine.debug import DebugPlan
from flowrt.errors import CallError
from tests.services import flows, load


def nested() -> dict[str, Any]:
    inner = [{"type": "set-payload", "name": "inner", "value": "1"}]
    document = flows(
        main=[
            {"type": "if", "condition": "true", "then": {"process": inner}},
            {
                "type": "switch",
                "name": "route",
                "cases": [{"when": "true", "name": "a", "process": inner}],
            },
            {"ref": "stamp"},
            {"type": "log", "name": "twice"},
            {"type": "log", "name": "twice"},
        ]
    )
    document["flows"][0]["error"] = [{"type": "set-payload", "value": "vars.error"}]
    document["processors"] = [
        {"name": "stamp", "type": "set-variable", "settings": {"name": "x", "value": 1}}
    ]
    return document


@pytest.mark.parametrize(
    "address",
    [
        "main.if",
        "main.if[then].inner",
        "main.if[then].set-payload",
        "main.route[a].inner",
        "main.switch[a].inner",
        "main.route[0].inner",
        "main.stamp",
        "main.set-variable",
        "main[error].set-payload",
    ],
)
def test_an_address_names_a_block_by_name_type_or_ref(address: str, tmp_path: Path) -> None:
    assert load(tmp_path, nested()).debug(DebugPlan(spies=[address])).crossings == {address: []}


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("main.if[then].iner", "did you mean 'main.if[then].inner'"),
        ("mian.stamp", "did you mean 'main.stamp'"),
        ("main.inner", "did you mean 'main.if[then].inner' or"),
        ("main.twice", "ambiguous: 2 blocks are called so; give each a `name:`"),
        ("main.log", "ambiguous"),
        ("main.if[else].inner", "there is no block 'main.if[else].inner'"),
        ("", "there is no block ''; the blocks are"),
        ("main.qqqqqqqqqqqqqqqq", "the blocks are 'main.if'"),
    ],
)
def test_an_address_that_does_not_resolve_names_the_nearest(
    address: str, text: str, tmp_path: Path
) -> None:
    with pytest.raises(CallError) as raised:
        load(tmp_path, nested()).debug(DebugPlan(spies=[address]))
    assert text in str(raised.value)


def test_a_name_goes_before_another_block_of_that_type(tmp_path: Path) -> None:
    choice = {"type": "if", "name": "choice", "condition": "true", "then": {"process": []}}
    document = flows(main=[{"type": "set-payload", "name": "if", "value": "1"}, choice])
    assert load(tmp_path, document).debug(DebugPlan(spies=["main.if"])).crossings == {"main.if": []}
