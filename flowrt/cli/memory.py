"""`flowrt memory`: what the agents of a service remember."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from flowrt.cli.exits import DONE
from flowrt.config.load import load_config
from flowrt.memory.entry import Entry
from flowrt.memory.summary import flatten
from flowrt.memory.transcript import PREFIX, Thread
from flowrt.storage.tiers import Space, Storage

_TIERS = {"persistent": "user", "volatile": "user_volatile"}


def show_command(
    config: str, thread: str | None, storage: str | None, env_file: str | None, as_json: bool
) -> int:
    """Print the threads, or one thread's messages."""
    tiers = _storage(config, storage, env_file)
    if thread is None:
        _print_threads(asyncio.run(_threads(tiers)), as_json)
    else:
        _print_messages(asyncio.run(_messages(tiers, thread)), as_json)
    return DONE


def clear_command(config: str, thread: str, storage: str | None, env_file: str | None) -> int:
    """Forget a thread and say whether there was one."""
    cleared = asyncio.run(_clear(_storage(config, storage, env_file), thread))
    print(json.dumps({"thread": thread, "cleared": cleared}, ensure_ascii=False))
    return DONE


def _storage(config: str, storage: str | None, env_file: str | None) -> Storage:
    loaded = load_config(config, env_file=env_file)
    return Storage.from_urls(loaded.name, storage)


async def _threads(storage: Storage) -> list[dict[str, Any]]:
    found = []
    try:
        for tier, namespace in _TIERS.items():
            found += [
                {"thread": name, "tier": tier, "version": version}
                async for name, version in _names(storage.space(namespace))
            ]
    finally:
        await storage.close()
    return found


async def _names(space: Space) -> Any:
    after: str | None = None
    while True:
        page = await space.scan(PREFIX, after=after)
        for key in page.keys:
            yield key.name.removeprefix(PREFIX), key.version
        if page.after is None:
            return
        after = page.after


async def _messages(storage: Storage, thread: str) -> list[Entry]:
    try:
        for namespace in _TIERS.values():
            transcript = await Thread(storage.space(namespace), thread).load()
            if transcript.entries:
                return transcript.entries
    finally:
        await storage.close()
    return []


async def _clear(storage: Storage, thread: str) -> bool:
    try:
        cleared = [
            await Thread(storage.space(namespace), thread).clear() for namespace in _TIERS.values()
        ]
    finally:
        await storage.close()
    return any(cleared)


def _print_threads(threads: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(threads, ensure_ascii=False))
        return
    for row in threads:
        print(f"{row['thread']}\t{row['tier']}\t{row['version']} writes")


def _print_messages(entries: list[Entry], as_json: bool) -> None:
    if as_json:
        messages = [{**entry.message, "kind": entry.kind} for entry in entries]
        print(json.dumps(messages, ensure_ascii=False))
        return
    for entry in entries:
        print(flatten(entry))
