"""An attacker's view: no id, however odd, shows one user what another said or is known for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.message import Outcome
from flowrt.testing import FakeMessagesAPI, FakeReply
from tests.agent.remembering import Kept, remembering, say
from tests.agent.test_user_memory import storage as storage
from tests.services import load

VICTIM = "ann"
ODD = [
    "Ann",
    "ann ",
    " ann",
    "ann\n",
    "ann\t",
    "ann%",
    "a%",
    "a_n",
    "an?",
    "*",
    "%",
    "_",
    "[a]nn",
    "ann:",
    "ann/",
    "/ann",
    "../ann",
    "ann/../ann",
    "ann:ann",
    "helper:ann",
    "test:helper:ann",
    "%61nn",
    "ann%00",
    "ann\\",
    "ann'",
    "ann' OR '1'='1",
    'ann"',
    "ann;--",
    "a\u0301nn",
    "\u00e1nn",
    "\uff41nn",
    "\u0430nn",
    "ann\u200b",
    "ann\u00ad",
    "\u202eann",
    "ann\U000e0041",
    "null",
    "None",
    "0",
    "ann" * 3334,
]
BROKEN = ["ann\x00", "ann\ud800", "\udfffann", "\x00", "ann\ufffd"]
SECRET = "zwetschge"


def call(tool: str, /, **arguments: Any) -> FakeReply:
    return FakeReply(tool_calls=[{"name": tool, "input": arguments}])


async def test_nobody_with_an_odd_name_is_shown_what_is_somebody_elses(
    tmp_path: Path, storage: str
) -> None:
    """Not in the notes that are told, not in what is found, whatever is asked for."""
    with FakeMessagesAPI([]) as api:
        # All have a name of this test's: a Redis may be shared.
        names = {each: f"{tmp_path.name}{each}" for each in [VICTIM, *ODD]}
        document = remembering(api.base_url, userMemory=True)
        async with load(tmp_path, document, storage) as service:
            kept = Kept.of(service)
            for at, user in enumerate(names.values()):
                await kept.put("pet", f"{SECRET} of number {at}.", user)
                api.add("ok")
                await service.invoke("chat", say(f"{SECRET} said {at}.", f"{user} thread", user))
            for at, user in enumerate(names.values()):
                api.add(
                    call("search_memory", query=SECRET),
                    call("search_memory", query=f"{names[VICTIM]} pet"),
                    call("forget", name="pet"),
                    call("remember", name="pet", value=f"{SECRET} of number {at}."),
                    "ok",
                )
                ended = await service.invoke("chat", say("Tell me.", f"{user} thread 2", user))
                assert Outcome.COMPLETED == ended.outcome, (user, ended.error)
                shown = json.dumps([request.body for request in api.requests[-5:]])
                mine = {f"{SECRET} of number {at}.", f"{SECRET} said {at}."}
                found = {
                    text
                    for other in range(len(names))
                    for text in (f"{SECRET} of number {other}.", f"{SECRET} said {other}.")
                    if text in shown
                }
                assert mine == found, user
            facts = [await kept.facts(user) for user in names.values()]
    assert [[f"{SECRET} of number {at}."] for at in range(len(names))] == [
        [fact.value for fact in page] for page in facts
    ]


@pytest.mark.parametrize("name", BROKEN)
async def test_a_name_that_cannot_be_read_is_nobodys(
    api: FakeMessagesAPI, tmp_path: Path, name: str
) -> None:
    """Replaced, `ann` with a NUL and `ann` with half a character would be one person."""
    api.add("ok", call("search_memory", query=SECRET), "ok")
    async with load(tmp_path, remembering(api.base_url, userMemory=True)) as service:
        await Kept.of(service).put("pet", SECRET, "ann�")
        await Kept.of(service).put("pet", SECRET, "�")
        await service.invoke("chat", say("hi", "one", name))
        ended = await service.invoke("chat", say("hi", "two", name))
        failed = await service.invoke("chat", say("hi", name, "bob"))
    assert Outcome.COMPLETED == ended.outcome
    assert SECRET not in json.dumps([request.body["messages"][:1] for request in api.requests])
    assert "nobody is named" in json.dumps(api.requests[-1].body)
    assert Outcome.FAILED == failed.outcome
    assert "half a character was replaced" in str(failed.error)


@pytest.mark.parametrize("with_id", [False, True])
async def test_threads_with_odd_names_are_conversations_of_their_own(
    tmp_path: Path, storage: str, with_id: bool
) -> None:
    with FakeMessagesAPI([]) as api:
        document = remembering(api.base_url)
        if not with_id:
            for key in ("agentId", "userId"):
                del document["flows"][0]["process"][0][key]
        async with load(tmp_path, document, storage) as service:
            for text in ("first", "second"):
                for at, name in enumerate([VICTIM, *ODD]):
                    api.add("ok")
                    thread = f"{tmp_path.name}{name}"
                    ended = await service.invoke("chat", say(f"{text} {at}.", thread))
                    assert Outcome.COMPLETED == ended.outcome, (name, ended.error)
                    said = [
                        message["content"][0]["text"]
                        for message in api.requests[-1].messages
                        if message["role"] == "user"
                    ]
                    before = [] if text == "first" else [f"first {at}."]
                    assert [*before, f"{text} {at}."] == said, name
