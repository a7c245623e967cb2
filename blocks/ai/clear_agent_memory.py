"""`clear-agent-memory`: forget a conversation."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.memory.transcript import Thread
from flowrt.message import Message


class ClearAgentMemorySettings(Settings):
    """Settings of `clear-agent-memory`."""

    thread_id: Expr = Field(description="The conversation; null, empty or blank is an error.")


class ClearAgentMemory(Block[ClearAgentMemorySettings]):
    """Forgets a conversation in both tiers and passes the message on. Nothing there is fine.

    ```yaml
    - type: clear-agent-memory
      name: wipe-thread
      settings:
        threadId: body.threadId
    ```
    """

    Settings = ClearAgentMemorySettings

    async def run(self, message: Message, run: Run) -> Message:
        name = self.settings.thread_id.key(message, "clear-agent-memory threadId")
        for namespace in ("user", "user_volatile"):
            await Thread(run.storage.space(namespace), name).clear()
        return message
