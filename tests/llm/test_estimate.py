from __future__ import annotations

from typing import Any

import pytest

from flowrt.llm.estimate import IMAGE_TOKENS, estimate_fixed, estimate_message

SMALL = 16  # what a block weighs besides its text


def estimate(*content: dict[str, Any]) -> int:
    return estimate_message({"role": "user", "content": list(content)})


def image(size: int) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": "A" * size}
    return {"type": "image", "source": source}


def result(content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "a", "content": content}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "x" * 4000},
        {"type": "thinking", "thinking": "x" * 4000, "signature": "s"},
        {"type": "tool_use", "id": "a", "name": "look", "input": {"q": "x" * 4000}},
        result("x" * 4000),
        result([{"type": "text", "text": "x" * 4000}]),
        {"type": "document", "source": {"type": "text", "data": "x" * 4000}},
        {"type": "from_the_future", "payload": "x" * 4000},
    ],
)
def test_whatever_a_block_carries_counts_a_quarter_of_its_characters(block: dict[str, Any]) -> None:
    assert 1000 <= estimate(block) <= 1000 + 2 * SMALL


@pytest.mark.parametrize("wrap", [lambda block: block, lambda block: result([block])])
def test_a_picture_costs_the_same_whatever_its_bytes(wrap: Any) -> None:
    assert IMAGE_TOKENS <= estimate(wrap(image(10))) <= IMAGE_TOKENS + SMALL
    assert estimate(wrap(image(10))) == estimate(wrap(image(3_000_000)))


def test_the_parts_of_a_message_add_up() -> None:
    one = {"type": "text", "text": "x" * 400}

    assert 3 * estimate(one) == estimate(one, one, one)


def test_system_prompt_and_tool_schemas_are_part_of_what_is_fixed() -> None:
    tool = {"name": "look", "description": "x" * 4000, "input_schema": {"type": "object"}}
    system = {"type": "text", "text": "x" * 8000}

    assert 2000 <= estimate_fixed([system], []) <= 2000 + SMALL
    assert 1000 <= estimate_fixed([], [tool]) <= 1000 + 2 * SMALL
    assert estimate_fixed([system], []) + estimate_fixed([], [tool]) == estimate_fixed(
        [system], [tool]
    )


def test_empty_results_and_messages_cost_next_to_nothing() -> None:
    assert 0 == estimate()
    assert estimate(result(None)) == estimate(result("")) <= SMALL
