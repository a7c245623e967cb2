"""The settings of `ai-agent`, and which of them need each other."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from blocks.ai.fields import JsonObject, Words, refused, unique
from flowrt.agent.events import EVENT_TYPES
from flowrt.agent.memory_tools import NAMES
from flowrt.engine.block import Settings
from flowrt.engine.fields import Blocks, Duration, Expr, SubFlow, expr_over

_MCP_ONLY = ("title", "annotations", "outputSchema")

# Measured by bench/cost.py: above it the cached prefix breaks so often that each remembered token
# gets dearer, below it less is remembered for the same price a token.
DEFAULT_COMPACT_TO = 0.6


def _emit_name(value: str) -> str:
    if value not in EVENT_TYPES:
        names = ", ".join(sorted(EVENT_TYPES))
        raise refused("emit", f"unknown event type {value!r}; the types are {names}")
    return value


# The pattern is the Messages API's own; a name it refuses would fail at the first call (FB-20).
ToolName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]


class ToolSettings(Settings):
    """A tool: a chain the model may call. Its body is the model's arguments."""

    name: ToolName = Field(description="The tool's name: letters, digits, `_` and `-`, up to 128.")
    description: Words = Field(description="Tells the model what the tool does and when to use it.")
    input_schema: JsonObject = Field(
        default_factory=lambda: {"type": "object"},
        description="JSON Schema of the arguments, as JSON text or native YAML.",
    )
    authorize: expr_over("input", "tool") | None = Field(  # type: ignore[valid-type]
        default=None,
        description=(
            "Where true, a call waits until somebody allows it; over the message, `input` and "
            "`tool.name`, `tool.id`. One that fails, or is no bool, denies the call."
        ),
    )
    process: Blocks = Field(description="The chain; its final body is what the model gets back.")

    @model_validator(mode="before")
    @classmethod
    def _supported(cls, values: Any) -> Any:
        for key in _MCP_ONLY:
            if isinstance(values, dict) and key in values:
                raise refused("mcp", f"{key!r} belongs to the tools of an mcp-router, not here")
        return values


class SkillSettings(Settings):
    """A skill: instructions that the model loads by name when it needs them."""

    name: Words = Field(description="The skill's name.")
    description: Words = Field(description="Tells the model what the skill covers.")
    resource: Words = Field(description="A template resource, by alias or id.")


class AiAgentSettings(Settings):
    """Settings of `ai-agent`."""

    connector: str = Field(min_length=1, description="The LLM connector.")
    prompt: Words = Field(description="The task. Not templated per message.")
    guardrail: str | None = Field(default=None, description="A rule added to the system prompt.")
    input: Expr | None = Field(
        default=None, description="The user turn, as text; without it, the body as JSON."
    )
    attachments: Expr | None = Field(
        default=None,
        description=(
            "Files for the model: a list of {mimeType, data (base64 or a data: URL), name}. Null "
            "is none."
        ),
    )
    keep_attachments: bool = Field(
        default=False,
        description="Keep the files in the conversation; else they are shown once, then named.",
    )
    response_media: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "A variable that collects the files the model produces: a list of "
            "{name, mimeType, size, data}."
        ),
    )
    answer: Literal["json", "text"] = Field(
        default="json", description="Whether the model is told to answer with JSON only."
    )
    model: str | None = Field(default=None, description="Overrides the connector's model.")
    max_tokens: int | None = Field(
        default=None, ge=1, description="Longest reply, in tokens; else the connector's."
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="Sampling temperature; else the provider's default."
    )
    max_iterations: int = Field(
        default=8, description="Model calls in one run; 0 or less means the default."
    )
    max_parallel_tools: int = Field(
        default=10, ge=0, description="Tool calls of one turn that run at once; 0 and 1 mean one."
    )
    tools: list[ToolSettings] = Field(default_factory=list, description="What the model may call.")
    skills: list[SkillSettings] = Field(
        default_factory=list, description="Instructions the model may load."
    )
    memory_thread_id: Expr | None = Field(
        default=None,
        description="The conversation; null, empty or blank is an error. Without it, no memory.",
    )
    memory_volatile: bool = Field(
        default=False, description="Keep the conversation in the volatile tier."
    )
    context_max_tokens: int = Field(
        default=200_000,
        gt=0,
        strict=True,
        description="Budget of the whole prompt, in the provider's tokens.",
    )
    memory_compaction: Literal["prune", "summarize"] = Field(
        default="prune", description="What happens to the oldest exchanges over the budget."
    )
    compact_to: float = Field(
        default=DEFAULT_COMPACT_TO,
        gt=0,
        le=1,
        description="The share of `contextMaxTokens` that a compaction cuts down to.",
    )
    thread_policy: Literal["queue", "reject", "merge"] = Field(
        default="queue",
        description=(
            "What a message does while a run works its thread: wait, fail, or join that run."
        ),
    )
    stop_when: Expr | None = Field(
        default=None, description="Where true, this message stops the thread's run instead."
    )
    agent_id: Annotated[Words, AfterValidator(str.strip)] | None = Field(
        default=None,
        description="Names the agent, and has it keep context, record and facts apart.",
    )
    user_id: Expr | None = Field(
        default=None, description="Who is on the other side; whose the record and the facts are."
    )
    history: Literal["record", "off"] | None = Field(
        default=None,
        description=(
            "Whether what is said is recorded, word for word. Without it: `record` with `agentId`, "
            "`off` with `memoryVolatile`."
        ),
    )
    user_memory: bool = Field(
        default=False,
        description="Notes about the user: told in each request, kept with `remember`.",
    )
    forward_context: Expr | None = Field(
        default=None,
        description="A map that goes along with every memory call of the run and is kept nowhere.",
    )
    name_thread: SubFlow | None = Field(
        default=None,
        description="Names a conversation, from {threadKey, agentId, userId, question, answer}.",
    )
    resume_interrupted: bool = Field(
        default=False, description="First finish the exchange of a run that died on the thread."
    )
    authorize_id: Expr | None = Field(
        default=None,
        description="Where not empty, this message answers the gated call with that id instead.",
    )
    authorize_allow: Expr | None = Field(
        default=None, description="The answer: true allows the call, anything else denies it."
    )
    authorize_timeout: Duration = Field(
        default=300.0, description="Longest wait for an answer; a call without one is denied."
    )
    events: SubFlow | None = Field(
        default=None, description="Gets each event of the run as a message of its own."
    )
    emit: list[Annotated[str, AfterValidator(_emit_name)]] | None = Field(
        default=None, description="The event types that `events` gets; all without it."
    )
    stream: bool = Field(
        default=False, description="Also send `events` the pieces of a reply while it streams."
    )
    default: SubFlow | None = Field(
        default=None,
        description="Runs where no answer comes, with `vars.guardrail` {reason, text}.",
    )

    @model_validator(mode="before")
    @classmethod
    def _supported(cls, values: Any) -> Any:
        if isinstance(values, dict) and "memoryMaxTokens" in values:
            raise refused(
                "renamed",
                "'memoryMaxTokens' is gone: it budgeted the stored transcript by a guess; "
                "use contextMaxTokens, which covers the whole prompt",
            )
        return values

    @model_validator(mode="after")
    def _together(self) -> Self:
        unique([tool.name for tool in self.tools], "tool")
        unique([skill.name for skill in self.skills], "skill")
        if self.skills and any(tool.name == "load_skill" for tool in self.tools):
            raise refused("reserved", "'load_skill' is reserved once there are skills")
        if self.stop_when is not None and self.memory_thread_id is None:
            raise refused("needs", "stopWhen needs memoryThreadId: it stops a thread's run")
        self._remembers()
        for name, given in (("emit", self.emit is not None), ("stream", self.stream)):
            if given and self.events is None:
                raise refused("needs", f"{name} needs events: there is nobody to tell")
        if self.max_iterations <= 0:
            object.__setattr__(self, "max_iterations", 8)
        return self

    def _remembers(self) -> None:
        """Refuse what needs an `agentId`, and an `agentId` without what it needs."""
        if self.agent_id is not None and self.memory_thread_id is None:
            raise refused("needs", "agentId needs memoryThreadId: memory is kept by thread")
        for name, given in (
            ("history: record", self.history == "record"),
            ("userMemory", self.user_memory),
            ("forwardContext", self.forward_context is not None),
            ("nameThread", self.name_thread is not None),
            ("resumeInterrupted", self.resume_interrupted),
        ):
            if given and self.agent_id is None:
                raise refused("needs", f"{name} needs agentId: it names the agent that remembers")
        if self.user_memory and self.user_id is None:
            raise refused("needs", "userMemory needs userId: notes are about somebody")
        for tool in self.tools:
            if self.user_memory and tool.name in NAMES:
                raise refused("reserved", f"{tool.name!r} is reserved once there is userMemory")

    @property
    def records(self) -> bool:
        """Whether what is said is recorded."""
        return self.history == "record" or (self.history is None and not self.memory_volatile)
