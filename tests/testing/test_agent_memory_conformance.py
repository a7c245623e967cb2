"""The suite for records of agents finds broken ones: one way each, with the test that says so."""

from __future__ import annotations

import asyncio
import fnmatch
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from flowrt.errors import VersionConflict
from flowrt.storage.agents.memory import MemoryAgentStore
from flowrt.storage.agents.protocol import (
    Fact,
    NewTurn,
    Page,
    Person,
    Place,
    Removed,
    ThreadInfo,
    Turn,
    Vector,
)
from flowrt.storage.memory import MemoryStore
from flowrt.testing import AgentMemoryConformance
from flowrt.testing.agent_memory_conformance import Keeping

Suite = AgentMemoryConformance


class JoinsIds(MemoryAgentStore):
    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        return await super().append_turns(_joined(place), turns)

    async def thread(self, place: Place) -> ThreadInfo | None:
        found = await super().thread(_joined(place))
        return found and replace(found, agent=place.agent, thread=place.thread)

    async def turns(self, place: Place, **options: Any) -> Page[Turn]:
        return await super().turns(_joined(place), **options)


def _joined(place: Place) -> Place:
    return Place(place.service, "", f"{place.agent}:{place.thread}", place.user)


class NormalizesUsers(MemoryAgentStore):
    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        user = unicodedata.normalize("NFC", place.user)
        return await super().append_turns(place._replace(user=user), turns)


class FoldsAgents(MemoryAgentStore):
    async def touch(self, place: Place) -> ThreadInfo:
        return await super().touch(place._replace(agent=place.agent.lower()))


class ForgetsByGlob(MemoryAgentStore):
    async def forget_user(self, service: str, user: str, **options: Any) -> Removed:
        gone = Removed()
        for person in list(self._versions):
            if person.service == service and fnmatch.fnmatchcase(person.user, user or "*"):
                gone += await super().forget_user(service, person.user or "?", **options)
        return gone


class CutsNamesAtNul(MemoryAgentStore):
    async def fact(self, person: Person, name: str) -> Fact | None:
        return await super().fact(person, name.partition("\0")[0])


class FiltersUsersBehind(MemoryAgentStore):
    async def turns(self, place: Place, **options: Any) -> Page[Turn]:
        return await super().turns(place._replace(user=""), **options)


class RenamesAnybodys(MemoryAgentStore):
    async def set_title(self, place: Place, title: str) -> None:
        await super().set_title(place._replace(user=""), title)


class ChangesHands(MemoryAgentStore):
    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        thread = self._find(place._replace(user=""))
        if thread is not None and place.user:
            thread.user = place.user
        return await super().append_turns(place, turns)


class AttributesOnlyWhatFollows(MemoryAgentStore):
    async def turns_of(self, person: Person, **options: Any) -> Page[Turn]:
        page = await super().turns_of(person, **options)
        return Page([turn for turn in page.items if turn.text != "first"], page.after)


class LosesVectorsOfNobody(MemoryAgentStore):
    def _attribute(self, thread: Any, user: str) -> None:
        self._drop_vectors(thread)
        super()._attribute(thread, user)


class StripsTexts(MemoryAgentStore):
    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        return await super().append_turns(place, [replace(t, text=t.text.strip()) for t in turns])


class NumbersAreCounted(MemoryAgentStore):
    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        self._last = sum(len(t.said) for ts in self._threads.values() for t in ts.values())
        return await super().append_turns(place, turns)


class ReadsThenWrites(MemoryAgentStore):
    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        thread = self._find(place._replace(user=""))
        before = list(thread.said) if thread else []
        await asyncio.sleep(0)
        added = await super().append_turns(place, turns)
        thread = self._find(place._replace(user=""))
        assert thread is not None
        thread.said = [*before, *thread.said[-len(turns) :]]
        return added


class AppendsOneByOne(MemoryAgentStore):
    async def append_turns(self, place: Place, turns: Sequence[NewTurn]) -> list[Turn]:
        added = []
        for turn in turns:
            added += await super().append_turns(place, [turn])
            await asyncio.sleep(0)
        return added


class TitlesAreActivity(MemoryAgentStore):
    async def set_title(self, place: Place, title: str) -> None:
        if self._find(place) is not None:
            await self.touch(place)
        await super().set_title(place, title)


class DeletesFactsToo(MemoryAgentStore):
    async def delete_thread(self, place: Place) -> Removed:
        for person, facts in self._facts.items():
            for fact in list(facts.values()):
                if fact.thread == place.thread:
                    await self.delete_fact(person, fact.name)
        return await super().delete_thread(place)


class LeavesVectors(MemoryAgentStore):
    def _drop_vectors(self, thread: Any) -> int:
        return sum(said.id in self._vectors.get(thread.person, {}) for said in thread.said)


class LastWriterWins(MemoryAgentStore):
    async def put_fact(self, person: Person, name: str, value: str, **options: Any) -> Fact:
        return await super().put_fact(person, name, value, **(options | {"expect": None}))


class LooksThenPuts(MemoryAgentStore):
    async def put_fact(self, person: Person, name: str, value: str, **options: Any) -> Fact:
        before = await self.fact(person, name)
        actual, expect = before.version if before else 0, options["expect"]
        if expect is not None and expect != actual:
            raise VersionConflict(name, expect, actual)
        await asyncio.sleep(0)
        return await super().put_fact(person, name, value, **(options | {"expect": None}))


class KeepsNoEarlierValues(MemoryAgentStore):
    async def put_fact(self, person: Person, name: str, value: str, **options: Any) -> Fact:
        fact = replace(await super().put_fact(person, name, value, **options), earlier=())
        self._facts[person][name] = fact
        return fact


class RepeatsAreChanges(MemoryAgentStore):
    async def put_fact(self, person: Person, name: str, value: str, **options: Any) -> Fact:
        before = await self.fact(person, name)
        if before is not None and before.value == value:
            await super().put_fact(person, name, value + "!", **options)
            options["expect"] = None
        return await super().put_fact(person, name, value, **options)


class ListsByName(MemoryAgentStore):
    async def facts(self, person: Person, **options: Any) -> Page[Fact]:
        page = await super().facts(person, **options)
        return Page(sorted(page.items, key=lambda fact: fact.name), page.after)


class OffsetCursors(MemoryAgentStore):
    async def threads(self, service: str, agent: str, **options: Any) -> Page[ThreadInfo]:
        start, limit = int(options.pop("after", None) or 0), options.pop("limit", 100)
        page = await super().threads(service, agent, limit=10_000, **options)
        more = len(page.items) > start + limit
        return Page(page.items[start : start + limit], str(start + limit) if more else None)


class NeverSaysLast(MemoryAgentStore):
    async def facts(self, person: Person, **options: Any) -> Page[Fact]:
        page = await super().facts(person, **options)
        return Page(page.items, str(page.items[-1].id) if page.items else None)


class KeepsStrayVectors(MemoryAgentStore):
    async def put_vectors(self, person: Person, vectors: Sequence[Vector]) -> None:
        self._vectors.setdefault(person, {}).update({vector.id: vector for vector in vectors})
        self._changed(person)


class ForgetsThePresentOnly(MemoryAgentStore):
    def _forget(self, person: Person) -> None:
        before = dict(self._facts.get(person, {}))
        super()._forget(person)
        self._facts[person] = {name: replace(fact, value="") for name, fact in before.items()}


class ForgetsAPage(MemoryAgentStore):
    def _forget(self, person: Person) -> None:
        for thread in self._threads_of(person)[:100]:
            self._drop_thread(thread)


class DryRunsForget(MemoryAgentStore):
    async def forget_user(self, service: str, user: str, **options: Any) -> Removed:
        return await super().forget_user(service, user, **(options | {"dry_run": False}))


class VersionsCountContent(MemoryAgentStore):
    async def version(self, person: Person) -> int:
        counts = self._everything_of(person)
        return counts.turns + counts.facts + counts.vectors


class VersionsStandStill(MemoryAgentStore):
    async def put_vectors(self, person: Person, vectors: Sequence[Vector]) -> None:
        before = self._versions[person]
        await super().put_vectors(person, vectors)
        self._versions[person] = before


class EpochsOfVersions(MemoryAgentStore):
    async def epoch(self, person: Person) -> int:
        return await self.version(person)


class EpochsNeverEnd(MemoryAgentStore):
    def _moved(self, person: Person) -> None:
        self._changed(person)


class Broken(MemoryStore):
    """A store with a broken record."""

    def __init__(self, agents: type[MemoryAgentStore]) -> None:
        super().__init__()
        self._agents = agents()


class Checked(AgentMemoryConformance):
    """The hook of the store in memory."""

    def another(self, store: Keeping) -> Keeping:
        return store


BROKEN: list[tuple[type[MemoryAgentStore], Callable[..., None]]] = [
    (JoinsIds, Suite.test_no_separator_moves_an_id_into_the_next),
    (NormalizesUsers, Suite.test_every_user_is_only_themselves),
    (FoldsAgents, Suite.test_every_agent_is_only_itself),
    (ForgetsByGlob, Suite.test_nobody_sees_what_is_anothers),
    (ForgetsByGlob, Suite.test_nobody_and_everybody_cannot_be_forgotten),
    (CutsNamesAtNul, Suite.test_every_fact_is_only_itself),
    (FiltersUsersBehind, Suite.test_nobody_sees_what_is_anothers),
    (RenamesAnybodys, Suite.test_a_title_for_no_thread_or_for_anothers_names_nothing),
    (ChangesHands, Suite.test_a_thread_never_changes_hands),
    (
        AttributesOnlyWhatFollows,
        Suite.test_the_first_write_that_names_a_user_makes_the_thread_theirs,
    ),
    (LosesVectorsOfNobody, Suite.test_vectors_follow_a_thread_to_its_user),
    (StripsTexts, Suite.test_texts_come_back_verbatim),
    (NumbersAreCounted, Suite.test_an_id_is_never_given_again),
    (ReadsThenWrites, Suite.test_of_100_appends_at_once_every_number_is_given_once),
    (AppendsOneByOne, Suite.test_a_cancelled_append_happens_whole_or_not_at_all),
    (TitlesAreActivity, Suite.test_a_title_names_a_thread_and_is_no_activity),
    (DeletesFactsToo, Suite.test_a_deleted_thread_leaves_the_facts_that_came_from_it),
    (LeavesVectors, Suite.test_a_deleted_thread_leaves_the_facts_that_came_from_it),
    (LastWriterWins, Suite.test_a_write_on_another_version_conflicts_and_changes_nothing),
    (LooksThenPuts, Suite.test_of_two_writers_of_one_fact_one_conflicts),
    (LooksThenPuts, Suite.test_of_25_changes_of_one_fact_at_once_none_is_lost),
    (KeepsNoEarlierValues, Suite.test_a_fact_knows_its_turn_and_the_values_before),
    (RepeatsAreChanges, Suite.test_the_same_value_again_changes_nothing),
    (ListsByName, Suite.test_facts_are_listed_the_last_changed_first_without_the_values_before),
    (OffsetCursors, Suite.test_what_is_added_meanwhile_moves_nothing),
    (OffsetCursors, Suite.test_what_is_removed_meanwhile_hides_nothing_else),
    (NeverSaysLast, Suite.test_the_last_page_says_so),
    (KeepsStrayVectors, Suite.test_no_vector_is_kept_of_what_is_not_there_or_not_theirs),
    (ForgetsThePresentOnly, Suite.test_everything_of_a_person_goes_and_nothing_of_others),
    (ForgetsAPage, Suite.test_more_than_any_page_is_forgotten),
    (DryRunsForget, Suite.test_a_dry_run_counts_and_changes_nothing),
    (VersionsCountContent, Suite.test_it_changes_with_every_change_and_never_comes_back),
    (VersionsStandStill, Suite.test_it_changes_with_every_change_and_never_comes_back),
    (EpochsOfVersions, Suite.test_an_epoch_lasts_while_turns_are_only_added),
    (EpochsNeverEnd, Suite.test_an_epoch_ends_where_turns_go_or_come_and_never_comes_back),
]


@pytest.mark.parametrize(("agents", "test"), BROKEN)
def test_a_broken_record_is_found(
    agents: type[MemoryAgentStore], test: Callable[..., None]
) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test(Checked(), Broken(agents), "broken")


@pytest.mark.parametrize("test", list(dict.fromkeys(test for _, test in BROKEN)))
def test_the_same_test_passes_a_record_that_is_whole(test: Callable[..., None]) -> None:
    test(Checked(), MemoryStore(), "whole")


def test_a_store_that_forgets_the_hook_is_told_which() -> None:
    with pytest.raises(NotImplementedError, match="override `another`"):
        AgentMemoryConformance().another(MemoryStore())
