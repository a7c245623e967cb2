"""What `flowrt memory doctor` looks for in a tier. Everything is read and nothing written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import unquote

from flowrt.cli.memory.check_archives import check_archives, check_requests
from flowrt.cli.memory.findings import CLEAR, SAVE_FIRST, Finding
from flowrt.cli.memory.opened import Tier, all_facts, all_keys, all_threads, all_turns
from flowrt.cli.memory.screen import counted
from flowrt.llm.request import violations
from flowrt.memory.agent_memory import PREFIX as AGENTS
from flowrt.memory.agent_memory import working_key
from flowrt.memory.entry import Entry, close_calls, user_entry
from flowrt.memory.transcript import PREFIX
from flowrt.storage.agents.protocol import AgentStore, Fact, Person, Place, ThreadInfo
from flowrt.storage.protocol import Log


async def check_tier(tier: Tier, service: str) -> list[Finding]:
    """Everything that is wrong with a tier's memory."""
    contexts: set[str] = set()
    findings = [finding async for finding in _check_contexts(tier, contexts)]
    if tier.record is None:
        return findings
    threads: set[tuple[str, str]] = set()
    for agent in await tier.record.agents(service):
        async for info in all_threads(tier.record, service, agent):
            threads.add((agent, info.thread))
            findings += [each async for each in _check_thread(tier, service, info, contexts)]
        for user in ["", *await tier.record.users(service, agent)]:
            person = Person(service, agent, user)
            findings += [each async for each in _check_person(tier.record, person)]
    findings += [each async for each in check_archives(tier, threads)]
    listed = {working_key(agent, thread) for agent, thread in threads}
    return [*findings, *(_unlisted(key) for key in sorted(contexts - listed) if _is_agents(key))]


async def _check_contexts(tier: Tier, seen: set[str]) -> AsyncIterator[Finding]:
    """Look at every working context; their keys are added to `seen`."""
    for prefix in (AGENTS, PREFIX):
        async for key in all_keys(tier.space, prefix):
            if key.kind != "log":
                yield Finding(
                    "fault",
                    key.name,
                    "a value is where a conversation belongs",
                    "something else writes to this store; give it a store of its own",
                )
                continue
            seen.add(key.name)
            for finding in check_context(key.name, await tier.space.read_log(key.name)):
                yield finding


def _is_agents(key: str) -> bool:
    return key.startswith(AGENTS)


def _unlisted(key: str) -> Finding:
    what = (
        "the record has no such thread: no listing shows it, and no forgetting of a user finds it"
    )
    return Finding("fault", _thread_of(key), what, "`flowrt memory clear --thread T --agent A`")


def check_context(key: str, log: Log | None) -> list[Finding]:
    """Whether a working context parses, and whether a provider would take it."""
    if log is None:
        return []
    where = _thread_of(key)
    try:
        entries = Entry.decode_all(log.entries)
        faults = violations([each.message for each in close_calls([*entries, user_entry("next")])])
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        return [
            Finding("fault", where, f"the working context cannot be read: {error!r}", SAVE_FIRST)
        ]
    found = []
    if faults:
        more = f", and {len(faults) - 3} more" if len(faults) > 3 else ""
        what = f"a provider would refuse it, so it is repaired each time: {'; '.join(faults[:3])}"
        found.append(Finding("fault", where, what + more, SAVE_FIRST))
    if isinstance(log.head, dict) and "open" in log.head:
        found.append(
            Finding(
                "note",
                where,
                "a run on it is under way, or has died",
                "the next message goes on from there",
            )
        )
    return found


async def _check_thread(
    tier: Tier, service: str, info: ThreadInfo, contexts: set[str]
) -> AsyncIterator[Finding]:
    assert tier.record is not None
    where = _thread_of(working_key(info.agent, info.thread))
    place = Place(service, info.agent, info.thread)
    turns = [turn async for turn in all_turns(tier.record, place)]
    numbers = [turn.seq for turn in turns]
    if numbers != list(range(1, info.turns + 1)):
        what = f"it says that it has {counted(info.turns, 'turn')}, and has {len(numbers)}"
        yield Finding("fault", where, what, "restore a backup; what is there can be exported")
    async for finding in check_requests(tier, info, turns):
        yield finding
    if not numbers:
        kept = working_key(info.agent, info.thread) in contexts
        what = "it has no turns" + (", only a working context" if kept else "")
        way_out = "fine where the agent has `history: off`, or a run is under way; else " + CLEAR
        yield Finding("note", where, what, way_out)


async def _check_person(record: AgentStore, person: Person) -> AsyncIterator[Finding]:
    ids = {("turn", turn) for turn in await _turn_ids(record, person)}
    if person.user:
        async for listed in all_facts(record, person):
            ids.add(("fact", listed.id))
            fact = await record.fact(person, listed.name)
            if fact is not None:
                async for finding in _check_fact(record, person, fact):
                    yield finding
    orphans = await _orphans(record, person, ids)
    if orphans:
        yield Finding(
            "fault", f"user {person.user!r} of agent {person.agent!r}",
            f"{counted(orphans, 'vector')} of what is gone",
            "no search finds them; export, forget the user, and import",
        )  # fmt: skip


async def _check_fact(record: AgentStore, person: Person, fact: Fact) -> AsyncIterator[Finding]:
    where = f"fact {fact.name!r} about {person.user!r} of agent {person.agent!r}"
    versions = [*(was.version for was in fact.earlier), fact.version]
    if versions != list(range(1, fact.version + 1)):
        yield Finding(
            "fault", where, f"its versions are {versions}",
            "restore a backup, or have it removed and told anew",
        )  # fmt: skip
    if fact.thread and fact.seq:
        place = Place(person.service, person.agent, fact.thread, person.user)
        page = await record.turns(place, after=fact.seq - 1, limit=1)
        if not page.items or page.items[0].seq != fact.seq:
            yield Finding(
                "note", where,
                f"turn {fact.seq} of thread {fact.thread!r}, where it comes from, is not there",
                "fine where the thread was cleared, or is in the volatile tier",
            )  # fmt: skip


async def _turn_ids(record: AgentStore, person: Person) -> set[int]:
    ids: set[int] = set()
    after = 0
    while True:
        page = await record.turns_of(person, after=after)
        ids |= {turn.id for turn in page.items}
        if page.after is None:
            return ids
        after = int(page.after)


async def _orphans(record: AgentStore, person: Person, ids: set[tuple[str, int]]) -> int:
    count, after = 0, None
    while True:
        page = await record.vectors_of(person, after=after)
        count += sum((vector.kind, vector.id) not in ids for vector in page.items)
        if page.after is None:
            return count
        after = page.after


def _thread_of(key: str) -> str:
    """A key of a working context in words."""
    if key.startswith(PREFIX):
        return f"thread {key.removeprefix(PREFIX)!r}"
    parts = [unquote(part) for part in key.removeprefix(AGENTS).split("/")]
    if len(parts) != 2 or working_key(*parts) != key:
        return f"key {key!r}"
    return f"thread {parts[1]!r} of agent {parts[0]!r}"
