"""`flowrt memory threads`, `show`, `facts`, `why` and `search`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flowrt.testing import FakeMessagesAPI
from flowrt.testing.replies import FakeReply
from tests.agent.remembering import Kept, remembering, say
from tests.cli.memory.conftest import Memory
from tests.services import load


def remember(name: str, value: str) -> list[Any]:
    """The replies of a model that keeps a note."""
    return [
        FakeReply(tool_calls=[{"name": "remember", "input": {"name": name, "value": value}}]),
        "Noted.",
    ]


async def test_threads_are_listed_by_agent_and_user(memory: Memory) -> None:
    await memory.talk(("t/1", "ann", "Hi.", "Hello."), ("t2", "bob", "Hi.", "Hello."))
    rows = memory.json("threads")
    assert [("t2", "bob", 2), ("t/1", "ann", 2)] == [
        (row["thread"], row["user"], row["turns"]) for row in rows
    ]
    assert ["t/1"] == [row["thread"] for row in memory.json("threads", "--user", "ann")]
    assert [] == memory.json("threads", "--user", "")
    assert [] == memory.json("threads", "--agent", "other")
    text = memory.run("threads").stdout
    assert "t/1\tpersistent\tagent helper\tuser ann\t2 turns\t" in text


async def test_a_thread_is_shown_with_record_context_and_facts(any_memory: Memory) -> None:
    memory = any_memory
    await memory.talk(("one", "ann", "I live in Berlin.", remember("city", "Lives in Berlin.")))
    shown = memory.json("show", "--thread", "one")
    assert ["I live in Berlin.", "Noted."] == [turn["text"] for turn in shown["record"]]
    assert [True, True] == [turn["inContext"] for turn in shown["record"]]
    assert 4 == len(shown["working"]["messages"])
    assert [("city", "Lives in Berlin.", "one", 1)] == [
        (fact["name"], fact["value"], fact["thread"], fact["seq"]) for fact in shown["facts"]
    ]
    text = memory.run("show", "--thread", "one").stdout
    assert "record: 2 turns, 2 of them word for word in the working context" in text
    assert "working context: 4 messages" in text
    assert "city = Lives in Berlin. (from turn 1 of thread one" in text


async def test_what_a_compaction_dropped_is_marked_and_when(memory: Memory) -> None:
    long = "word " * 300
    said = [("t", "ann", f"{number} {long}", f"Answer {number}.") for number in range(6)]
    await memory.talk(*said, contextMaxTokens=1500)
    shown = memory.json("show", "--thread", "t")
    marks = [turn["inContext"] for turn in shown["record"]]
    assert 12 == len(marks)
    assert sorted(marks) == marks
    assert not marks[0]
    assert marks[-1]
    cuts = shown["working"]["compactions"]
    assert cuts
    assert shown["working"]["rewritten"] == len(cuts)
    assert all(shown["created"] <= cut["at"] <= shown["active"] + 5 for cut in cuts)
    text = memory.run("show", "--thread", "t").stdout
    assert "- the working context does not hold it; the record does" in text
    assert "compacted 20" in text


async def test_at_a_turn_is_the_request_that_the_model_was_sent(any_memory: Memory) -> None:
    memory, long = any_memory, "word " * 300
    said = [f"{number} {long}" for number in range(6)]
    replies = [
        [*remember("city", "Berlin")] if not number else [f"Answer {number}."]
        for number in range(6)
    ]
    with FakeMessagesAPI([]) as api:
        document = remembering(api.base_url, userMemory=True, contextMaxTokens=1000)
        async with load(memory.folder, document, memory.storage) as service:
            for text, reply in zip(said, replies, strict=True):
                api.add(*reply)
                await service.invoke("chat", say(text, "t"))
        sent = api.bodies
    # The first exchange has two calls: one for its question, one for its answer.
    of_turns = [*sent[:2], *(body for body in sent[2:] for _ in "qa")]
    cuts = memory.json("show", "--thread", "t")["working"]["compactions"]
    assert len(cuts) > 1
    for seq in (1, 2, 3, 6, 7, 12):
        shown = memory.json("show", "--thread", "t", "--at", str(seq))
        assert (True, "", []) == (shown["exact"], shown["unknown"], shown["lacking"])
        assert of_turns[seq - 1] == shown["request"], seq
    text = memory.run("show", "--thread", "t", "--at", "2").stdout
    assert "the exact request, model call 2 of 2 of its exchange" in text
    assert "tools: echo, remember, forget, search_memory" in text
    assert "parameters through connector 'claude': {\"model\": " in text
    wrong = memory.run("show", "--thread", "t", "--at", "13")
    assert (2, True) == (wrong.returncode, "has 12 turns" in wrong.stderr)


async def test_at_a_turn_whose_request_is_not_kept_the_record_before_it_is_shown(
    memory: Memory,
) -> None:
    await memory.talk(("t", "ann", "Hi.", "Hello."))
    kept = Kept.at(memory.storage)
    await kept.record("Told by somebody else.")
    await kept.close()
    shown = memory.json("show", "--thread", "t", "--at", "3")
    assert (False, None) == (shown["exact"], shown["request"])
    assert "does not say what was in it" in shown["unknown"]
    text = memory.run("show", "--thread", "t", "--at", "3").stdout
    assert "the request is not known: the record does not say" in text
    assert "the record before it: 2 turns" in text


async def test_what_is_forgotten_since_is_lacking_and_said_to_be(memory: Memory) -> None:
    forget = [FakeReply(tool_calls=[{"name": "forget", "input": {"name": "city"}}]), "Done."]
    await memory.talk(
        ("one", "ann", "I live in Berlin.", remember("city", "Berlin")),
        ("two", "ann", "Hello.", "Hi."),
        ("one", "ann", "Forget it.", forget),
    )
    shown = memory.json("show", "--thread", "two", "--at", "1")
    assert not shown["exact"]
    assert ["notes about the user" in what for what in shown["lacking"]] == [True]
    assert ["Hello."] == [block["text"] for block in shown["request"]["messages"][0]["content"]]
    text = memory.run("show", "--thread", "two", "--at", "1").stdout
    assert "the request, as far as it is known\n  without the notes about the user" in text


async def test_why_gives_the_turn_and_the_values_before(any_memory: Memory) -> None:
    memory = any_memory
    await memory.talk(
        ("one", "ann", "I love fish.", remember("food", "Loves fish.")),
        ("two", "ann", "I hate fish.", remember("food", "Hates fish.")),
    )
    [why] = memory.json("why", "food", "--user", "ann")
    assert ("Hates fish.", "two", 1, "I hate fish.") == (
        why["value"], why["thread"], why["seq"], why["turn"]["text"],
    )  # fmt: skip
    assert [("Loves fish.", "one", 1)] == [
        (was["value"], was["thread"], was["seq"]) for was in why["earlier"]
    ]
    memory.run("clear", "--thread", "two")
    text = memory.run("why", "food", "--user", "ann").stdout
    assert "that turn is not in the record (any more)" in text
    assert "before: Loves fish. (version 1, from turn 1 of thread one" in text
    unknown = memory.run("why", "food", "--user", "bob")
    assert (1, "") == (unknown.returncode, unknown.stdout)


async def test_facts_are_one_users(memory: Memory) -> None:
    await memory.talk(("t", "ann", "Hi.", "Hello."))
    await memory.put("city", "Berlin\n\x1b[2Jx")
    await memory.put("city", "Rome", "bob")
    await memory.put("key", "sk-" + "a" * 30)
    assert ["key", "city"] == [row["name"] for row in memory.json("facts", "--user", "ann")]
    text = memory.run("facts", "--user", "ann").stdout
    assert "helper\tcity = Berlin\\n\\x1b[2Jx\tfrom outside a conversation" in text
    assert "helper\tkey = [redacted]\t" in text
    assert "Rome" not in text


async def test_a_search_says_what_was_found_and_why(any_memory: Memory) -> None:
    memory = any_memory
    await memory.talk(
        ("one", "ann", "My kayak is blue.", "Nice."),
        ("two", "ann", "I like tea.", "Good."),
        ("three", "bob", "My kayak is red.", "Nice."),
    )
    [found] = memory.json("search", "what colour is the kayak", "--user", "ann")
    best = found["hits"][0]
    assert ("words", "words", "one", 1) == (
        found["by"], best["why"], best["thread"], best["seq"],
    )  # fmt: skip
    assert {"score", "at", "words"} <= set(best)
    text = memory.run("search", "kayak", "--user", "ann").stdout
    assert "agent helper, by words" in text
    assert "thread one turn 1" in text
    assert "red" not in text


async def test_a_search_by_meaning_says_what_has_no_vector_yet(memory: Memory) -> None:
    await memory.talk(("one", "ann", "My kayak is blue.", "Nice."))
    options = ("--config", "service.yaml", "--storage", memory.storage)
    asked = ("memory", "search", "a kayak", "--user", "ann", *options)
    told = memory.flowrt(*asked, FLOWRT_EMBEDDINGS="embed-local").stdout
    assert "agent helper, by words, 2 still without a vector" in told
    unknown = memory.flowrt(*asked, FLOWRT_EMBEDDINGS="vectors")
    assert (2, True) == (unknown.returncode, "FLOWRT_EMBEDDINGS names 'vectors'" in unknown.stderr)


async def test_a_thread_of_two_agents_is_shown_only_where_one_is_meant(memory: Memory) -> None:
    await memory.talk(("t", "ann", "Hi.", "Hello."))
    await memory.talk(("t", "ann", "Hi.", "I am another."), agentId="another")
    for command in ("show", "clear"):
        refused = memory.run(command, "--thread", "t")
        assert 2 == refused.returncode
        assert "'another', 'helper'" in refused.stderr
        assert "--agent" in refused.stderr
    shown = memory.json("show", "--thread", "t", "--agent", "another")
    assert "I am another." == shown["record"][1]["text"]


@pytest.mark.parametrize("agent", [[], ["--agent", "helper"]])
def test_a_thread_that_is_not_there_is_said_so(
    memory: Memory, service_file: Any, agent: list[str]
) -> None:
    service_file({"service": {"name": "test"}, "flows": []})
    done = memory.run("show", "--thread", "none", *agent)
    assert 1 == done.returncode
    assert "flowrt memory threads" in done.stderr
    assert {"thread": "none", "cleared": False} == memory.json("clear", "--thread", "none", *agent)


async def test_secrets_of_the_environment_are_masked(memory: Memory) -> None:
    await memory.talk(("t", "ann", "The word is open-sesame-7.", "Fine."))
    with (memory.folder / "service.yaml").open("a", encoding="utf-8") as file:
        file.write("env:\n- {name: DOOR, secret: true, default: open-sesame-7}\n")
    for arguments in (
        ["--thread", "t"],
        ["--thread", "t", "--at", "1"],
        ["--thread", "t", "--json"],
    ):
        shown = memory.run("show", *arguments).stdout
        assert "The word is [redacted]." in shown
        assert "sesame" not in shown
    assert "sesame" not in memory.run("search", "word", "--user", "ann").stdout


async def test_a_search_goes_by_meaning_where_the_deployment_names_what_embeds(
    memory: Memory,
) -> None:
    with FakeMessagesAPI(["Nice.", "Good."]) as api:
        document = remembering(api.base_url, userMemory=True)
        environ = {"FLOWRT_EMBEDDINGS": "embed-local"}
        async with load(memory.folder, document, memory.storage, environ=environ) as service:
            await service.invoke("chat", say("My dog is ill.", "one", "ann"))
            await service.drain()
    options = ("--config", "service.yaml", "--storage", memory.storage, "--user", "ann", "--json")
    done = memory.flowrt("memory", "search", "puppy", *options, FLOWRT_EMBEDDINGS="embed-local")
    [found] = json.loads(done.stdout)
    assert "meaning" == found["by"], done.stderr
    assert ("My dog is ill.", "meaning") == (found["hits"][0]["text"], found["hits"][0]["why"])
    [by_words] = memory.json("search", "puppy", "--user", "ann")
    assert "words" == by_words["by"]
