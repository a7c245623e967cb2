"""What is stored when a case has ended, against what should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowrt.expr import Expression
from flowrt.memory.agent_memory import working_key
from flowrt.memory.entry import Entry
from flowrt.memory.transcript import PREFIX as THREADS
from flowrt.message import Message
from flowrt.service import Service
from flowrt.storage.agents.protocol import Person, Place
from flowrt.storage.objects import PREFIX as OBJECTS
from flowrt.testing.suite.check import Failure, check_that, from_differences
from flowrt.testing.suite.compare import differences, shown
from flowrt.testing.suite.model import MemoryCheck, ObjectCheck, ThreadCheck

_MOST = 10_000
"""Turns of a thread, or facts about a user, that conditions see: those of a case are fewer."""


async def check_memory(check: MemoryCheck, service: Service) -> list[Failure]:
    """Everything of a case's `memory` that is not as it says."""
    failures: list[Failure] = []
    for name, thread in check.threads.items():
        failures += await _check_thread(service, name, thread)
    for agent, users in check.facts.items():
        for user, wanted in users.items():
            facts = await _facts(service, agent, user)
            place = f"memory.facts.{agent}.{user}"
            unmet = _check(wanted.that, {"facts": facts}, f"{place}.that")
            failures += [*unmet, Failure(f"{place}: the facts are", shown(facts))] if unmet else []
    for key, object_ in check.objects.items():
        failures += await _check_object(service, key, object_)
    return failures


async def _check_thread(service: Service, name: str, check: ThreadCheck) -> list[Failure]:
    transcript = await _transcript(service, name, check)
    record = await _record(service, name, check)
    place = f"memory.threads.{name}"
    unmet = _check(check.that, {"transcript": transcript, "record": record}, f"{place}.that")
    if unmet:
        lines = [f"{each['role']:9} {shown(each['content'])}" for each in transcript]
        unmet.append(Failure(f"{place}: the transcript is", "\n".join(lines) or "empty"))
        if check.agent is not None:
            unmet.append(Failure(f"{place}: the record is", shown(record)))
    return unmet


async def _check_object(service: Service, key: str, wanted: ObjectCheck) -> list[Failure]:
    stored = await _space(service, wanted.volatile).get(OBJECTS + key)
    place = f"memory.objects.{key}"
    if wanted.absent and stored is not None:
        return [Failure(place, f"wanted  nothing\ngot     {shown(stored.value)}")]
    if not wanted.absent and stored is None:
        return [Failure(place, f"wanted  {shown(wanted.value)}\ngot     nothing")]
    if stored is not None:
        return from_differences(differences(wanted.value, stored.value, place))
    return []


def _check(conditions: list[Expression], extra: Mapping[str, Any], place: str) -> list[Failure]:
    """Conditions that look at no message."""
    return check_that(conditions, Message(), extra, place)


def _space(service: Service, volatile: bool) -> Any:
    return service.storage.space("user_volatile" if volatile else "user")


async def _transcript(service: Service, name: str, check: ThreadCheck) -> list[dict[str, Any]]:
    """The messages of a working context, each with its `text`."""
    key = THREADS + name if check.agent is None else working_key(check.agent, name)
    log = await _space(service, check.volatile).read_log(key)
    return [
        {**entry.message, "text": _text(entry.message["content"])}
        for entry in Entry.decode_all(log.entries if log is not None else [])
    ]


async def _record(service: Service, name: str, check: ThreadCheck) -> dict[str, Any] | None:
    """What the agent has recorded of a thread; None where there is none."""
    if check.agent is None:
        return None
    record = service.storage.agents(check.volatile)
    place = Place(service.name, check.agent, name)
    info = await record.thread(place)
    if info is None:
        return None
    turns = (await record.turns(place, limit=_MOST)).items
    said = [
        {"seq": turn.seq, "role": turn.role, "text": turn.text, "attrs": turn.attrs}
        for turn in turns
    ]
    return {"user": info.user, "title": info.title, "turns": said}


async def _facts(service: Service, agent: str, user: str) -> dict[str, str]:
    page = await service.storage.agents().facts(Person(service.name, agent, user), limit=_MOST)
    return {fact.name: fact.value for fact in page.items}


def _text(content: list[dict[str, Any]]) -> str:
    return "\n".join(block["text"] for block in content if block.get("type") == "text")
