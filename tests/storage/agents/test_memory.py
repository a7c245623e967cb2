"""The record of agents in memory."""

from __future__ import annotations

import pytest

from flowrt.errors import StoreError
from flowrt.storage.agents.memory import MemoryAgentStore
from flowrt.storage.agents.protocol import NewTurn, Person, Place
from flowrt.storage.memory import VOLATILE_BYTES, MemoryStore
from flowrt.testing.agent_memory_conformance import AgentMemoryConformance, Keeping
from flowrt.testing.agent_memory_conformance.ids import fill
from flowrt.testing.agent_memory_conformance.suite import said, vector
from tests.storage.hands import HandClock


class TestMemoryAgentStore(AgentMemoryConformance):
    keeps_parts = False

    @pytest.fixture
    def store(self) -> Keeping:
        return MemoryStore()

    def another(self, store: Keeping) -> Keeping:
        return store


class TestBoundedMemoryAgentStore(TestMemoryAgentStore):
    @pytest.fixture
    def store(self) -> Keeping:
        return MemoryStore(max_bytes=VOLATILE_BYTES)


def place(thread: str, user: str = "u", agent: str = "a") -> Place:
    return Place("s", agent, thread, user)


async def names(store: MemoryAgentStore) -> list[str]:
    pages = [await store.threads("s", agent) for agent in ("a", "b")]
    return sorted(info.thread for page in pages for info in page.items)


async def test_the_threads_that_were_active_the_longest_ago_go_first() -> None:
    store = MemoryAgentStore(max_bytes=15_000)
    for number, thread in enumerate("pqr"):
        await store.append_turns(place(thread, agent="ab"[number % 2]), said("x" * 3000))
    await store.touch(place("p"))
    await store.append_turns(place("t"), said("x" * 3000))
    assert ["p", "r", "t"] == await names(store)
    # The one that is written to does not go for its own sake.
    await store.append_turns(place("p"), said("x" * 5000))
    assert ["p", "t"] == await names(store)


async def test_facts_stay_and_what_alone_is_too_large_is_refused() -> None:
    store = MemoryAgentStore(max_bytes=10_000)
    person = Person("s", "a", "u")
    await store.put_fact(person, "n", "v" * 3000, expect=0)
    await store.append_turns(place("t"), said("x" * 1000))
    with pytest.raises(StoreError, match=r"memory:.*FLOWRT_VOLATILE"):
        await store.append_turns(place("t"), said("x" * 6000))
    with pytest.raises(StoreError, match=r"memory:.*FLOWRT_VOLATILE"):
        await store.put_fact(person, "n", "w" * 7000, expect=1)
    assert ["t"] == await names(store)
    await store.put_fact(person, "n", "w" * 4000, expect=1)
    assert [] == await names(store)
    fact = await store.fact(person, "n")
    assert fact is not None
    assert ("w" * 4000, ["v" * 3000]) == (fact.value, [one.value for one in fact.earlier])


async def test_the_bound_holds_for_any_mix_of_writes_and_nothing_is_counted_twice() -> None:
    store = MemoryAgentStore(max_bytes=60_000)
    for at in range(3000):
        user = "uvw"[at % 3]
        person, thread = Person("s", "a", user), place(f"t{at % 23}{user}", user)
        match at % 7:
            case 0 | 1 | 2:
                turns = [NewTurn("user", "x" * (at * 31 % 3000), 0, {"at": at})] * 2
                (first, _) = await store.append_turns(thread, turns)
                await store.put_vectors(person, [vector("turn", first.id, *range(at % 90 + 1))])
            case 3:
                value = "y" * (at * 17 % 900)
                fact = await store.put_fact(person, f"n{at % 5}", value, expect=None)
                await store.put_vectors(person, [vector("fact", fact.id, 1.0, 2.0)] * 2)
            case 4:
                await store.delete_fact(person, f"n{at % 5}")
            case 5:
                await store.set_title(thread, "z" * (at % 80))
            case 6:
                await store.delete_thread(place(f"t{at * 5 % 23}{user}"))
        assert store._thread_bytes <= store._bytes <= 60_000
    for user in "uvw":
        await store.forget_user("s", user)
    assert (0, 0) == (store._bytes, store._thread_bytes)
    assert {} == store._versions


async def test_a_thread_that_went_is_told_and_its_person_has_a_new_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = HandClock()
    keys = MemoryStore(max_bytes=5000, clock=clock)
    store, person = keys.agents(), Person("s", "a", "u")
    await fill(store, place("old"), "word")
    before = await store.version(person)
    for number in range(5):
        await store.append_turns(place(f"new{number}", "v"), said("x" * 1000))
    assert before != await store.version(person)
    assert [] == (await store.turns_of(person)).items
    lines = capsys.readouterr().err.splitlines()
    assert 1 == len(lines)
    assert "the record of the least recently active threads is gone" in lines[0]
    await keys.close()
    assert '"evicted": ' in capsys.readouterr().err
