"""`flowrt memory export`: the persistent tier's memory as readable files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from urllib.parse import unquote

from flowrt.cli.exits import DONE
from flowrt.cli.memory.opened import (
    Asked,
    Remembered,
    all_facts,
    all_keys,
    all_threads,
    all_turns,
    run_on,
)
from flowrt.cli.memory.screen import counted, print_json, print_lines
from flowrt.memory.agent_memory import PREFIX as AGENTS
from flowrt.memory.agent_memory import working_key
from flowrt.memory.archive import (
    Conversation,
    FactFile,
    FactValue,
    ThreadFile,
    TurnLine,
    UserFile,
    WorkingFile,
    Writer,
    readable,
)
from flowrt.memory.transcript import PREFIX
from flowrt.storage.agents.protocol import Fact, Person, Place, ThreadInfo


def export_command(asked: Asked, folder: str) -> int:
    """Write the archive and say how much is in it."""
    counts = run_on(asked, lambda memory: _export(memory, Writer(Path(folder))))
    if asked.as_json:
        print_json({"folder": folder, **counts})
    else:
        told = ", ".join(counted(count, name[:-1]) for name, count in counts.items())
        print_lines([f"{folder}: {told}; nothing in it is masked"])
    return DONE


async def _export(memory: Remembered, writer: Writer) -> dict[str, int]:
    counts = {"threads": 0, "turns": 0, "contexts": 0, "facts": 0}
    written: set[str] = set()
    for agent in await memory.agents():
        async for info in all_threads(memory.record, memory.service, agent):
            key = working_key(agent, info.thread)
            conversation = await _conversation(memory, info, key)
            writer.conversation(conversation)
            written.add(key)
            counts["threads"] += 1
            counts["turns"] += len(conversation.turns)
            counts["contexts"] += conversation.working is not None
        for user in await memory.record.users(memory.service, agent):
            facts = await _facts(memory, Person(memory.service, agent, user))
            counts["facts"] += len(facts)
            if facts:
                writer.user(UserFile(agent=agent, user=user, facts=facts))
    space = memory.storage.space("user")
    for prefix in (AGENTS, PREFIX):
        async for key in all_keys(space, prefix):
            if key.name not in written and key.kind == "log":
                place = _placed(key.name)
                working = place and await _working(memory, *place, key.name)
                if working:
                    writer.conversation(Conversation(None, working=working))
                    counts["contexts"] += 1
    writer.finish(memory.service)
    return counts


def _placed(key: str) -> tuple[str | None, str] | None:
    """The agent and thread of a working context's key; None for one of another kind."""
    if key.startswith(PREFIX):
        return None, key.removeprefix(PREFIX)
    parts = [unquote(part) for part in key.removeprefix(AGENTS).split("/")]
    return (parts[0], parts[1]) if len(parts) == 2 and working_key(*parts) == key else None


async def _conversation(memory: Remembered, info: ThreadInfo, key: str) -> Conversation:
    place = Place(memory.service, info.agent, info.thread)
    turns = [
        TurnLine(
            seq=turn.seq,
            role=turn.role,
            text=turn.text,
            tokens=turn.tokens,
            attrs=turn.attrs,
            at=turn.at,
        )
        async for turn in all_turns(memory.record, place)
    ]
    told = {key: value for key, value in asdict(info).items() if key in ThreadFile.model_fields}
    working = await _working(memory, info.agent, info.thread, key)
    return Conversation(ThreadFile(**told), turns, working)


async def _working(
    memory: Remembered, agent: str | None, thread: str, key: str
) -> WorkingFile | None:
    log = await memory.storage.space("user").read_log(key)
    if log is None:
        return None
    messages = [readable(entry) for entry in log.entries]
    return WorkingFile(agent=agent, thread=thread, head=log.head, messages=messages)


async def _facts(memory: Remembered, person: Person) -> list[FactFile]:
    facts = []
    async for listed in all_facts(memory.record, person):
        fact = await memory.record.fact(person, listed.name)
        if fact is not None:
            facts.append(FactFile(name=fact.name, values=_values(fact)))
    return facts


def _values(fact: Fact) -> list[FactValue]:
    newest = FactValue(value=fact.value, thread=fact.thread, seq=fact.seq, at=fact.updated)
    return [
        *(
            FactValue(value=was.value, thread=was.thread, seq=was.seq, at=was.at)
            for was in fact.earlier
        ),
        newest,
    ]
