"""`flowrt memory export`: the memory of a service as readable files, tier by tier."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from urllib.parse import unquote

from flowrt.cli.exits import DONE, say
from flowrt.cli.memory.opened import (
    Asked,
    Remembered,
    Tier,
    all_facts,
    all_keys,
    all_threads,
    all_turns,
    run_on,
)
from flowrt.cli.memory.screen import counted, print_json, print_lines
from flowrt.memory.agent_memory import FRAMES, archive_key, frame_key, working_key
from flowrt.memory.agent_memory import PREFIX as AGENTS
from flowrt.memory.archive import (
    Conversation,
    FactFile,
    FactValue,
    FrameFile,
    ThreadFile,
    TurnLine,
    UserFile,
    WorkingFile,
    Writer,
    readable,
)
from flowrt.memory.transcript import PREFIX
from flowrt.storage.agents.protocol import AgentStore, Fact, Person, Place, ThreadInfo

NOT_REACHED = (
    "the volatile tier is in the memory of a running service, if anywhere, and is not in the "
    "export; FLOWRT_VOLATILE names one that can be reached"
)


def export_command(asked: Asked, folder: str) -> int:
    """Write the archive and say how much is in it."""
    counts, reached = run_on(asked, lambda memory: _export(memory, Writer.into(Path(folder))))
    if asked.as_json:
        print_json({"folder": folder, **counts, "volatile": reached})
    else:
        told = ", ".join(counted(count, name[:-1]) for name, count in counts.items())
        print_lines([f"{folder}: {told}; nothing in it is masked"])
    if not reached:
        say(NOT_REACHED)
    return DONE


async def _export(memory: Remembered, writer: Writer) -> tuple[dict[str, int], bool]:
    # A persistent store without a record is refused: an export is not to look whole without it.
    _ = memory.record
    persistent, volatile = memory.tiers
    counts = Counter(threads=0, turns=0, contexts=0, facts=0)
    await _Tier(memory.service, persistent, writer, counts).write()
    reached = memory.storage.volatile_is_shared
    if reached:
        await _Tier(memory.service, volatile, writer.volatile(), counts).write()
    writer.finish(memory.service)
    return dict(counts), reached


class _Tier:
    """Writes one tier, and counts what it writes."""

    def __init__(self, service: str, tier: Tier, writer: Writer, counts: Counter[str]) -> None:
        self._service = service
        self._space = tier.space
        self._record = tier.record
        self._writer = writer
        self._counts = counts

    async def write(self) -> None:
        """Write everything that the tier has."""
        written: set[str] = set()
        if self._record is not None:
            for agent in await self._record.agents(self._service):
                async for info in all_threads(self._record, self._service, agent):
                    await self._thread(self._record, info)
                    written.add(working_key(agent, info.thread))
                for user in await self._record.users(self._service, agent):
                    await self._user(self._record, Person(self._service, agent, user))
        await self._contexts(written)
        await self._frames()

    async def _thread(self, record: AgentStore, info: ThreadInfo) -> None:
        place = Place(self._service, info.agent, info.thread)
        turns = [
            TurnLine(
                seq=turn.seq,
                role=turn.role,
                text=turn.text,
                tokens=turn.tokens,
                attrs=turn.attrs,
                at=turn.at,
            )
            async for turn in all_turns(record, place)
        ]
        told = {key: value for key, value in asdict(info).items() if key in ThreadFile.model_fields}
        working = await self._working(info.agent, info.thread, working_key(info.agent, info.thread))
        archived = await self._space.read_log(archive_key(info.agent, info.thread))
        self._writer.conversation(
            Conversation(
                ThreadFile(**told),
                turns,
                working,
                [readable(entry) for entry in archived.entries] if archived is not None else [],
            )
        )
        self._counts.update(threads=1, turns=len(turns), contexts=int(working is not None))

    async def _user(self, record: AgentStore, person: Person) -> None:
        facts = []
        async for listed in all_facts(record, person):
            fact = await record.fact(person, listed.name)
            if fact is not None:
                facts.append(FactFile(name=fact.name, values=_values(fact)))
        if facts:
            self._writer.user(UserFile(agent=person.agent, user=person.user, facts=facts))
            self._counts["facts"] += len(facts)

    async def _contexts(self, written: set[str]) -> None:
        """Working contexts that no thread of the record leads to."""
        for prefix in (AGENTS, PREFIX):
            async for key in all_keys(self._space, prefix):
                if key.name not in written and key.kind == "log":
                    place = _placed(key.name)
                    working = place and await self._working(*place, key.name)
                    if working:
                        self._writer.conversation(Conversation(None, working=working))
                        self._counts["contexts"] += 1

    async def _working(self, agent: str | None, thread: str, key: str) -> WorkingFile | None:
        log = await self._space.read_log(key)
        if log is None:
            return None
        messages = [readable(entry) for entry in log.entries]
        return WorkingFile(agent=agent, thread=thread, head=log.head, messages=messages)

    async def _frames(self) -> None:
        async for key in all_keys(self._space, FRAMES):
            parts = [unquote(part) for part in key.name.removeprefix(FRAMES).split("/")]
            stored = await self._space.get(key.name) if key.kind == "value" else None
            if stored is not None and len(parts) == 2 and frame_key(*parts) == key.name:
                agent, name = parts
                frame = readable(stored.value)
                self._writer.frame(FrameFile(agent=agent, name=name, frame=frame))


def _placed(key: str) -> tuple[str | None, str] | None:
    """The agent and thread of a working context's key; None for one of another kind."""
    if key.startswith(PREFIX):
        return None, key.removeprefix(PREFIX)
    parts = [unquote(part) for part in key.removeprefix(AGENTS).split("/")]
    return (parts[0], parts[1]) if len(parts) == 2 and working_key(*parts) == key else None


def _values(fact: Fact) -> list[FactValue]:
    newest = FactValue(value=fact.value, thread=fact.thread, seq=fact.seq, at=fact.updated)
    return [
        *(
            FactValue(value=was.value, thread=was.thread, seq=was.seq, at=was.at)
            for was in fact.earlier
        ),
        newest,
    ]
