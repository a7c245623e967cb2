"""Questions to real processes, of which one after the other is killed."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from flowrt.ids import new_id
from tests.engine.test_shared_transport import replica
from tests.storage.test_processes import go, process, started

ANSWER = """
from flowrt.engine.shared_transport import SharedTransport
from flowrt.storage.mail.protocol import Terms

transport = SharedTransport(storage.mail(), Terms(stale=1))

async def answer(payload, delivery):
    await asyncio.sleep(0.02)
    return {"n": payload["n"], "by": name}

consumer = await transport.consume("q", answer, listeners=4, buffer=1)
await asyncio.Event().wait()
"""


async def test_every_question_is_answered_though_two_of_three_processes_are_killed(
    redis_url: str,
) -> None:
    service = f"test {new_id()}"
    answers: dict[int, str] = {}
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(process(redis_url, service, name, ANSWER)) for name in "abc"
        }
        for worker in workers.values():
            started(worker)
            go(worker)
        async with replica(redis_url, service, stale=1) as sender:

            async def ask(number: int) -> None:
                answer = await sender.transport.request("q", {"n": number})
                assert number == answer["n"]
                assert number not in answers
                answers[number] = answer["by"]

            async def killed_after(name: str, answered: int) -> None:
                while len(answers) < answered or name not in answers.values():
                    await asyncio.sleep(0.005)
                workers[name].kill()

            async with asyncio.timeout(60):
                await asyncio.gather(
                    *(ask(number) for number in range(400)),
                    killed_after("a", 50),
                    killed_after("b", 150),
                )
            assert 0 == await sender.mail.length("queue q")
            assert [] == await sender.mail.parked()
    assert set(range(400)) == set(answers)
    assert {"a", "b", "c"} == set(answers.values())
