"""`ai-agent`: a model that uses other chains as tools, and remembers."""

from __future__ import annotations

from blocks.ai.ai_agent_settings import AiAgentSettings, ToolSettings
from blocks.ai.authorization import gate_spec
from blocks.ai.media import media_spec
from flowrt.agent.agent import Agent
from flowrt.agent.events import EVENT_TYPES
from flowrt.agent.memory_tools import DEFINITIONS
from flowrt.agent.prompt import system_prompt
from flowrt.agent.spec import (
    AgentSpec,
    EventSpec,
    MemorySpec,
    RememberSpec,
    SkillSpec,
    ToolSpec,
)
from flowrt.agent.toolbox import LOAD_SKILL
from flowrt.engine.block import Block
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.llm.connector import ModelConnector
from flowrt.llm.estimate import estimate_fixed
from flowrt.memory.compaction import Budget
from flowrt.message import Message


class AiAgent(Block[AiAgentSettings]):
    """Lets a model work on the message, calling chains as tools, until it answers.

    The answer becomes the body: decoded where it is JSON, else as text. With `memoryThreadId` the
    conversation is kept: loaded before the run and saved after it, inside the token budget
    `contextMaxTokens` that covers the whole prompt.

    ```yaml
    - type: ai-agent
      name: assistant
      connector: claude
      memoryThreadId: body.threadId
      prompt: |
        You are a helpful assistant. Answer with a JSON object {"reply": "..."}.
      tools:
        - name: lookup
          description: Look up a customer by id.
          inputSchema: '{"type": "object", "properties": {"id": {"type": "string"}}}'
          process:
            - type: object-read
              settings:
                key: '"customer:" + body.id'
    ```
    """

    Settings = AiAgentSettings

    def __init__(self, settings: AiAgentSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._agent = Agent(_compile(settings, site))

    async def run(self, message: Message, run: Run) -> Message | None:
        return await self._agent.run(message, run)


def _compile(settings: AiAgentSettings, site: Site) -> AgentSpec:
    connector = site.connector(settings.connector, ModelConnector, "an LLM provider")
    skills = {
        skill.name: SkillSpec(
            skill.name,
            skill.description,
            site.template(skill.resource, ("skills", index, "resource")),
        )
        for index, skill in enumerate(settings.skills)
    }
    tools = {tool.name: _tool(tool, site) for tool in settings.tools}
    definitions = [tool.definition for tool in tools.values()]
    if skills:
        definitions.append(_load_skill(list(skills)))
    if settings.user_memory:
        definitions += DEFINITIONS
    system = system_prompt(
        settings.prompt,
        settings.answer,
        [(skill.name, skill.description) for skill in skills.values()],
        settings.guardrail,
    )
    return AgentSpec(
        address=site.address,
        label=site.label,
        connector=settings.connector,
        model=connector.chat_model,
        system=system,
        opening=settings.input,
        tools=tools,
        skills=skills,
        definitions=definitions,
        fixed=estimate_fixed([{"type": "text", "text": system}], definitions),
        max_iterations=settings.max_iterations,
        max_parallel=settings.max_parallel_tools,
        budget=Budget(settings.context_max_tokens, settings.compact_to),
        strategy=settings.memory_compaction,
        memory=_memory(settings, site),
        events=_events(settings, site),
        default=site.chain(settings.default, "default") if settings.default else None,
        model_name=settings.model,
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        gates=gate_spec(settings, site),
        media=media_spec(settings, connector, site, keep=settings.keep_attachments),
    )


def _memory(settings: AiAgentSettings, site: Site) -> MemorySpec | None:
    if settings.memory_thread_id is None:
        return None
    return MemorySpec(
        settings.memory_thread_id,
        settings.memory_volatile,
        settings.thread_policy,
        settings.stop_when,
        _remember(settings, site),
    )


def _remember(settings: AiAgentSettings, site: Site) -> RememberSpec | None:
    if settings.agent_id is None:
        return None
    naming = settings.name_thread
    return RememberSpec(
        agent=settings.agent_id,
        user=settings.user_id,
        record=settings.records,
        facts=settings.user_memory,
        context=settings.forward_context,
        name_thread=site.chain(naming, "nameThread") if naming else None,
        resume=settings.resume_interrupted,
    )


def _events(settings: AiAgentSettings, site: Site) -> EventSpec | None:
    if settings.events is None:
        return None
    emit = EVENT_TYPES if settings.emit is None else frozenset(settings.emit)
    return EventSpec(site.chain(settings.events, "events"), emit, settings.stream)


def _tool(tool: ToolSettings, site: Site) -> ToolSpec:
    definition = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
    }
    return ToolSpec(tool.name, definition, site.chain(tool.process, tool.name), tool.authorize)


def _load_skill(names: list[str]) -> dict[str, object]:
    return {
        "name": LOAD_SKILL,
        "description": "Load the instructions of a skill.",
        "input_schema": {
            "type": "object",
            "properties": {"name": {"type": "string", "enum": names}},
            "required": ["name"],
        },
    }
