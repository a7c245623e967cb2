"""Whose turn it is on a conversation: one run at a time, in all processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import NamedTuple

from flowrt.agent.live import LiveRun, LiveRuns
from flowrt.errors import ThreadBusy
from flowrt.memory.transcript import PREFIX
from flowrt.storage.lease import hold
from flowrt.storage.protocol import Lease
from flowrt.storage.tiers import Space


class Conversation(NamedTuple):
    """What a run of the block at `address` is to hold: the thread `name` in `space`."""

    space: Space
    name: str
    key: str
    """The conversation as `LiveRuns` knows it."""
    address: str

    def holding(self, live: LiveRun, wait: float | None) -> AbstractAsyncContextManager[Lease]:
        """The lease, as long as the context lasts; `live` is stopped where it is lost."""
        lost = partial(live.stop, "the conversation's lease was lost", hard=True)
        return hold(self.space, PREFIX + self.name, wait=wait, on_lost=lost)


@asynccontextmanager
async def claim(
    conversation: Conversation,
    runs: LiveRuns,
    *,
    wait: float | None,
    text: Callable[[], str] | None,
) -> AsyncIterator[LiveRun | None]:
    """Hold a conversation while its run lives, and be reachable from before on.

    `wait` is how many seconds, None for ever; then `ThreadBusy`. With a `text`, a run that holds
    it in another process is given that instead of being waited for, and None is yielded where it
    took it.
    """
    live = LiveRun(conversation.address, conversation.key)
    # Before it has the conversation: a message that comes right behind must find it.
    runs.offer(live)
    try:
        await runs.be_reachable()
        async with AsyncExitStack() as held:
            if text is None:
                await held.enter_async_context(conversation.holding(live, wait))
            else:
                try:
                    await held.enter_async_context(conversation.holding(live, 0))
                except ThreadBusy:
                    if await _handed_over(live, runs, text()):
                        yield None
                        return
                    await held.enter_async_context(conversation.holding(live, wait))
            runs.add(live)
            yield live
    finally:
        runs.remove(live)


async def _handed_over(live: LiveRun, runs: LiveRuns, text: str) -> bool:
    """Whether a run elsewhere takes the text, and what this one was given while it waited."""
    # No longer to be found here: what comes now finds its own way to the run elsewhere.
    runs.remove(live)
    later = live.take()
    if await runs.hand_over_elsewhere(live.conversation, live.address, text, *later):
        return True
    for text_ in later:
        live.hand_over(text_)
    runs.offer(live)
    return False
