"""A service whose agents have been talked to, and the commands about what they remember."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis

from flowrt.testing import FakeMessagesAPI
from tests.agent.remembering import Kept, remembering, say
from tests.cli.conftest import Flowrt
from tests.services import load


@pytest.fixture(params=["sqlite", "redis"])
def any_storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that outlives a process, of each kind."""
    if request.param == "redis":
        url: str = request.getfixturevalue("redis_url")
        # The commands list whatever a service has, and all services here are named alike.
        with redis.Redis.from_url(url) as client:
            client.flushdb()
        return url
    return f"sqlite:{tmp_path}/state.db"


class Memory:
    """`flowrt memory` on one service file and one store."""

    def __init__(self, flowrt: Flowrt, folder: Path, storage: str) -> None:
        self.flowrt = flowrt
        self.folder = folder
        self.storage = storage

    def run(self, command: str, *arguments: str, **environ: str) -> Any:
        """The finished process."""
        options = ("--config", "service.yaml", "--storage", self.storage)
        return self.flowrt("memory", command, *arguments, *options, **environ)

    def json(self, command: str, *arguments: str, **environ: str) -> Any:
        """What it prints with `--json`."""
        done = self.run(command, *arguments, "--json", **environ)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    async def talk(
        self, *said: tuple[str, str, str, Any], volatile: str = "", **settings: Any
    ) -> None:
        """Have conversations: thread, user, what is said, and what the model replies."""
        environ = {"FLOWRT_VOLATILE": volatile} if volatile else {}
        with FakeMessagesAPI([]) as api:
            document = remembering(api.base_url, userMemory=True, **settings)
            async with load(self.folder, document, self.storage, environ=environ) as service:
                for thread, user, text, replies in said:
                    api.add(*(replies if isinstance(replies, list) else [replies]))
                    await service.invoke("chat", say(text, thread, user))

    async def put(self, name: str, value: str, user: str = "ann") -> None:
        """Keep a fact that comes from no conversation."""
        kept = Kept.at(self.storage)
        await kept.put(name, value, user)
        await kept.close()


@pytest.fixture
def memory(flowrt: Flowrt, tmp_path: Path) -> Memory:
    """`flowrt memory` on a SQLite file."""
    return Memory(flowrt, tmp_path, f"sqlite:{tmp_path}/state.db")


@pytest.fixture
def any_memory(flowrt: Flowrt, tmp_path: Path, any_storage: str) -> Memory:
    """`flowrt memory` on each kind of store."""
    return Memory(flowrt, tmp_path, any_storage)
