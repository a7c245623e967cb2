"""`aggregate`: groups of messages."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flowrt.engine.run import Run
from flowrt.errors import ConfigError, VersionConflict
from flowrt.message import Message, Outcome
from flowrt.service import Result, Service
from flowrt.storage.memory import MemoryStore
from flowrt.storage.tiers import Storage
from tests.blocks.chains import BROKEN, MEET, NOTE, Note, payload, variable
from tests.services import flows, load

SPLIT = {"type": "split", "items": "body"}
PAIR = {"type": "aggregate", "correlation": "body.key", "completionSize": "2"}


def group(**settings: Any) -> dict[str, Any]:
    return {"type": "aggregate", "correlation": "body.key", **settings}


async def send(service: Service, *bodies: Any, **variables: Any) -> list[Result]:
    return [await service.invoke("main", body, variables) for body in bodies]


async def collected(folder: Path, chain: list[dict[str, Any]], *bodies: Any) -> list[Message]:
    """The messages that come out of `chain` when `bodies` are sent in, one after the other."""
    async with load(folder, flows(main=[*chain, NOTE])) as service:
        await send(service, *bodies)
    return Note.seen


async def test_what_split_took_apart_is_put_together_in_order(tmp_path: Path) -> None:
    chain = [SPLIT, MEET, payload("body * 10"), {"type": "aggregate"}]
    (found,) = await collected(tmp_path, chain, list(range(100)))
    assert [number * 10 for number in range(100)] == found.body
    assert (100, "size") == (found.vars["aggregateCount"], found.vars["aggregateReason"])


async def test_the_parts_of_a_text_are_put_together_whichever_comes_last(tmp_path: Path) -> None:
    late = {"type": "if", "condition": "vars.groupIndex == 0", "then": {"process": [MEET] * 5}}
    chain = [{"type": "split", "mode": "lines"}, late, {"type": "aggregate"}]
    (found,) = await collected(tmp_path, chain, "a\nb\nc")
    assert ["a", "b", "c"] == found.body


async def test_groups_are_kept_apart_by_what_their_messages_have_in_common(tmp_path: Path) -> None:
    bodies = [{"key": key, "n": n} for n, key in enumerate(["a", "b", "b", 7, "a", 7])]
    found = await collected(tmp_path, [PAIR], *bodies)
    assert [("b", [1, 2]), ("a", [0, 4]), ("7", [3, 5])] == [
        (seen.vars["aggregateKey"], [body["n"] for body in seen.body]) for seen in found
    ]


async def test_the_result_has_the_variables_of_the_group_only(tmp_path: Path) -> None:
    (found,) = await collected(tmp_path, [variable("mine", "1"), PAIR], {"key": "a"}, {"key": "a"})
    assert {"aggregateKey": "a", "aggregateCount": 2, "aggregateReason": "size"} == dict(found.vars)


async def test_the_caller_of_each_message_gets_it_back_and_its_flow_ends(tmp_path: Path) -> None:
    async with load(tmp_path, flows(main=[PAIR, payload('"after"')])) as service:
        for result in await send(service, {"key": "a"}, {"key": "a"}):
            assert Outcome.STOPPED == result.outcome
            assert result.message is not None
            assert {"key": "a"} == result.message.body


async def test_the_answer_to_the_caller_can_be_made_by_a_chain(tmp_path: Path) -> None:
    response = {"process": [payload('"noted " + body.key')]}
    async with load(tmp_path, flows(main=[group(buildResponse=response)])) as service:
        (result,) = await send(service, {"key": "a"})
    assert result.message is not None
    assert ("noted a", Outcome.STOPPED) == (result.message.body, result.outcome)


async def test_a_fold_sees_the_group_as_it_was_before_the_message(tmp_path: Path) -> None:
    fold = "(vars.group.count == 0 ? 0 : vars.group.acc) + body.n"
    chain = [{**PAIR, "strategy": "expression", "expression": fold, "completionSize": "3"}]
    (found,) = await collected(tmp_path, chain, *({"key": "a", "n": n} for n in (1, 2, 4)))
    assert 7 == found.body


async def test_an_expression_completes_a_group_with_the_message_in_it(tmp_path: Path) -> None:
    chain = [group(completionExpression="vars.group.acc.exists(m, has(m.last))")]
    bodies = [{"key": "a"}, {"key": "b"}, {"key": "a", "last": True}]
    (found,) = await collected(tmp_path, chain, *bodies)
    assert ("a", 2, "expression") == (
        found.vars["aggregateKey"],
        found.vars["aggregateCount"],
        found.vars["aggregateReason"],
    )


async def test_expressions_see_all_of_the_group(tmp_path: Path) -> None:
    test = (
        'vars.group.key == "a" && vars.group.count == 1 && vars.group.size == -1 && '
        "vars.group.ageMs >= 0 && vars.group.idleMs >= 0 && "
        "timestamp(vars.group.firstAt) <= timestamp(vars.group.lastAt)"
    )
    assert 1 == len(await collected(tmp_path, [group(completionExpression=test)], {"key": "a"}))


async def test_a_place_that_nobody_took_is_null(tmp_path: Path) -> None:
    async with load(tmp_path, flows(main=[PAIR, NOTE])) as service:
        await send(service, {"key": "a", "n": 3}, groupIndex=3)
        await send(service, {"key": "a", "n": 1}, groupIndex=1)
    assert [[None, {"key": "a", "n": 1}, None, {"key": "a", "n": 3}]] == [
        seen.body for seen in Note.seen
    ]


async def test_a_place_that_is_absurdly_far_is_refused(tmp_path: Path) -> None:
    async with load(tmp_path, flows(main=[PAIR])) as service:
        (result,) = await send(service, {"key": "a"}, groupIndex=10**12)
    assert "groupIndex 1000000000000 is too far" in str(result.error)


async def test_the_correlation_id_is_that_of_the_first_message(tmp_path: Path) -> None:
    service = load(tmp_path, flows(main=[PAIR, NOTE]))
    async with service:
        for number in range(2):
            sent = Message({"key": "a"}, correlation_id=f"c{number}")
            await service._flows["main"].run(sent, Run(service, "main"))
    assert ["c0"] == [seen.correlation_id for seen in Note.seen]


@pytest.mark.parametrize("key", [None, "", " "])
async def test_a_message_that_belongs_to_no_group_fails(tmp_path: Path, key: Any) -> None:
    async with load(tmp_path, flows(main=[PAIR])) as service:
        (result,) = await send(service, {"key": key})
    assert "aggregate correlation is missing" in str(result.error)


async def test_without_a_split_the_group_must_be_named(tmp_path: Path) -> None:
    async with load(tmp_path, flows(main=[{"type": "aggregate"}])) as service:
        (result,) = await send(service, {})
    assert "aggregate correlation" in str(result.error)
    assert "groupId" in str(result.error)


@pytest.mark.parametrize("size", ['"two"', "1.5", "true", "null"])
async def test_a_size_that_is_no_number_fails(tmp_path: Path, size: str) -> None:
    async with load(tmp_path, flows(main=[{**PAIR, "completionSize": size}])) as service:
        (result,) = await send(service, {"key": "a"})
    assert "completionSize must be a whole number" in str(result.error)


async def test_a_group_of_one_is_complete_at_once(tmp_path: Path) -> None:
    chain = [group(completionSize="body.n", maxGroups=1)]
    found = await collected(tmp_path, chain, {"key": "open", "n": 9}, {"key": "a", "n": 1})
    assert ["a"] == [seen.vars["aggregateKey"] for seen in found]


async def test_many_messages_of_one_group_at_the_same_time_are_all_counted(tmp_path: Path) -> None:
    chain = [{**PAIR, "completionSize": "200"}, NOTE]
    async with load(tmp_path, flows(main=chain), f"sqlite:{tmp_path}/s.db") as service:
        calls = (service.invoke("main", {"key": "a", "n": n}) for n in range(200))
        results = await asyncio.gather(*calls)
    assert {Outcome.STOPPED} == {result.outcome for result in results}
    (found,) = Note.seen
    assert list(range(200)) == sorted(body["n"] for body in found.body)


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_two_processes_build_one_group(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    storage = f"sqlite:{tmp_path}/s.db"
    if kind == "redis":
        storage = request.getfixturevalue("redis_url")
    first = load(tmp_path, flows(main=[PAIR, NOTE]), storage)
    second = load(tmp_path, flows(main=[PAIR, NOTE]), storage)
    async with first, second:
        for number in range(10):
            await asyncio.gather(
                first.invoke("main", {"key": "a", "n": number}),
                second.invoke("main", {"key": "a", "n": number}),
            )
    assert 20 == sum(len(seen.body) for seen in Note.seen)


class Contended(MemoryStore):
    """A store on which somebody else is always first."""

    async def append(self, space: str, key: str, *_: Any, **__: Any) -> int:
        raise VersionConflict(key, 1, 2)


async def test_a_message_that_always_comes_second_says_so(tmp_path: Path) -> None:
    service = load(tmp_path, flows(main=[PAIR]))
    service.storage = Storage("test", Contended(), MemoryStore())
    async with service:
        (result,) = await send(service, {"key": "a"})
    assert "group 'a' was changed by others 5 times" in str(result.error)


async def test_a_group_survives_a_restart_and_is_gone_once_released(tmp_path: Path) -> None:
    for _ in range(2):
        async with load(tmp_path, flows(main=[PAIR, NOTE]), f"sqlite:{tmp_path}/s.db") as service:
            await send(service, {"key": "a"})
            await service.stop()
            keys = (await service.storage.space("system").scan()).keys
    assert [2] == [len(seen.body) for seen in Note.seen]
    assert [] == keys


async def test_a_released_group_that_fails_goes_to_the_error_chain(tmp_path: Path) -> None:
    document = flows(main=[PAIR, BROKEN])
    document["flows"][0]["error"] = [NOTE]
    async with load(tmp_path, document) as service:
        results = await send(service, {"key": "a"}, {"key": "a"})
    assert {Outcome.STOPPED} == {result.outcome for result in results}
    assert ["test-broken"] == [seen.vars["error"]["block"] for seen in Note.seen]


async def test_a_released_group_that_fails_for_good_leaves_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with load(tmp_path, flows(main=[PAIR, BROKEN])) as service:
        await send(service, {"key": "a"}, {"key": "a"})
    told = capsys.readouterr().err
    assert "background work failed" in told
    assert "boom" in told


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"strategy": "expression"}, "strategy expression needs an expression"),
        ({"expression": "1"}, "strategy append has no expression"),
        ({"timeoutFrom": "last"}, "timeoutFrom needs a completionTimeout"),
        ({"completionTimeout": "0s"}, "completionTimeout"),
        ({"completionTimeout": "-1s"}, "a duration cannot be negative"),
        ({"maxGroups": 0}, "maxGroups"),
        ({"onOverflow": "wait"}, "onOverflow"),
        ({"completionSize": "1 +"}, "completionSize"),
    ],
)
def test_what_cannot_work_does_not_load(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        load(tmp_path, flows(main=[group(**settings)]))
    (fault,) = caught.value.faults
    assert fault.position is not None


@pytest.mark.parametrize(("first", "second"), [({}, {}), ({"storeKey": "k"}, {"storeKey": "k"})])
def test_two_aggregates_on_one_store_key_do_not_load(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="two blocks have the aggregate storeKey") as caught:
        load(tmp_path, flows(main=[group(**first), group(**second)]))
    (fault,) = caught.value.faults
    assert fault.position is not None
    assert fault.path.startswith("flows.main.process[1]")
    assert "the first is at " in str(fault)


def test_two_aggregates_with_names_of_their_own_load(tmp_path: Path) -> None:
    assert load(tmp_path, flows(main=[group(name="a"), group(name="b")])).flows


def test_an_aggregate_inside_another_block_does_not_load(tmp_path: Path) -> None:
    chain = [{"type": "if", "condition": "true", "then": {"process": [group()]}}]
    with pytest.raises(ConfigError, match="aggregate is allowed in the process list"):
        load(tmp_path, flows(main=chain))
