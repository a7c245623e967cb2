"""A Redis for tests that do thousands of things."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.redis_server import RedisServer


@pytest.fixture(scope="session")
def quick_redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that keeps no file: one that outlives its clients is enough."""
    server = RedisServer(tmp_path_factory.mktemp("redis"), appendonly="no", save="3600 1000000")
    server.start()
    yield server.url
    server.stop()
