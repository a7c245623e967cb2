"""The store in Redis."""

from __future__ import annotations

import pytest
from redis import Redis

from flowrt.storage.protocol import KeyValue, Lease
from flowrt.storage.redis import RedisStore
from flowrt.testing.store_conformance import StoreConformance


class TestRedisStore(StoreConformance):
    @pytest.fixture
    def store(self, redis_url: str) -> KeyValue:
        self.url = redis_url
        with Redis.from_url(redis_url) as client:
            client.flushdb()
        return RedisStore(redis_url)

    def another(self, store: KeyValue) -> KeyValue:
        return RedisStore(self.url)

    async def advance(self, store: KeyValue, seconds: float) -> None:
        """Shorten what every key has left."""
        with Redis.from_url(self.url) as client:
            for name in client.scan_iter("flowrt:*"):
                left = client.pttl(name)
                if left >= 0:
                    client.pexpire(name, int(left - seconds * 1000))

    async def take_away(self, store: KeyValue, lease: Lease) -> None:
        with Redis.from_url(self.url) as client:
            for name in client.scan_iter(f"flowrt:*:lease:{lease.key}"):
                client.delete(name)
