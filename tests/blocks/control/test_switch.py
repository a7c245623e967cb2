"""`switch`: the first case that holds, and what it says where a guard cannot tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.blocks.chains import message, payload, run


def switch(*guards: str, **more: Any) -> dict[str, Any]:
    cases = [{"when": guard, "process": [payload(f'"{guard}"')]} for guard in guards]
    return {"type": "switch", "cases": cases, **more}


async def test_of_two_cases_that_hold_the_first_is_taken(tmp_path: Path) -> None:
    chain = [switch("body.n > 0", "body.n > 1")]
    assert "body.n > 0" == (await message(tmp_path, chain, {"n": 2})).body


async def test_a_guard_behind_the_one_that_holds_is_not_asked(tmp_path: Path) -> None:
    chain = [switch("body.n > 0", "body.missing")]
    assert "body.n > 0" == (await message(tmp_path, chain, {"n": 2})).body


async def test_where_none_holds_and_there_is_no_default_the_message_passes_on(
    tmp_path: Path,
) -> None:
    assert "same" == (await message(tmp_path, [switch("false"), payload("body")], "same")).body


@pytest.mark.parametrize(
    ("guard", "text"),
    [
        ("body.missing", "switch case 1: "),
        ("body.n", "condition must evaluate to a bool, got "),
        ("null", "condition must evaluate to a bool, got null"),
    ],
)
async def test_a_guard_that_cannot_tell_fails_by_the_number_of_its_case(
    tmp_path: Path, guard: str, text: str
) -> None:
    error = str((await run(tmp_path, [switch("false", guard)], {"n": 1})).error)
    assert 'block "switch": switch case 1: ' in error
    assert text in error
