"""A process that talks to a flow; its arguments are CONFIG STORAGE THREAD COUNT MODE.

`together` sends COUNT messages at once, `forever` one after the other until it is killed; each
acknowledged message is a line on standard output.
"""

from __future__ import annotations

import asyncio
import os
import sys

from flowrt.message import Outcome
from flowrt.service import Service


async def main(config: str, storage: str, thread: str, count: str, mode: str) -> None:
    """Send the messages."""
    service = Service.load(config, storage=storage)

    async def send(number: int) -> None:
        text = f"message {os.getpid()} {number}"
        result = await service.invoke("chat", {"thread": thread, "message": text})
        assert result.outcome is Outcome.COMPLETED, result.error
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    async with service:
        if mode == "together":
            await asyncio.gather(*(send(number) for number in range(int(count))))
        else:
            for number in range(int(count)):
                await send(number)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
