"""What an agent is, compiled: made once by the block, read by every run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

from flowrt.agent.gates import GateSpec
from flowrt.agent.media import MediaSpec
from flowrt.engine.chain import Chain
from flowrt.expr import Expression, Template
from flowrt.llm.model import ChatModel, Request, parameters_of
from flowrt.memory.compaction import Budget, Strategy
from flowrt.memory.shown import Frame, name_of

ThreadPolicy = Literal["queue", "reject", "merge"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool: how the model sees it (`definition`, the API's own form) and the chain behind it.

    A call for which `authorize` holds waits until somebody allows it.
    """

    name: str
    definition: dict[str, Any]
    chain: Chain
    authorize: Expression | None = None


@dataclass(frozen=True, slots=True)
class SkillSpec:
    """A skill: instructions the model may load by name."""

    name: str
    description: str
    template: Template


@dataclass(frozen=True, slots=True)
class RememberSpec:
    """What an agent with an `agentId` keeps beside its working context.

    `record`: what was said; `facts`: what it notes about the user. `resume` has a run that died
    finished before the next one begins.
    """

    agent: str
    user: Expression | None
    record: bool
    facts: bool
    context: Expression | None
    name_thread: Chain | None
    resume: bool


@dataclass(frozen=True, slots=True)
class MemorySpec:
    """Where an agent remembers, and what it does with a second message on a busy thread."""

    thread: Expression
    volatile: bool
    policy: ThreadPolicy
    stop_when: Expression | None
    remember: RememberSpec | None = None

    @property
    def tier(self) -> str:
        """The namespace of the key-value store that conversations are in."""
        return "user_volatile" if self.volatile else "user"


@dataclass(frozen=True, slots=True)
class EventSpec:
    """The observer path: its chain, the types it wants, and whether replies stream to it."""

    chain: Chain
    emit: frozenset[str]
    stream: bool


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One `ai-agent` block. `fixed` estimates what rides on every request: system and tools;
    `frame` is that, as it is kept."""

    address: str
    label: str
    connector: str
    model: ChatModel
    system: str
    opening: Expression | None
    tools: dict[str, ToolSpec]
    skills: dict[str, SkillSpec]
    definitions: list[dict[str, Any]]
    fixed: int
    max_iterations: int
    max_parallel: int
    budget: Budget
    strategy: Strategy
    memory: MemorySpec | None
    events: EventSpec | None
    default: Chain | None
    model_name: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    gates: GateSpec | None = None
    media: MediaSpec = field(default_factory=MediaSpec)
    fingerprint: str = field(init=False, default="")
    frame: bytes = field(init=False, default=b"")
    frame_name: str = field(init=False, default="")

    def __post_init__(self) -> None:
        digest = hashlib.sha256(self.address.encode()).hexdigest()[:16]
        asked = Request(
            [], model=self.model_name, max_tokens=self.max_tokens, temperature=self.temperature
        )
        parameters = parameters_of(self.model, asked)
        frame = Frame(
            self.system, self.definitions, parameters, self.connector, self.model.provider
        ).encode()
        object.__setattr__(self, "fingerprint", digest)
        object.__setattr__(self, "frame", frame)
        object.__setattr__(self, "frame_name", name_of(frame))
