"""Messages in Redis or Valkey (6.2 and newer), beside the keys of a `RedisStore`.

What is where, and which scripts work on it: `flowrt.storage.mail.redis_scripts`. A reader that
waits and a listener have connections of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from flowrt.errors import StoreError
from flowrt.storage.encoding import decode_key, encode_key
from flowrt.storage.mail.protocol import (
    Delivery,
    Parked,
    Published,
    ReplyTo,
    Taken,
    Terms,
    box_of,
)
from flowrt.storage.mail.redis_link import RedisLink
from flowrt.storage.mail.redis_scripts import GROUP


class RedisMail:
    """The boxes of a service under keys that start with ``flowrt:{SERVICE/mail}:``."""

    def __init__(self, service: str, link: RedisLink, opened: Callable[[], Awaitable[Any]]) -> None:
        escaped = service.replace("%", "%25").replace("/", "%2F").replace("}", "%7D")
        self._prefix = b"flowrt:{" + encode_key(escaped) + b"/mail}:"
        self._parked = self._prefix + b"parked"
        self._link = link
        self._opened = opened

    def _stream(self, box: str) -> bytes:
        return self._prefix + b"box:" + encode_key(box)

    def _replies(self, process: str) -> bytes:
        return self._prefix + b"replies:" + process.encode()

    def _subscriptions(self, topic: str) -> bytes:
        return self._prefix + b"topic:" + encode_key(topic)

    def _channel(self, channel: str) -> bytes:
        return self._prefix + b"channel:" + encode_key(channel)

    async def _script(
        self, name: str, keys: list[bytes], *arguments: Any, again: bool = True
    ) -> Any:
        await self._opened()
        return await self._link.script(f"mail_{name}", keys, list(arguments), again=again)

    async def add(
        self,
        box: str,
        data: bytes,
        places: int,
        reply_to: ReplyTo | None = None,
        order: str = "",
    ) -> str | None:
        fields: list[Any] = ["p", data]
        if order:
            fields += ["o", encode_key(order)]
        if reply_to is not None:
            fields += ["r", self._replies(reply_to.process), "q", reply_to.question]
        # Not again: sent twice, the message would be there twice.
        keys, arguments = [self._stream(box)], (places, encode_key(order), *fields)
        id_ = await self._script("add", keys, *arguments, again=False)
        return None if id_ is None else id_.decode()

    async def heads(self, box: str, orders: Sequence[str]) -> list[str]:
        heads = await self._script("heads", [self._stream(box)], *map(encode_key, orders))
        return [head.decode() for head in heads]

    async def open_box(self, box: str) -> None:
        await self._script("open", [self._stream(box)])

    async def read(self, box: str, reader: str, *, count: int, wait: float) -> list[Delivery]:
        await self._opened()
        stream = self._stream(box)
        try:
            found = await self._link.call(
                lambda: self._link.waiting().xreadgroup(
                    GROUP, reader, {stream: ">"}, count=count, block=max(1, round(wait * 1000))
                )
            )
        except StoreError as error:
            if "NOGROUP" not in str(error):
                raise
            # New, or Redis was emptied while it was read.
            await self.open_box(box)
            return []
        return [self._delivery(entry) for _, entries in found or [] for entry in entries]

    async def length(self, box: str) -> int:
        await self._opened()
        stream = self._stream(box)
        length: int = await self._link.call(lambda: self._link.client().xlen(stream), again=True)
        return length

    async def take_over(self, box: str, reader: str, *, count: int, terms: Terms) -> Taken:
        arguments = [round(terms.stale * 1000), count, terms.tries, encode_key(box), terms.parked]
        keys = [self._stream(box), self._parked]
        taken, parked, waiting = await self._script(
            "take_over", keys, reader, *arguments, again=False
        )
        rows = [(id_, dict(zip(fields[::2], fields[1::2], strict=True))) for id_, fields in taken]
        return Taken(
            [self._delivery(row) for row in rows], [id_.decode() for id_ in parked], waiting
        )

    def _delivery(self, entry: tuple[bytes, dict[bytes, bytes]]) -> Delivery:
        id_, fields = entry
        reply_to = None
        if b"r" in fields:
            process = fields[b"r"].removeprefix(self._replies("")).decode()
            reply_to = ReplyTo(process, fields[b"q"].decode())
        order = decode_key(fields.get(b"o", b""))
        return Delivery(id_.decode(), fields[b"p"], reply_to, order)

    async def renew(self, box: str, reader: str, ids: Sequence[str]) -> list[str]:
        lost = await self._script("renew", [self._stream(box)], reader, *ids)
        return [id_.decode() for id_ in lost]

    async def settle(self, box: str, delivery: Delivery, answer: bytes | None) -> None:
        keys, arguments = [self._stream(box)], [delivery.id]
        if delivery.reply_to is not None and answer is not None:
            keys.append(self._replies(delivery.reply_to.process))
            await self._script("settle", keys, *arguments, delivery.reply_to.question, answer)
        else:
            await self._script("settle", keys, *arguments)

    async def park(self, box: str, delivery: Delivery, error: str, terms: Terms) -> bool:
        keys = [self._stream(box), self._parked]
        text = encode_key(error)
        full = await self._script("park", keys, delivery.id, encode_key(box), text, terms.parked)
        return bool(full)

    async def give_back(self, box: str, reader: str) -> int:
        given: int = await self._script("give_back", [self._stream(box)], reader)
        return given

    async def withdraw(self, box: str, id_: str) -> bool:
        return bool(await self._script("withdraw", [self._stream(box)], id_))

    async def replies(
        self, process: str, after: str, *, wait: float
    ) -> list[tuple[str, str, bytes]]:
        await self._opened()
        stream = self._replies(process)
        if after != "0":
            # What was read before is not needed again, also where this read breaks.
            await self._link.call(
                lambda: self._link.client().xtrim(stream, minid=after, approximate=False),
                again=True,
            )
        block = max(1, round(wait * 1000))
        found = await self._link.call(
            lambda: self._link.waiting().xread({stream: after}, block=block), again=True
        )
        return [
            (id_.decode(), fields[b"q"].decode(), fields[b"p"])
            for _, entries in found or []
            for id_, fields in entries
        ]

    async def subscribe(self, topic: str, subscription: str, lifetime: float) -> None:
        keys = self._topic_keys(topic, subscription)
        arguments = (encode_key(subscription), round(lifetime * 1000))
        await self._script("subscribe", keys, *arguments)

    async def unsubscribe(self, topic: str, subscription: str) -> int:
        keys = self._topic_keys(topic, subscription)
        left: int = await self._script("unsubscribe", keys, encode_key(subscription))
        return left

    def _topic_keys(self, topic: str, subscription: str) -> list[bytes]:
        return [self._subscriptions(topic), self._stream(box_of(topic, subscription))]

    async def publish(
        self, topic: str, data: bytes, places: int, only: Sequence[str] = ()
    ) -> Published:
        start = self._stream(box_of(topic, ""))
        reached, full, lost = await self._script(
            "publish",
            [self._subscriptions(topic)],
            start,
            places,
            data,
            *map(encode_key, only),
            again=False,
        )
        return Published(reached, [decode_key(name) for name in full], lost)

    async def parked(self) -> list[Parked]:
        await self._opened()
        rows = await self._link.call(lambda: self._link.client().xrange(self._parked), again=True)
        return [
            Parked(
                id_.decode(),
                decode_key(fields[b"b"]),
                fields[b"p"],
                decode_key(fields[b"e"]),
                int(fields[b"n"]),
                int(id_.partition(b"-")[0]) / 1000,
            )
            for id_, fields in rows
        ]

    async def retry(self, id_: str) -> bool:
        return bool(await self._script("unpark", [self._parked], id_, "1", again=False))

    async def drop(self, id_: str) -> bool:
        return bool(await self._script("unpark", [self._parked], id_, "0"))

    async def announce(self, channel: str, data: bytes) -> int:
        await self._opened()
        name = self._channel(channel)
        # Not again: those who heard it would hear it twice.
        heard: int = await self._link.call(lambda: self._link.client().publish(name, data))
        return heard

    async def listen(
        self, channels: Sequence[str], ready: Callable[[], None], heard: Callable[[bytes], None]
    ) -> None:
        await self._opened()
        names = [self._channel(name) for name in channels]
        await self._link.listen(names, ready, heard)
