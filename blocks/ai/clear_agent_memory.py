"""`clear-agent-memory`: forget a conversation."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from blocks.ai.fields import Words
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.memory.transcript import Thread
from flowrt.message import Message
from flowrt.storage.agents.protocol import Place


class ClearAgentMemorySettings(Settings):
    """Settings of `clear-agent-memory`."""

    thread_id: Expr = Field(description="The conversation; null, empty or blank is an error.")
    agent_id: Annotated[Words, AfterValidator(str.strip)] | None = Field(
        default=None,
        description="The agent: its context, its record of the thread and the thread go as well.",
    )


class ClearAgentMemory(Block[ClearAgentMemorySettings]):
    """Forgets a conversation in both tiers and passes the message on. Nothing there is fine.

    With `agentId`, what that agent keeps of the thread goes as well: working context, recorded
    turns and title. What it has noted about people stays.

    ```yaml
    - type: clear-agent-memory
      name: wipe-thread
      settings:
        threadId: body.threadId
        agentId: support-agent
    ```
    """

    Settings = ClearAgentMemorySettings

    async def run(self, message: Message, run: Run) -> Message:
        name = self.settings.thread_id.key(message, "clear-agent-memory threadId")
        for namespace in ("user", "user_volatile"):
            await Thread(run.storage.space(namespace), name).clear()
        if self.settings.agent_id is not None:
            place = Place(run.runtime.name, self.settings.agent_id, name)
            for volatile in (False, True):
                await run.runtime.memories.of(volatile).delete_thread(place, context={})
        return message
