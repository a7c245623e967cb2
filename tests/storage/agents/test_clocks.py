"""Replicas whose clocks differ: the order is the store's, times are for show."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowrt.ids import new_id
from flowrt.storage.agents.protocol import Dated, KeepsAgents, Person, Place
from flowrt.storage.tiers import parse_storage_url
from flowrt.testing.agent_memory_conformance.suite import said, texts
from flowrt.testing.store_conformance.suite import opened


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_clocks_that_differ_by_ten_minutes_order_nothing(
    kind: str, tmp_path: Path, redis_url: str
) -> None:
    """FB-71: what is written last is the newest, also where a clock was ahead, or stood still."""
    urls = {"sqlite": f"sqlite:{tmp_path}/state.db", "redis": redis_url}
    service, now = f"test {new_id()}", 1_800_000_000.0
    person = Person(service, "a", "u")
    async with opened(parse_storage_url(urls[kind])) as store:
        assert isinstance(store, KeepsAgents)
        record = store.agents()
        assert isinstance(record, Dated)
        ahead, behind = record.dated(lambda: now + 600), record.dated(lambda: now)
        for number in range(10):
            agents = (ahead, behind)[number % 2]
            place = Place(service, "a", f"t{number}", "u")
            await agents.append_turns(place._replace(thread="shared"), said(f"lemon {number}"))
            await agents.touch(place)
            await agents.put_fact(person, f"n{number}", "v", expect=0)
        await ahead.put_fact(person, "changed", "first", expect=0)
        await behind.put_fact(person, "changed", "last", expect=1)
        await behind.put_fact(person, "newest", "v", expect=0)
        turns = (await record.turns(Place(service, "a", "shared"))).items
        facts = [fact.name for fact in (await record.facts(person)).items]
        threads = [info.thread for info in (await record.threads(service, "a")).items]
        changed = await record.fact(person, "changed")
    assert [f"lemon {number}" for number in range(10)] == texts(turns)
    assert ["newest", "changed", *(f"n{number}" for number in reversed(range(10)))] == facts
    assert [f"t{number}" for number in reversed(range(10))] == [t for t in threads if t != "shared"]
    assert changed is not None
    assert "last" == changed.value
