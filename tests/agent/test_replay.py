"""`replay`: the request at a turn is, as JSON, the very one that the model was sent."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from flowrt.agent.replay import DIED, FILES, LOST, NOT_SHOWN, OLDER, REUSED
from flowrt.ids import new_id
from flowrt.memory.agent_memory import archive_key, working_key
from flowrt.memory.entry import Entry, assistant_entry, user_entry
from flowrt.storage.tiers import Storage
from flowrt.testing import FakeMessagesAPI, FakeReply
from flowrt.testing.replies import Gate
from tests.agent.remembering import AGENT, Kept, remembering, say
from tests.agent.replaying import Heard, Talk, compare, play, replayed, talks
from tests.agent.test_media import CAT
from tests.services import load

LONG = "word " * 300
ECHO = FakeReply(tool_calls=[{"name": "echo", "input": {"x": "y" * 900}}])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(talk=talks)
def test_every_request_of_a_conversation_is_given_back_on_sqlite(talk: Talk) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lacking = asyncio.run(play(talk, Path(folder), f"sqlite:{folder}/state.db", "t"))
    forgetful = any("forget" in each.rounds for each in talk.exchanges)
    assert forgetful or not lacking


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(talk=talks)
def test_every_request_of_a_conversation_is_given_back_on_redis(talk: Talk, redis_url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(talk, Path(folder), redis_url, new_id()))


async def test_a_conversation_that_is_pruned_keeps_each_message_once(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    heard = Heard(api)
    document = remembering(api.base_url, contextMaxTokens=1200)
    async with load(tmp_path, document) as service:
        for number in range(8):
            api.add(ECHO, f"Answer {number}.")
            await service.invoke("chat", say(f"{number} {LONG}"))
            heard.exchange()
        assert [] == await compare(service, heard)
        kept = Kept.of(service)
        entries = Entry.decode_all([*await kept.archived(), *await kept.working()])
    assert list(range(1, 33)) == sorted(entry.number or 0 for entry in entries)


async def test_files_are_in_it_only_where_they_are_kept(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    attachments = "has(body.files) ? body.files : null"
    for keep in (False, True):
        document = remembering(api.base_url, attachments=attachments, keepAttachments=keep)
        heard = Heard(api)
        async with load(tmp_path, document) as service:
            api.add(ECHO, "A cat.", "Yes.")
            await service.invoke("chat", {**say("What is it?"), "files": [CAT]})
            heard.exchange()
            await service.invoke("chat", say("A cat?"))
            heard.exchange()
            # The first request alone had the file.
            assert ([] if keep else [FILES]) == await compare(service, heard)
            [first, *_] = await Kept.of(service).turns()
            told = await replayed(service, first)
        assert told.request is not None
        shown = [block["type"] for block in told.request["messages"][0]["content"]]
        assert keep == ("image" in shown)


async def test_a_message_that_joined_a_run_is_found_in_the_request_that_first_held_it(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    gate = Gate()
    api.add(FakeReply(tool_calls=[{"name": "echo", "input": {}}], hold=gate), "Both.")
    async with load(tmp_path, remembering(api.base_url, threadPolicy="merge")) as service:
        run = asyncio.create_task(service.invoke("chat", say("First.")))
        await gate.reached()
        await service.invoke("chat", say("Second."))
        gate.open()
        await run
        turns = await Kept.of(service).turns()
        told = [await replayed(service, turn) for turn in turns]
    assert ["First.", "Second.", "Both."] == [turn.text for turn in turns]
    assert [api.bodies[0], api.bodies[1], api.bodies[1]] == [each.request for each in told]


async def test_an_agent_without_history_keeps_nothing_of_its_requests(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    document = remembering(api.base_url, history="off", contextMaxTokens=1200)
    async with load(tmp_path, document) as service:
        for number in range(6):
            api.add("Fine.")
            await service.invoke("chat", say(f"{number} {LONG}"))
        kept = Kept.of(service)
        assert [] == await kept.archived()
        assert [None] == list({entry.number for entry in Entry.decode_all(await kept.working())})
        assert [] == (await service.storage.space("user").scan("agents-")).keys


async def test_history_that_is_turned_on_later_is_told_from_then_on(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    storage = f"sqlite:{tmp_path}/s.db"
    for history in ("off", "record", "off", "record"):
        document = remembering(api.base_url, history=history, contextMaxTokens=1200)
        async with load(tmp_path, document, storage) as service:
            for number in range(3):
                api.add("Fine.")
                await service.invoke("chat", say(f"{history} {number} {LONG}"))
            if history == "record":
                assert [] == [
                    told.unknown
                    for turn in (await Kept.of(service).turns())[-6:]
                    if (told := await replayed(service, turn)).request is None
                ]


async def test_a_thread_from_before_messages_had_numbers_gets_them(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    heard = Heard(api)
    old = [user_entry("Old."), assistant_entry([{"type": "text", "text": "Yes."}])]
    async with load(tmp_path, remembering(api.base_url)) as service:
        space = service.storage.space("user")
        await space.append(working_key(AGENT, "t"), [entry.encode() for entry in old], head={})
        for text in ("New.", "Newer."):
            api.add("Fine.")
            await service.invoke("chat", say(text))
            heard.exchange()
        assert [] == await compare(service, heard)


async def test_a_question_whose_run_failed_is_told_and_so_is_what_followed(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    heard = Heard(api)
    async with load(tmp_path, remembering(api.base_url)) as service:
        for replies in ([ECHO, FakeReply(error=400)], ["Fine."], [ECHO, FakeReply(error=400)]):
            api.add(*replies)
            await service.invoke("chat", say(f"Message {len(heard.exchanges)}."))
            heard.exchange()
        assert [] == await compare(service, heard)


async def test_what_no_run_asked_is_not_made_up(api: FakeMessagesAPI, tmp_path: Path) -> None:
    api.add("Fine.")
    async with load(tmp_path, remembering(api.base_url)) as service:
        await service.invoke("chat", say("Hello."))
        await Kept.of(service).record("From outside.")
        [*_, outside] = await Kept.of(service).turns()
        assert OLDER == (await replayed(service, outside)).unknown


@pytest.mark.parametrize(
    ("attrs", "reason"), [({"first": [-1]}, DIED), ({"first": [1]}, NOT_SHOWN)]
)
async def test_a_question_that_stood_in_no_request_we_know_is_said_to_be_one(
    api: FakeMessagesAPI, tmp_path: Path, attrs: dict[str, Any], reason: str
) -> None:
    api.add("Fine.")
    async with load(tmp_path, remembering(api.base_url)) as service:
        await service.invoke("chat", say("Hello."))
        [asked, _] = await Kept.of(service).turns()
        other = {**asked.attrs, "shown": {**asked.attrs["shown"], **attrs, "turns": 1}}
        await Kept.of(service).record("Again.", attrs=other)
        [*_, again] = await Kept.of(service).turns()
        assert reason == (await replayed(service, again)).unknown


async def test_what_a_lost_archive_had_is_said_to_be_lost(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    document = remembering(api.base_url, contextMaxTokens=1200)
    async with load(tmp_path, document) as service:
        for number in range(6):
            api.add("Fine.")
            await service.invoke("chat", say(f"{number} {LONG}"))
        await service.storage.space("user").delete(archive_key(AGENT, "t"))
        turns = await Kept.of(service).turns()
        assert LOST == (await replayed(service, turns[0])).unknown
        assert (await replayed(service, turns[-1])).exact


async def test_a_run_that_died_before_its_context_was_stored_is_not_mistaken_for_the_next(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """The next run gives the numbers again that the dead one gave."""
    url, heard = f"sqlite:{tmp_path}/s.db", Heard(api)
    document = remembering(api.base_url)
    async with load(tmp_path, document, url) as service:
        for text in ("One.", "Two."):
            api.add("Fine.")
            await service.invoke("chat", say(text))
            heard.exchange()
    await _as_before(url, entries=2)
    async with load(tmp_path, document, url) as service:
        api.add("Fine.")
        await service.invoke("chat", say("Three."))
        heard.exchange()
        turns = await Kept.of(service).turns()
        told = [await replayed(service, turn) for turn in turns]
    assert ["", "", REUSED, REUSED, "", ""] == [each.unknown for each in told]
    assert heard.exchanges[2][0] == told[4].request


async def _as_before(url: str, entries: int) -> None:
    """Put a context back to what it was when it had so many entries."""
    storage = Storage.from_urls("test", url, environ={})
    space, key = storage.space("user"), working_key(AGENT, "t")
    log = await space.read_log(key)
    assert log is not None
    head = {**log.head, "shown": {**log.head["shown"], "next": entries + 1}}
    await space.rewrite(key, log.entries[:entries], head=head)
    await storage.close()


async def test_two_replicas_at_once_are_told_apart_or_not_told(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    """Whatever is given is exact, also where both gave the same numbers."""
    url, gate = f"sqlite:{tmp_path}/s.db", Gate()
    document = remembering(api.base_url)
    async with load(tmp_path, document, url) as one:
        api.add("Fine.", FakeReply(text="Slow.", hold=gate), "Quick.")
        await one.invoke("chat", say("Hello."))
        slow = asyncio.create_task(one.invoke("chat", say("Slowly?")))
        await gate.reached()
        other = Storage.from_urls("test", url, environ={})
        space, key = other.space("user"), working_key(AGENT, "t")
        theirs = [user_entry("Theirs."), assistant_entry([{"type": "text", "text": "Yes."}])]
        for number, entry in enumerate(theirs, 3):
            entry.number = number
        log = await space.read_log(key)
        assert log is not None
        head = {**log.head, "shown": {**log.head["shown"], "next": 5}}
        await space.append(key, [entry.encode() for entry in theirs], head=head)
        gate.open()
        await slow
        await one.invoke("chat", say("And now?"))
        turns = await Kept.of(one).turns()
        told = [await replayed(one, turn) for turn in turns]
        await other.close()
    sent = [api.bodies[0], api.bodies[0], api.bodies[1], api.bodies[1], api.bodies[2]]
    for each, body in zip(told, sent, strict=False):
        assert each.request in (None, body)
    assert told[0].exact
    assert told[2].request is None
