"""A store in Redis or Valkey (6.2 and newer), for services that run as several replicas.

Every write is one script, so that a version and its value move together. A key is a hash (kind,
version, generation, data); a log has a list of entries beside it with the same lifetime. The names
of a space are in a sorted set, for scans in order without walking the whole database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from flowrt.errors import StoreError, StoreUnavailable, VersionConflict
from flowrt.ids import new_id
from flowrt.observe.log import get_logger
from flowrt.observe.masking import mask_text
from flowrt.storage import redis_scripts as scripts
from flowrt.storage.encoding import (
    LOG,
    decode_key,
    decode_value,
    encode_json,
    encode_key,
    encode_value,
)
from flowrt.storage.protocol import Key, Log, Page, Stored
from flowrt.storage.redis_lease import RedisLease

T = TypeVar("T")

CONNECTIONS = 32
"""Connections a process keeps at most; further commands wait for one."""

CONNECT_SECONDS, COMMAND_SECONDS = 2.0, 10.0

_log = get_logger("flowrt.storage")


class RedisStore:
    """Keeps everything in a Redis database under keys that start with ``flowrt:``.

    A Redis Cluster is not supported: a write touches keys of several slots. Where Redis goes away,
    commands fail within seconds, and work again when it is back.
    """

    def __init__(self, url: str, *, durable: bool = True) -> None:
        self.url = mask_text(url)
        self._address = url
        self._durable = durable
        self._client: Any = None
        self._scripts: dict[str, Any] = {}

    async def open(self) -> None:
        """Connect, and warn once where what is stored may be dropped."""
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import ExponentialBackoff

        pool = BlockingConnectionPool.from_url(
            self._address,
            max_connections=CONNECTIONS,
            timeout=COMMAND_SECONDS,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=COMMAND_SECONDS,
            # The library's own default keeps trying a closed port for seconds.
            retry=Retry(ExponentialBackoff(cap=0.2, base=0.05), 2),
        )
        client = Redis(connection_pool=pool, protocol=2)
        self._client = client
        self._scripts = {name: client.register_script(text) for name, text in scripts.ALL.items()}
        try:
            await self._call(lambda: client.ping())
        except StoreError:
            await self.close()
            raise
        if self._durable:
            await self._check_durability()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose(close_connection_pool=True)

    async def _call(self, command: Callable[[], Awaitable[T]]) -> T:
        from redis import exceptions

        if self._client is None:
            raise StoreError(f"storage {self.url} is not open")
        try:
            return await command()
        except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
            raise StoreUnavailable(
                f"storage {self.url} cannot be reached: {mask_text(str(error))}"
            ) from error
        except exceptions.RedisError as error:
            raise StoreError(f"storage {self.url} refused: {mask_text(str(error))}") from error

    async def _check_durability(self) -> None:
        from redis import exceptions

        try:
            found = await self._client.config_get("maxmemory-policy", "save", "appendonly")
        except exceptions.RedisError as error:
            _log.warning(
                "whether this Redis keeps its data could not be checked",
                url=self.url,
                error=str(error),
            )
            return
        settings = {_text(key): _text(value) for key, value in found.items()}
        policy = settings.get("maxmemory-policy", "noeviction")
        faults = []
        if policy != "noeviction":
            faults.append(f"maxmemory-policy is {policy}, so it may drop conversations")
        if settings.get("appendonly") != "yes" and not settings.get("save"):
            faults.append("neither appendonly nor save is set, so a restart forgets everything")
        if faults:
            _log.warning("the persistent Redis may lose data: " + "; ".join(faults), url=self.url)

    def _names(self, space: str, key: str) -> list[bytes]:
        name = encode_key(f"{space}/{key}")
        return [b"flowrt:k:" + name, b"flowrt:l:" + name, b"flowrt:i:" + encode_key(space)]

    async def _write(
        self,
        operation: str,
        space: str,
        key: str,
        expect: int | None,
        *,
        kind: int = LOG,
        data: bytes = b"",
        ttl: float | None = None,
        entries: Sequence[bytes] = (),
    ) -> tuple[int, int]:
        arguments = [
            operation,
            "" if expect is None else expect,
            kind,
            "" if ttl is None else max(1, round(ttl * 1000)),
            data,
            encode_key(key),
            b"flowrt:k:" + encode_key(space) + b"/",
            *entries,
        ]
        script = self._scripts["write"]
        status, version = await self._call(
            lambda: script(keys=self._names(space, key), args=arguments)
        )
        if status == scripts.CONFLICT:
            raise VersionConflict(key, expect or 0, version)
        if status == scripts.WRONG_KIND:
            found, wanted = ("a value", "a log") if kind == LOG else ("a log", "a value")
            raise StoreError(f"key {key!r} holds {found}, not {wanted}")
        return status, version

    async def _read(self, space: str, key: str, *, log: bool) -> list[Any] | None:
        script = self._scripts["read"]
        names = self._names(space, key)[:2]
        found: list[Any] = await self._call(lambda: script(keys=names, args=[]))
        if found[0] is None:
            return None
        if (int(found[0]) == LOG) != log:
            has, wanted = ("a value", "a log") if log else ("a log", "a value")
            raise StoreError(f"key {key!r} holds {has}, not {wanted}")
        return found

    async def get(self, space: str, key: str) -> Stored | None:
        found = await self._read(space, key, log=False)
        if found is None:
            return None
        return Stored(decode_value(int(found[0]), found[3]), int(found[1]))

    async def set(
        self,
        space: str,
        key: str,
        value: Any,
        *,
        expect: int | None = None,
        ttl: float | None = None,
    ) -> int:
        kind, data = encode_value(value)
        _, version = await self._write("set", space, key, expect, kind=kind, data=data, ttl=ttl)
        return version

    async def delete(self, space: str, key: str, *, expect: int | None = None) -> bool:
        status, _ = await self._write("delete", space, key, expect)
        return status == scripts.DONE

    async def append(
        self,
        space: str,
        key: str,
        entries: Sequence[bytes],
        *,
        head: Any = None,
        expect: int | None = None,
        ttl: float | None = None,
    ) -> int:
        data = encode_json(head)
        _, version = await self._write(
            "append", space, key, expect, data=data, ttl=ttl, entries=entries
        )
        return version

    async def rewrite(
        self,
        space: str,
        key: str,
        entries: Sequence[bytes],
        *,
        head: Any = None,
        expect: int | None = None,
        ttl: float | None = None,
    ) -> int:
        data = encode_json(head)
        _, version = await self._write(
            "rewrite", space, key, expect, data=data, ttl=ttl, entries=entries
        )
        return version

    async def read_log(self, space: str, key: str) -> Log | None:
        found = await self._read(space, key, log=True)
        if found is None:
            return None
        _, version, generation, data, entries = found
        return Log(decode_value(0, data), list(entries), int(version), int(generation))

    async def scan(
        self, space: str, prefix: str = "", *, after: str | None = None, limit: int = 500
    ) -> Page:
        low = encode_key(prefix)
        high = b"(" + low + b"\xff"
        start = b"[" + low
        if after is not None and encode_key(after) >= low:
            start = b"(" + encode_key(after)
        script = self._scripts["scan"]
        keys: list[Key] = []
        while len(keys) <= limit:
            _, _, index = self._names(space, "")
            arguments = [start, high, limit + 1, b"flowrt:k:" + encode_key(space) + b"/"]
            last, rows = await self._call(
                lambda index=index, arguments=arguments: script(keys=[index], args=arguments)  # type: ignore[misc]
            )
            keys += [
                Key(decode_key(name), int(version), "log" if int(kind) == LOG else "value")
                for name, kind, version in rows
            ]
            if last is None:
                break
            start = b"(" + last
        more = len(keys) > limit
        return Page(keys[:limit], keys[limit - 1].name if more else None)

    async def try_lease(
        self, space: str, key: str, *, ttl: float, on_lost: Callable[[], None] | None = None
    ) -> RedisLease | None:
        name = b"flowrt:lease:" + encode_key(f"{space}/{key}")
        lease = RedisLease(self._call, self._client, self._scripts, name, key, new_id(), ttl)
        lease.on_lost = on_lost
        try:
            return lease if await self._call(lease.claim) else None
        except asyncio.CancelledError:
            # The claim may have reached the server: nobody would ever release it.
            await lease.release()
            raise


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
