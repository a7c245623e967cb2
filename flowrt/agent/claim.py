"""Whose turn it is on a conversation: one run at a time, in all processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import NamedTuple

from flowrt.agent.live import LiveRun, LiveRuns
from flowrt.errors import StoreError, ThreadBusy
from flowrt.storage.lease import hold
from flowrt.storage.protocol import Lease
from flowrt.storage.tiers import Space


class Claim(NamedTuple):
    """What a run of the block at `address` is to hold: what is stored under `key` in `space`."""

    space: Space
    key: str
    conversation: str
    """The conversation as `LiveRuns` knows it."""
    address: str

    def holding(self, live: LiveRun, wait: float | None) -> AbstractAsyncContextManager[Lease]:
        """The lease, as long as the context lasts; `live` is stopped where it is lost."""
        lost = partial(live.stop, "the conversation's lease was lost", hard=True)
        return hold(self.space, self.key, wait=wait, on_lost=lost)


class Held(NamedTuple):
    """A conversation that is held. `blind` says why it could not be, where the run goes on."""

    live: LiveRun
    blind: str = ""


@asynccontextmanager
async def claim(
    wanted: Claim,
    runs: LiveRuns,
    *,
    wait: float | None,
    text: Callable[[], str] | None,
    may_be_blind: bool,
    turn: Callable[[], Awaitable[None]] | None = None,
) -> AsyncIterator[Held | None]:
    """Hold a conversation while its run lives, and be reachable from before on.

    `wait` is how many seconds, None for ever; then `ThreadBusy`. With a `text`, a run that holds
    it in another process is given that instead of being waited for, and None is yielded where it
    took it. `turn` is awaited first: messages that came before this one are to have it before. With
    `may_be_blind`, a store that fails is no error: nothing can be read, so nothing
    will be written, and there is nothing to hold.
    """
    live = LiveRun(wanted.address, wanted.conversation)
    # Before it has the conversation: a message that comes right behind must find it.
    runs.offer(live)
    try:
        async with AsyncExitStack() as held:
            if turn is not None:
                await turn()
            blind, joined = "", False
            try:
                await runs.be_reachable()
                joined = await _enter(held, wanted, live, runs, wait, text)
            except StoreError as error:
                if not may_be_blind:
                    raise
                blind = str(error)
            if joined:
                yield None
                return
            runs.add(live)
            yield Held(live, blind)
    finally:
        runs.remove(live)


async def _enter(
    held: AsyncExitStack,
    wanted: Claim,
    live: LiveRun,
    runs: LiveRuns,
    wait: float | None,
    text: Callable[[], str] | None,
) -> bool:
    """Get the lease into `held`; whether a run elsewhere took the text instead."""
    if text is not None:
        try:
            await held.enter_async_context(wanted.holding(live, 0))
        except ThreadBusy:
            if await _handed_over(live, runs, text()):
                return True
        else:
            return False
    await held.enter_async_context(wanted.holding(live, wait))
    return False


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
