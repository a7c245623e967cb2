"""A process that dies between any two writes, again and again: arguments URL SEED CRASHES.

Random work is done once to its end, to count the moments at which it can stop: before each SQL
statement, or before and after each command to a Redis. Then it is done anew and killed at a
moment, for many moments. What the next process finds has to be what was acknowledged, with or
without the one piece of work that was under way; and the rest of the work goes on from there.

Each life is a fork of this process, which has no store open then: a start from nothing costs a
hundred times as much. What is there afterwards is looked at here, through a store that is new.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import sys
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

from redis.asyncio.connection import AbstractConnection

import flowrt.storage.agents.redis
import flowrt.storage.agents.sqlite
import flowrt.storage.redis
import flowrt.storage.sqlite_worker  # noqa: F401 - each fork would import all of these anew
from flowrt.ids import new_id
from flowrt.storage.tiers import parse_storage_url
from flowrt.testing.store_conformance.suite import opened
from tests.storage.agents.interleaving import agents
from tests.storage.agents.model import Model, Work, done, state, work

PIECES = 10
KILLED = 99


class Life:
    """The moments of a process, counted once it works; at number `last` it is gone. 0 is never."""

    def __init__(self, last: int) -> None:
        self.moments = 0
        self.works = False
        self._last = last

    def moment(self, _: object = None) -> None:
        """One more."""
        self.moments += self.works
        if self.works and self.moments == self._last:
            os._exit(KILLED)

    def watch(self) -> None:
        """Watch what this process says to its stores."""
        connect, send = sqlite3.connect, AbstractConnection.send_packed_command

        def connect_watched(*arguments: Any, **options: Any) -> sqlite3.Connection:
            db = connect(*arguments, **options)
            db.set_trace_callback(self.moment)
            return db

        async def send_watched(link: AbstractConnection, *arguments: Any, **options: Any) -> None:
            self.moment()
            await send(link, *arguments, **options)
            self.moment()

        sqlite3.connect = connect_watched  # type: ignore[assignment]
        AbstractConnection.send_packed_command = send_watched  # type: ignore[method-assign]


def fork(life: Callable[[Callable[[str], None]], Coroutine[Any, Any, None]]) -> tuple[int, str]:
    """Run a life in a process of its own: its exit code, and what it said until its end."""
    ear, mouth = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            asyncio.run(life(lambda text: (os.write(mouth, text.encode()), None)[1]))
            code = 0
        except BaseException:  # noqa: BLE001 - shown, and the process ends here
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(mouth)
    with os.fdopen(ear) as heard:
        said = heard.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


class Story:
    """The work of one seed, on one store."""

    def __init__(self, url: str, seed: int) -> None:
        self._url = url
        self._seed = seed
        self.chance = random.Random(seed)
        model, self.pieces = Model(), list[Work]()
        for _ in range(PIECES):
            self.pieces.append(model.read(work(self.chance.choice)))
            model.does(self.pieces[-1])

    def moments(self) -> int:
        """At how many moments the work can stop."""
        code, said = self._live(new_id(), 0)
        moments = int(said.rpartition(".")[2])
        assert code == 0
        assert moments > PIECES
        return moments

    def crash(self, last: int) -> bool:
        """Do the work, be gone at a moment, see what is there; whether it was gone.

        Not always: what work waits together is one transaction, so lives differ by some moments.
        """
        service = new_id()
        died, said = self._live(service, last)
        assert died in (KILLED, 0)
        acknowledged = said.count(".")
        try:
            asyncio.run(self._survive(service, acknowledged))
        except Exception as error:
            what = f"{acknowledged} acknowledged, killed at {last}"
            raise AssertionError(f"{self._url}, seed {self._seed}: {what}") from error
        return died == KILLED

    def _live(self, service: str, last: int) -> tuple[int, str]:
        async def life(say: Callable[[str], None]) -> None:
            # Before the stores connect: each connection is watched from its beginning.
            counted = Life(last)
            counted.watch()
            one, other = parse_storage_url(self._url), parse_storage_url(self._url)
            async with opened(one), opened(other):
                replicas = agents(one), agents(other)
                counted.works = True
                for number, piece in enumerate(self.pieces):
                    await done(piece, replicas[number % 2], service)
                    say(".")
            say(f"{counted.moments}")

        return fork(life)

    async def _survive(self, service: str, acknowledged: int) -> None:
        model = Model()
        for piece in self.pieces[:acknowledged]:
            model.does(piece)
        store = parse_storage_url(self._url)
        async with opened(store):
            found = await state(agents(store), service)
            if model.state() != found and acknowledged < PIECES:
                model.does(self.pieces[acknowledged])
                acknowledged += 1
            assert model.state() == found
            for piece in self.pieces[acknowledged:]:
                assert model.does(piece) == await done(piece, agents(store), service)
            assert model.state() == await state(agents(store), service)


def crashes(url: str, seed: int, count: int) -> None:
    """Crash so often, at moments spread over stories of eight crashes each."""
    while count > 0:
        story = Story(url, seed)
        moments = range(1, story.moments() + 1)
        count -= sum(story.crash(last) for last in story.chance.sample(moments, 8))
        seed += 1


if __name__ == "__main__":
    crashes(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
