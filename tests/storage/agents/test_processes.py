"""Several processes on one record of agents."""

from __future__ import annotations

import random
import subprocess

import pytest

from flowrt.ids import new_id
from flowrt.storage.agents.protocol import AgentStore, Person, Place
from tests.storage.test_processes import finish, go, process, started, storage_at
from tests.storage.test_processes import url as url

WORK = """
from flowrt.storage.agents.protocol import NewTurn, Person, Place
agents, person = storage.agents(), Person(service, "a", "ann")
for number in range({count}):
    turns = [NewTurn("user", f"{{name}} {{number}} {{half}}") for half in "ab"]
    await agents.append_turns(Place(service, "a", f"t{{number % 2}}", "ann"), turns)
    while True:
        fact = await agents.fact(person, "count")
        value, version = (int(fact.value), fact.version) if fact else (0, 0)
        try:
            await agents.put_fact(person, "count", str(value + 1), expect=version)
            break
        except VersionConflict:
            pass
    print(number, flush=True)
"""


async def check(agents: AgentStore, service: str) -> dict[str, list[str]]:
    """What each process said, having checked that nothing is out of order or halved."""
    person = Person(service, "a", "ann")
    turns = (await agents.turns_of(person, limit=100_000)).items
    numbers = [turn.id for turn in turns]
    assert sorted(set(numbers)) == numbers
    for thread in ("t0", "t1"):
        mine = [turn for turn in turns if turn.thread == thread]
        assert list(range(1, len(mine) + 1)) == [turn.seq for turn in mine]
        info = await agents.thread(Place(service, "a", thread))
        assert info is not None
        # One version for each append of two turns.
        assert (len(mine), len(mine) // 2) == (info.turns, info.version)
    pairs = zip(turns[::2], turns[1::2], strict=True)
    assert all((a.text[:-1] + "b", a.thread) == (b.text, b.thread) for a, b in pairs)
    fact = await agents.fact(person, "count")
    assert fact is not None
    values = [*(was.value for was in fact.earlier), fact.value]
    assert [str(number) for number in range(1, fact.version + 1)] == values
    said: dict[str, list[str]] = {}
    for turn in turns:
        name, number, half = turn.text.split(" ")
        if half == "a":
            said.setdefault(name, []).append(number)
    return said


async def test_three_processes_lose_no_turn_and_no_change_of_a_fact(url: str) -> None:
    service, work = f"test {new_id()}", WORK.format(count=40)
    with (
        process(url, service, "one", work) as one,
        process(url, service, "two", work) as two,
        process(url, service, "three", work) as three,
    ):
        for running in (one, two, three):
            started(running)
        for running in (one, two, three):
            go(running)
        for running in (one, two, three):
            finish(running)
    storage = storage_at(url, service)
    said = await check(storage.agents(), service)
    fact = await storage.agents().fact(Person(service, "a", "ann"), "count")
    await storage.close()
    everything = [str(number) for number in range(40)]
    assert {"one": everything, "two": everything, "three": everything} == said
    assert fact is not None
    assert 120 == fact.version


@pytest.mark.parametrize("seed", range(4))
async def test_a_killed_process_loses_nothing_acknowledged_and_hinders_nobody(
    url: str, seed: int
) -> None:
    moment = random.Random(seed)
    service = f"test {new_id()}"
    with (
        process(url, service, "killed", WORK.format(count=100_000)) as killed,
        process(url, service, "other", WORK.format(count=40)) as other,
    ):
        for running in (killed, other):
            started(running)
        for running in (killed, other):
            go(running)
        assert killed.stdout is not None
        acknowledged = [killed.stdout.readline().strip() for _ in range(moment.randrange(1, 12))]
        with pytest.raises(subprocess.TimeoutExpired):
            killed.wait(moment.uniform(0, 0.02))
        killed.kill()
        acknowledged += [line.strip() for line in killed.stdout.read().splitlines()]
        finish(other)
    storage = storage_at(url, service)
    said = await check(storage.agents(), service)
    await storage.close()
    assert [str(number) for number in range(40)] == said["other"]
    assert acknowledged == said["killed"][: len(acknowledged)]
    assert len(said["killed"]) - len(acknowledged) in (0, 1)
