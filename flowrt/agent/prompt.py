"""The words an agent's requests are made of: the system prompt and the opening turn."""

from __future__ import annotations

import json
from typing import Literal

from flowrt.expr import Expression
from flowrt.message import Message

_ROLE = (
    "You are an agent that does its work through the tools it is given: call them as the task "
    "needs, use what they return, and finish with the result."
)
_JSON_ONLY = (
    " Give the final result as JSON only, with nothing around it, unless the instructions below "
    "ask for another format."
)
_LEAD_IN = "Here is the message to work on, as JSON:"


def system_prompt(
    prompt: str,
    answer: Literal["json", "text"],
    skills: list[tuple[str, str]],
    guardrail: str | None,
) -> str:
    """The system prompt, the same for every run; `skills` are (name, description)."""
    parts = [_ROLE + (_JSON_ONLY if answer == "json" else ""), prompt.strip()]
    if skills:
        lines = "\n".join(f"- {name}: {description}" for name, description in skills)
        parts.append(
            "These skills hold further instructions. Before work that one of them covers, call "
            f"load_skill with its name and follow what it says.\n{lines}"
        )
    if guardrail:
        parts.append(f"Guardrail: {guardrail.strip()}")
    return "\n\n".join(parts)


def opening_turn(message: Message, expression: Expression | None) -> str:
    """The user turn that opens a run: `input` as text, else the body with a line in front."""
    if expression is not None:
        return expression.text(message)
    return f"{_LEAD_IN}\n{json.dumps(message.body, ensure_ascii=False)}"
