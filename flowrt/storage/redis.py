"""A store in Redis or Valkey (6.2 and newer), for services that run as several replicas.

Every write is one script, so that a version and its value move together. The names of a space are
in a sorted set, for scans in order without walking the whole database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from flowrt.errors import StoreError, StoreUnavailable, VersionConflict
from flowrt.observe.log import get_logger
from flowrt.observe.masking import mask_text
from flowrt.storage import redis_scripts as scripts
from flowrt.storage.agents import redis_scripts as agent_scripts
from flowrt.storage.agents.redis import RedisAgentStore
from flowrt.storage.encoding import (
    JSON,
    LOG,
    check_kind,
    decode_key,
    decode_value,
    encode_entries,
    encode_json,
    encode_key,
    encode_value,
    kind_name,
    lifetime,
)
from flowrt.storage.mail import redis_scripts as mail_scripts
from flowrt.storage.mail.redis import RedisMail
from flowrt.storage.mail.redis_link import RedisLink
from flowrt.storage.protocol import Key, Log, Page, Stored
from flowrt.storage.redis_lease import RedisLease
from flowrt.storage.redis_url import check_url, mask_url

T = TypeVar("T")

CONNECTIONS = 32
"""Connections a process keeps at most; further commands wait for one."""

WAITING_CONNECTIONS = 1024
"""Connections at most that wait for messages: one for each source that hears or works them."""

CONNECT_SECONDS, COMMAND_SECONDS = 2.0, 10.0

REWRITE_TRIES = 100
"""How often, every 100 ms, a rewrite of the append-only file is asked for."""

_log = get_logger("flowrt.storage")


class RedisStore:
    """Keeps everything in a Redis database under keys that start with ``flowrt:{SPACE}``.

    `durable` says that what is stored is to stay: `open` then warns where this Redis may drop it.
    All keys of a space share a hash tag, for proxies that refuse scripts over several slots. Where
    Redis goes away, commands fail within seconds, and work again when it is back. A write whose
    answer was lost is reported and not sent again: sent twice, it would append twice.
    """

    def __init__(self, url: str, *, durable: bool = True) -> None:
        check_url(url)
        self.url = mask_url(url)
        self._address = url
        self._durable = durable
        self._client: Any = None
        self._waiting: Any = None
        self._scripts: dict[str, Any] = {}
        self._releasing: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Connect, and warn once where what is stored may be dropped."""
        if self._client is not None:
            return
        client = self._connect(CONNECTIONS)
        self._client, self._waiting = client, self._connect(WAITING_CONNECTIONS)
        texts = scripts.ALL | agent_scripts.ALL | mail_scripts.ALL
        self._scripts = {name: client.register_script(text) for name, text in texts.items()}
        try:
            await self._call(lambda: client.ping(), again=True)
            if self._durable:
                await self._check_durability()
        except BaseException:
            await self.close()
            raise

    def _connect(self, most: int) -> Any:
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        try:
            pool = BlockingConnectionPool.from_url(
                self._address,
                max_connections=most,
                timeout=COMMAND_SECONDS,
                socket_connect_timeout=CONNECT_SECONDS,
                # Timed in `_call`: the library would use `wait_for`, which in Python 3.11 swallows
                # a cancellation that comes together with the result.
                socket_timeout=None,
                # Who only listens would never notice a peer that vanished.
                socket_keepalive=True,
                protocol=2,
                # The library's own default repeats writes, and tries a closed port for seconds.
                # A connection that died while it lay idle is noticed and replaced before its use.
                retry=Retry(NoBackoff(), 0),
            )
        except (ValueError, TypeError) as error:
            raise StoreUnavailable(f"storage {self.url}: {mask_text(str(error))}") from error
        return Redis(connection_pool=pool)

    def agents(self) -> RedisAgentStore:
        """The record of agents in the same database, over the same connections."""
        return RedisAgentStore(self._script, self._rewrite_file)

    def mail(self, service: str, opened: Callable[[], Awaitable[Any]]) -> RedisMail:
        """The messages of a service, in the same database."""
        link = RedisLink(self._script, self._call, lambda: self._client, lambda: self._waiting)
        return RedisMail(service, link, opened)

    async def close(self) -> None:
        """Finish the releases under way and close all connections."""
        client = self._client
        if client is None:
            return
        if self._releasing:
            await asyncio.wait(self._releasing)
        waiting, self._client, self._waiting = self._waiting, None, None
        await client.aclose(close_connection_pool=True)
        await waiting.aclose(close_connection_pool=True)

    async def _call(self, command: Callable[[], Awaitable[T]], *, again: bool = False) -> T:
        from redis import exceptions

        if self._client is None:
            raise StoreError(f"storage {self.url} is not open")
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                try:
                    return await command()
                except exceptions.ConnectionError:
                    if not again:
                        raise
                return await command()
        except TimeoutError as error:
            raise StoreUnavailable(
                f"storage {self.url} did not answer within {COMMAND_SECONDS:.0f} s"
            ) from error
        except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
            raise StoreUnavailable(
                f"storage {self.url} cannot be reached: {mask_text(str(error))}"
            ) from error
        except exceptions.RedisError as error:
            raise StoreError(f"storage {self.url} {_refusal(str(error))}") from error

    async def _script(
        self, name: str, keys: list[bytes], arguments: list[Any], *, again: bool = True
    ) -> Any:
        return await self._call(lambda: self._scripts[name](keys=keys, args=arguments), again=again)

    async def _check_durability(self) -> None:
        try:
            found = await self._call(
                lambda: self._client.config_get("maxmemory-policy", "save", "appendonly")
            )
        except StoreUnavailable:
            raise
        except StoreError as error:
            _log.warning(
                "whether the persistent Redis keeps its data could not be checked",
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

    async def _rewrite_file(self) -> None:
        """Have what was removed leave the append-only file, where the server keeps one."""
        fault = "it is being rewritten from before the removal"
        try:
            for _ in range(REWRITE_TRIES):
                if await self._rewrite_begins():
                    return
                await asyncio.sleep(0.1)
        except StoreError as error:
            fault = str(error)
        _log.warning(
            "what was forgotten is in the append-only file of Redis until BGREWRITEAOF",
            url=self.url,
            error=fault,
        )

    async def _rewrite_begins(self) -> bool:
        """Whether a rewrite begins now or later; none does while one from before is under way."""
        found = await self._call(lambda: self._client.info("persistence"), again=True)
        if not found["aof_enabled"] or found["aof_rewrite_scheduled"]:
            return True
        try:
            await self._call(lambda: self._client.bgrewriteaof(), again=True)
        except StoreError as error:
            if "already in progress" in str(error):
                return False
            raise
        return True

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
        name, prefix = encode_key(key), _name(space, b"k")
        seconds = lifetime(ttl)
        arguments = [
            operation,
            "" if expect is None else expect,
            kind,
            "" if seconds is None else max(1, round(seconds * 1000)),
            data,
            name,
            prefix,
            *entries,
        ]
        keys = [prefix + name, _name(space, b"index")]
        status, version = await self._script("write", keys, arguments, again=False)
        if status == scripts.CONFLICT:
            raise VersionConflict(key, expect or 0, version)
        if status == scripts.WRONG_KIND:
            check_kind(key, JSON if kind == LOG else LOG, log=kind == LOG)
        return status, version

    async def get(self, space: str, key: str) -> Stored | None:
        name = _name(space, b"k") + encode_key(key)
        kind, version, data = await self._call(
            lambda: self._client.hmget(name, "k", "v", "d"), again=True
        )
        if kind is None:
            return None
        check_kind(key, int(kind), log=False)
        return Stored(decode_value(int(kind), data), int(version))

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
        data, new = encode_json(head), encode_entries(entries)
        _, version = await self._write(
            "append", space, key, expect, data=data, ttl=ttl, entries=new
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
        data, new = encode_json(head), encode_entries(entries)
        _, version = await self._write(
            "rewrite", space, key, expect, data=data, ttl=ttl, entries=new
        )
        return version

    async def read_log(self, space: str, key: str, *, entries: bool = True) -> Log | None:
        name = _name(space, b"k") + encode_key(key)
        if entries:
            found = await self._call(lambda: self._client.hgetall(name), again=True)
        else:
            fields = (b"k", b"d", b"v", b"g")
            read = await self._call(lambda: self._client.hmget(name, *fields), again=True)
            found = dict(zip(fields, read, strict=True)) if read[0] is not None else {}
        if not found:
            return None
        check_kind(key, int(found[b"k"]), log=True)
        kept = [found[b"%d" % at] for at in range(int(found[b"n"]))] if entries else []
        head = decode_value(JSON, found[b"d"])
        return Log(head, kept, int(found[b"v"]), int(found[b"g"]))

    async def scan(
        self, space: str, prefix: str = "", *, after: str | None = None, limit: int = 500
    ) -> Page:
        low = encode_key(prefix)
        # No UTF-8 byte is 0xFF, so this is above every key with the prefix.
        high = b"(" + low + b"\xff"
        start = b"[" + low
        if after is not None and encode_key(after) >= low:
            start = b"(" + encode_key(after)
        keys: list[Key] = []
        last: bytes | None = b""
        while last is not None and len(keys) <= limit:
            arguments = [start, high, limit + 1, _name(space, b"k")]
            last, rows = await self._script("scan", [_name(space, b"index")], arguments)
            keys += [
                Key(decode_key(name), int(version), kind_name(int(kind)))
                for name, kind, version in rows
            ]
            start = b"(" + (last or b"")
        more = len(keys) > limit
        return Page(keys[:limit], keys[limit - 1].name if more else None)

    async def try_lease(
        self, space: str, key: str, *, ttl: float, on_lost: Callable[[], None] | None = None
    ) -> RedisLease | None:
        name = _name(space, b"lease") + encode_key(key)
        lease = RedisLease(self._script, name, key, ttl, on_lost, self._releasing)
        return lease if await lease.claim() else None


def _name(space: str, part: bytes) -> bytes:
    """The start of the Redis keys of a space; the braces are the hash tag."""
    tag = space.replace("%", "%25").replace("}", "%7D")
    return b"flowrt:{" + encode_key(tag) + b"}:" + part + b":"


def _refusal(reply: str) -> str:
    """What the server answered, without the position in our script."""
    reason = mask_text(reply.partition(". script:")[0])
    if "maxmemory" in reply:
        return f"is full and refused: {reason}; delete what is old, or raise maxmemory"
    return f"refused: {reason}"


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
