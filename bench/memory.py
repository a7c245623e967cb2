"""Milliseconds of the calls of a remembering agent, by how much the agent already has."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from redis import Redis

from bench.measure import ANSWER, USER, median, report
from flowrt.errors import CallError
from flowrt.ids import new_id
from flowrt.storage.agents.protocol import AgentStore, NewTurn, Person, Place
from flowrt.storage.memory import MemoryStore
from flowrt.storage.tiers import Space, Storage, parse_storage_url
from tests.redis_server import RedisServer

AT = (1_000, 10_000, 100_000)  # turns of the agent
SAMPLE = 40
THREADS, USERS, FACTS = 500, 50, 200  # facts are those of one user
PREAMBLE, PAGE = 50, 100
CHECKPOINT = [b"r" * 700] * 2
"""What a checkpoint adds to the working context: a call of a tool and its result."""

PAIR = [NewTurn("user", USER, 50), NewTurn("assistant", ANSWER, 50)]


async def main() -> None:
    """Fill one agent and measure at each mark, on every store that is there."""
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder))
        server.start()
        try:
            for run in range(3):
                path = Path(folder) / f"{run}.db"
                await _one_agent("sqlite", f"sqlite:{path}", run, path)
                await _one_agent("redis", server.url, run)
        finally:
            server.stop()


@asynccontextmanager
async def _storage(url: str) -> AsyncIterator[Storage]:
    storage = Storage(f"bench {new_id()}", parse_storage_url(url), MemoryStore())
    try:
        await storage.open()
        yield storage
    finally:
        await storage.close()


async def _one_agent(store: str, url: str, run: int, path: Path | None = None) -> None:
    async with _storage(url) as storage:
        try:
            agents = storage.agents()
        except CallError as error:
            report("memory", store=store, run=run, skipped=str(error))
            return
        person = Person("bench", f"agent {run}", "u0")
        before = _used_memory(url) if path is None else 0
        for number in range(FACTS):
            await agents.put_fact(person, f"fact {number}", USER, expect=0)
        done = 0
        for mark in AT:
            while done < mark:
                batch = PAIR * 5
                await agents.append_turns(_place(person, done // len(batch)), batch)
                done += len(batch)
            figures = await _measure(agents, storage.space("user"), person, done)
            done += SAMPLE * len(PAIR)
            report("memory", store=store, run=run, turns=mark, ms=figures)
        stored = (_used_memory(url) if path is None else _file_size(path)) - before
        text = (len(USER) + len(ANSWER)) // len(PAIR)
        report("memory", store=store, run=run, bytes_a_turn=stored // done, of_them_text=text)
        if path is None:
            return
        await _removals(store, run, agents, person)


def _file_size(path: Path) -> int:
    return path.stat().st_size + path.with_name(path.name + "-wal").stat().st_size


def _used_memory(url: str) -> int:
    """What a Redis takes in its memory for all that is in it."""
    with Redis.from_url(url) as client:
        used: int = client.info("memory")["used_memory"]
        return used


def _place(person: Person, number: int) -> Place:
    user = number % THREADS % USERS
    return Place(person.service, person.agent, f"thread {number % THREADS}", f"u{user}")


async def _measure(agents: AgentStore, space: Space, person: Person, done: int) -> dict[str, float]:
    service, agent, _ = person
    numbers = iter(range(done, done + SAMPLE))
    log = f"agents/{agent}/{done}"
    return {
        "append_pair": await _time(
            lambda: agents.append_turns(_place(person, next(numbers)), PAIR)
        ),
        "facts_preamble": await _time(lambda: agents.facts(person, limit=PREAMBLE)),
        "put_fact": await _time(lambda: agents.put_fact(person, "changing", new_id(), expect=None)),
        "threads_page": await _time(lambda: agents.threads(service, agent, limit=PAGE)),
        "threads_page_of_user": await _time(
            lambda: agents.threads(service, agent, user="u0", limit=PAGE)
        ),
        "newest_turns": await _time(
            lambda: agents.turns(_place(person, 0), limit=20, newest_first=True)
        ),
        "version": await _time(lambda: agents.version(person)),
        "checkpoint": await _time(lambda: space.append(log, CHECKPOINT, head={"iteration": 1})),
    }


async def _removals(store: str, run: int, agents: AgentStore, person: Person) -> None:
    """What it costs that the files do not hold what was removed."""
    service, agent, _ = person
    facts = iter(range(FACTS))
    threads = iter(range(THREADS))
    users = iter(range(1, USERS))
    few = 5
    figures = {
        "delete_fact": await _time(lambda: agents.delete_fact(person, f"fact {next(facts)}"), few),
        "delete_thread": await _time(
            lambda: agents.delete_thread(_place(person, next(threads))), few
        ),
        "forget_user": await _time(
            lambda: agents.forget_user(service, f"u{next(users)}", agent=agent), few
        ),
    }
    report("memory", store=store, run=run, turns=AT[-1], ms_of_removals=figures)


async def _time(call: Callable[[], Awaitable[object]], times: int = SAMPLE) -> float:
    """The median of the milliseconds that a call takes."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        await call()
        taken.append((time.perf_counter() - began) * 1e3)
    return median(taken)


if __name__ == "__main__":
    os.environ.setdefault("LOG_LEVEL", "error")
    asyncio.run(main())
