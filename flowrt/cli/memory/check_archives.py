"""What `flowrt memory doctor` looks for in what requests are put together from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import unquote

from flowrt.agent.replay import Exchanges
from flowrt.cli.memory.findings import CLEAR, SAVE_FIRST, Finding
from flowrt.cli.memory.opened import Tier, all_keys
from flowrt.cli.memory.screen import counted
from flowrt.errors import StoreError
from flowrt.memory.agent_memory import ARCHIVES, archive_key, frame_key
from flowrt.memory.shown import read_archived
from flowrt.storage.agents.protocol import ThreadInfo, Turn


async def check_archives(tier: Tier, threads: set[tuple[str, str]]) -> AsyncIterator[Finding]:
    """Archives that cannot be read, or that none of the threads (agent, id) leads to."""
    async for key in all_keys(tier.space, ARCHIVES):
        parts = [unquote(part) for part in key.name.removeprefix(ARCHIVES).split("/")]
        if key.kind != "log" or len(parts) != 2 or archive_key(*parts) != key.name:
            yield Finding(
                "fault",
                key.name,
                "it is where an archive belongs, and is none",
                "something else writes to this store; give it a store of its own",
            )
            continue
        agent, thread = parts
        where = f"the archive of thread {thread!r} of agent {agent!r}"
        if (agent, thread) not in threads:
            what = "the record has no such thread: no forgetting of a user finds it"
            yield Finding("fault", where, what, "`flowrt memory clear --thread T --agent A`")
        log = await tier.space.read_log(key.name)
        try:
            read_archived(log.entries if log is not None else [])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            yield Finding("fault", where, f"it cannot be read: {error!r}", SAVE_FIRST)


async def check_requests(tier: Tier, info: ThreadInfo, turns: list[Turn]) -> AsyncIterator[Finding]:
    """Whether what the record says of the requests of a thread can be read, and their frames are
    there."""
    where = f"thread {info.thread!r} of agent {info.agent!r}"
    try:
        exchanges = Exchanges.of(turns)
    except StoreError as error:
        yield Finding("fault", where, str(error), f"`show --at` cannot tell; {CLEAR}")
        return
    frames = {shown.frame for shown in exchanges.shown.values()}
    missing = [
        frame
        for frame in sorted(frames)
        if await tier.space.get(frame_key(info.agent, frame)) is None
    ]
    if missing:
        what = f"{counted(len(missing), 'frame')} of its requests (system prompt, tools) are gone"
        yield Finding("note", where, what, "`show --at` says where it lacks them")
