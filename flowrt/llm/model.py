"""What a chat model is: the request, the reply, and the protocol a connector implements.

The canonical form of messages is the Messages API's own (role and content blocks), kept as plain
dicts so that blocks flowrt does not know survive untouched. Other providers are adapters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

Block = dict[str, Any]
"""A content block of the Messages API: `text`, `thinking`, `redacted_thinking`, `tool_use`,
`tool_result`, `image`, or one that flowrt does not know.
"""


@dataclass(slots=True)
class Request:
    """One call of a model. Built only by `flowrt.llm.request.build_request`.

    `system` and `tools` are lists of Messages API blocks, `messages` are
    `{role, content: [block]}`.
    `max_tokens`, `model` and `temperature` None leave the choice to the connector. `purpose` is
    for traces only. `sound` says that `flowrt.llm.rules` has found nothing against it.
    """

    messages: list[dict[str, Any]]
    system: list[Block] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    tool_choice: dict[str, Any] | None = None
    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    purpose: str = ""
    sound: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider billed them. `prompt_tokens` is all it read, cached or not."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    thinking_tokens: int = 0
    reported_cost_usd: float | None = None

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.cached_tokens + self.cache_write_tokens

    def to_json(self) -> dict[str, Any]:
        """The field names of events and trace records (dialect 5.8)."""
        out: dict[str, Any] = {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "thinkingTokens": self.thinking_tokens,
            "cachedTokens": self.cached_tokens,
            "cacheWriteTokens": self.cache_write_tokens,
            "promptTokens": self.prompt_tokens,
        }
        if self.reported_cost_usd is not None:
            out["reportedCostUSD"] = self.reported_cost_usd
        return out


@dataclass(slots=True)
class Reply:
    """What a model answered. `content` are its blocks as they came, byte for byte.

    `stop_reason` is one of `end_turn`, `tool_use`, `max_tokens`, `refusal`, `stop_sequence`,
    `pause_turn`, `model_context_window_exceeded`, or one that flowrt does not know. `usage` is None
    where the provider reported none.
    """

    content: list[Block]
    stop_reason: str
    model: str
    usage: Usage | None = None

    @property
    def cut_off(self) -> bool:
        """Whether a token limit ended the reply: a call in it may be half of what was meant."""
        return self.stop_reason in ("max_tokens", "model_context_window_exceeded")

    @property
    def text(self) -> str:
        """All text blocks joined."""
        return "".join(block["text"] for block in self.content if block.get("type") == "text")

    @property
    def tool_calls(self) -> list[Block]:
        """The `tool_use` blocks, in order."""
        return [block for block in self.content if block.get("type") == "tool_use"]

    @property
    def whole_calls(self) -> list[Block]:
        """The calls that may be acted upon: none of a reply that was cut off or a refusal."""
        return [] if self.cut_off or self.stop_reason == "refusal" else self.tool_calls


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply while it streams. `index` is the content block's place.

    `tool` and `tool_call_id` are set on `tool_input`.
    """

    kind: Literal["text", "thinking", "tool_input"]
    text: str
    index: int
    tool: str = ""
    tool_call_id: str = ""


class ChatModel(Protocol):
    """A model behind a connector.

    `complete` raises `ModelUnavailable` after bounded retries of 408, 409, 429, 5xx and broken
    connections, `PromptTooLong` where the prompt exceeds the window, `ModelRefused` for every
    other 4xx, and never sends such a request twice. With `on_delta` it streams; once a delta was
    delivered it does not retry.
    """

    name: str
    provider: str

    async def complete(
        self, request: Request, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply: ...


@runtime_checkable
class TellsParameters(Protocol):
    """A model that tells what it sends beside the messages, the system prompt and the tools."""

    def parameters(self, request: Request) -> dict[str, Any]:
        """Under the names of the Messages API: `model`, `max_tokens` and what else there is."""
        ...


def parameters_of(model: ChatModel, request: Request) -> dict[str, Any]:
    """What goes out with a request beside messages, system prompt and tools, as far as is known."""
    if isinstance(model, TellsParameters):
        return model.parameters(request)
    known = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
    }
    return {name: value for name, value in known.items() if value is not None}
