"""Turns: what comes back, in which order, and whose they are."""

from __future__ import annotations

from typing import Any

import pytest

from flowrt.storage.agents.protocol import NewTurn, Place
from flowrt.testing.agent_memory_conformance.suite import (
    Keeping,
    Suite,
    in_a_loop,
    person_of,
    said,
    texts,
)
from flowrt.testing.store_conformance.values import JSON_VALUES, NOT_JSON

ODD_TEXTS = (
    "",
    " ",
    "trailing space ",
    "two\r\nlines\n",
    "nul \0 inside",
    "lone \ud83d surrogate",
    "\U0001f600",
    "é",
    "e\u0301",
    "\ufeffmark",
    '{"json": [1]}',
    "'; DROP TABLE turns; --",
    "x" * 300_000,
)
"""Texts that a store may change on the way."""


class TurnConformance(Suite):
    """`append_turns`, `turns`, `turns_of`."""

    @in_a_loop
    async def test_turns_are_numbered_from_1_and_come_back_as_they_were_given(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        first = await agents.append_turns(
            place, [NewTurn("user", "hi", 3, {"k": [1, None]}), NewTurn("assistant", "hello", 4)]
        )
        second = await agents.append_turns(place, [NewTurn("user", "bye")])
        assert [
            (turn.thread, turn.user, turn.seq, turn.role, turn.text, turn.tokens, turn.attrs)
            for turn in first + second
        ] == [
            ("t", "u", 1, "user", "hi", 3, {"k": [1, None]}),
            ("t", "u", 2, "assistant", "hello", 4, {}),
            ("t", "u", 3, "user", "bye", 0, {}),
        ]
        assert first + second == (await agents.turns(place)).items
        assert all(turn.at > 0 for turn in first + second)

    @in_a_loop
    async def test_texts_come_back_verbatim(self, store: Keeping, service: str) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        given = await agents.append_turns(place, said(*ODD_TEXTS))
        found = (await agents.turns(place)).items
        assert list(ODD_TEXTS) == texts(given)
        assert list(ODD_TEXTS) == texts(found)
        assert list(ODD_TEXTS) == texts((await agents.turns_of(person_of(place))).items)

    @in_a_loop
    async def test_attributes_come_back_equal(self, store: Keeping, service: str) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        attrs: list[dict[str, Any]] = [{"k": value} for value in JSON_VALUES]
        attrs.append({"nul \0": 1, "": 2, "lone \ud83d": 3})
        turns = [NewTurn("user", "x", 0, one) for one in attrs]
        given = await agents.append_turns(place, turns)
        found = (await agents.turns(place)).items
        assert attrs == [turn.attrs for turn in given]
        assert attrs == [turn.attrs for turn in found]

    @in_a_loop
    async def test_attributes_that_are_not_json_are_refused_and_nothing_is_written(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        for value, path in NOT_JSON:
            turns = [NewTurn("user", "fine"), NewTurn("user", "x", 0, {"k": value})]
            with pytest.raises(ValueError, match=path):
                await agents.append_turns(place, turns)
        assert await agents.thread(place) is None

    @in_a_loop
    async def test_what_is_recorded_does_not_follow_the_object_it_came_from(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        attrs = {"k": [1]}
        (given,) = await agents.append_turns(place, [NewTurn("user", "x", 0, attrs)])
        attrs["k"].append(2)
        given.attrs["k"] = "changed"
        (found,) = (await agents.turns(place)).items
        assert found.attrs == {"k": [1]}
        found.attrs["k"] = "changed"
        assert (await agents.turns(place)).items[0].attrs == {"k": [1]}

    @in_a_loop
    async def test_no_turns_change_nothing(self, store: Keeping, service: str) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        assert await agents.append_turns(place, []) == []
        assert await agents.thread(place) is None
        await agents.append_turns(place, said("x"))
        before = await agents.thread(place)
        assert await agents.append_turns(place, []) == []
        assert before == await agents.thread(place)

    @in_a_loop
    async def test_turns_are_read_from_either_end(self, store: Keeping, service: str) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        await agents.append_turns(place, said(*"abcdef"))

        async def read(**options: Any) -> tuple[str, str | None]:
            page = await agents.turns(place, **options)
            return "".join(texts(page.items)), page.after

        assert await read() == ("abcdef", None)
        assert await read(limit=6) == ("abcdef", None)
        assert await read(limit=2) == ("ab", "2")
        assert await read(limit=2, after=2) == ("cd", "4")
        assert await read(limit=2, after=5) == ("f", None)
        assert await read(after=6) == ("", None)
        assert await read(after=99) == ("", None)
        assert await read(limit=2, newest_first=True) == ("fe", "5")
        assert await read(limit=2, newest_first=True, after=5) == ("dc", "3")
        assert await read(limit=2, newest_first=True, after=3) == ("ba", None)
        assert await read(newest_first=True, after=1) == ("", None)

    @in_a_loop
    async def test_ids_rise_over_all_threads(self, store: Keeping, service: str) -> None:
        agents = store.agents()
        ids = [
            turn.id
            for number in range(12)
            for turn in await agents.append_turns(
                Place(service, f"a{number % 2}", f"t{number % 3}", f"u{number % 3}"), said("x", "y")
            )
        ]
        assert sorted(set(ids)) == ids

    @in_a_loop
    async def test_an_id_is_never_given_again(self, store: Keeping, service: str) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        (before,) = await agents.append_turns(place, said("x"))
        await agents.delete_thread(place)
        (deleted,) = await agents.append_turns(place, said("x"))
        await agents.forget_user(service, "u")
        (forgotten,) = await agents.append_turns(place, said("x"))
        assert before.id < deleted.id < forgotten.id
        assert [before.seq, deleted.seq, forgotten.seq] == [1, 1, 1]

    @in_a_loop
    async def test_a_persons_turns_of_all_threads_come_in_the_order_of_their_ids(
        self, store: Keeping, service: str
    ) -> None:
        agents = store.agents()
        mine = []
        for number in range(10):
            thread, user = f"t{number % 3}", "uv"[number % 3 == 2]
            turns = await agents.append_turns(Place(service, "a", thread, user), said(f"{number}"))
            mine += turns if user == "u" else []
        person = person_of(Place(service, "a", "", "u"))
        assert mine == (await agents.turns_of(person)).items
        page = await agents.turns_of(person, limit=2)
        assert (mine[:2], str(mine[1].id)) == (page.items, page.after)
        assert mine[2:] == (await agents.turns_of(person, after=mine[1].id)).items
        assert (await agents.turns_of(person, after=mine[-1].id)).items == []

    @in_a_loop
    async def test_a_thread_that_is_not_there_has_no_turns(
        self, store: Keeping, service: str
    ) -> None:
        agents, place = store.agents(), Place(service, "a", "t", "u")
        page = await agents.turns(place)
        assert (page.items, page.after) == ([], None)
        page = await agents.turns_of(person_of(place))
        assert (page.items, page.after) == ([], None)
        assert await agents.thread(place) is None
