"""Two replicas on one record, doing random work at once, held to the model."""

from __future__ import annotations

import asyncio
import copy
from itertools import permutations, product
from typing import Any

from hypothesis import strategies as st

from flowrt.ids import new_id
from flowrt.storage.agents.protocol import AgentStore, KeepsAgents, Person
from flowrt.storage.protocol import KeyValue
from flowrt.testing.store_conformance.suite import opened
from tests.storage.agents.model import HOMES, USERS, Model, Work, done, state, work

Step = list[tuple[int, Work]]
"""Work that is done at once, each on one of the two replicas."""


@st.composite
def _step(draw: st.DrawFn) -> Step:
    def choose(options: Any) -> Any:
        return draw(st.sampled_from(options))

    pieces = [(choose((0, 1)), work(choose)) for _ in range(choose((1, 2, 3)))]
    # Embedding reads and then writes: only alone does it have one outcome.
    alone = [piece for piece in pieces if piece[1].what == "embed"]
    return alone[:1] or pieces


steps = st.lists(_step(), min_size=1, max_size=8)


def agents(store: KeyValue) -> AgentStore:
    """The record in a store."""
    assert isinstance(store, KeepsAgents)
    return store.agents()


async def play(history: list[Step], one: KeyValue, other: KeyValue) -> None:
    """Do the steps: each has to come out as if its work had been done one after the other."""
    service, model = new_id(), Model()
    seen: dict[tuple[Person, int], Any] = {}
    async with opened(one), opened(other):
        replicas = agents(one), agents(other)
        for step in history:
            at_once = [(replica, model.read(piece)) for replica, piece in step]
            answers = await asyncio.gather(
                *(done(piece, replicas[replica], service) for replica, piece in at_once)
            )
            found = await state(replicas[0], service)
            model = _explains(model, [piece for _, piece in at_once], answers, found)
            for home, user in product(HOMES, USERS):
                person = Person(f"{service}{home[0]}", home[1], user)
                version = await replicas[1].version(person)
                content = found[f"{home} {user}"][1:]
                assert content == seen.setdefault((person, version), content)
        assert found == await state(replicas[1], service)


def _explains(
    before: Model, pieces: list[Work], answers: list[Any], found: dict[str, Any]
) -> Model:
    """The model after the work in the order that gives these answers and this state."""
    for order in permutations(range(len(pieces))):
        after = copy.deepcopy(before)
        told = {at: after.does(pieces[at]) for at in order}
        if [told[at] for at in range(len(pieces))] == answers and after.state() == found:
            return after
    after = copy.deepcopy(before)
    expected = [after.does(piece) for piece in pieces]
    assert (pieces, expected, after.state()) == (pieces, answers, found)
    raise AssertionError("no order of the work explains what the store answered")
