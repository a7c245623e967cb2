"""A memory that encrypts what agents remember, with the key that each run brings along.

It stands before the memory that flowrt would use, which sees sealed texts only: turns, working
context, facts and titles. Ids, counts and times stay readable, so that threads can be listed and
people forgotten without a key.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from flowrt.errors import StoreError
from flowrt.memory.agent_memory import AgentMemory
from flowrt.memory.search.recall import Found, Hit
from flowrt.storage.agents.protocol import (
    Fact,
    NewTurn,
    Page,
    Person,
    Place,
    Removed,
    ThreadInfo,
    Turn,
)
from flowrt.storage.protocol import Log

Context = Mapping[str, Any]
_NONCE = 12


def open_vault(url: str, inner: AgentMemory) -> AgentMemory:
    """What `FLOWRT_MEMORY=vault:` makes."""
    return VaultMemory(inner)


class Seal:
    """Seals and opens with the key of one call. Raises `StoreError` where that is no key of it."""

    def __init__(self, context: Context) -> None:
        try:
            self._key = base64.b64decode(context["key"], validate=True)
            self._cipher = AESGCM(self._key)
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            # Not the value: it may be half of a key.
            raise StoreError(
                "vault: forwardContext needs a `key`, 16, 24 or 32 bytes in base64"
            ) from error

    def bytes(self, data: bytes) -> bytes:
        """Sealed; the nonce stands in front."""
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, data, None)

    def opened(self, sealed: bytes) -> bytes:
        """What was sealed."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], None)
        except InvalidTag as error:
            raise StoreError("vault: this was sealed with another key") from error

    def name(self, name: str) -> str:
        """A name that only the key leads to."""
        return hmac.digest(self._key, name.encode(), "sha256").hex()

    def text(self, text: str) -> str:
        """A text, sealed."""
        return base64.b64encode(self.bytes(text.encode())).decode()

    def read(self, sealed: str) -> str:
        """A sealed text; an empty one was none."""
        return self.opened(base64.b64decode(sealed)).decode() if sealed else ""


class VaultMemory:
    """An `AgentMemory` whose texts only the key of the call can read."""

    # Says that what is handed on cannot be embedded: flowrt refuses FLOWRT_EMBEDDINGS.
    seals: Literal[True] = True

    def __init__(self, inner: AgentMemory) -> None:
        self._inner = inner

    async def working(self, place: Place, *, context: Context) -> Log | None:
        seal = Seal(context)
        log = await self._inner.working(place, context=context)
        if log is None:
            return None
        return replace(log, entries=[seal.opened(entry) for entry in log.entries])

    async def append_working(
        self, place: Place, entries: Sequence[bytes], *, head: Any, expect: int, context: Context
    ) -> int:
        sealed = [Seal(context).bytes(entry) for entry in entries]
        return await self._inner.append_working(
            place, sealed, head=head, expect=expect, context=context
        )

    async def rewrite_working(
        self, place: Place, entries: Sequence[bytes], *, head: Any, expect: int, context: Context
    ) -> int:
        sealed = [Seal(context).bytes(entry) for entry in entries]
        return await self._inner.rewrite_working(
            place, sealed, head=head, expect=expect, context=context
        )

    async def archive(self, place: Place, entries: Sequence[bytes], *, context: Context) -> None:
        seal = Seal(context)
        sealed = [seal.bytes(entry) for entry in entries]
        await self._inner.archive(place, sealed, context=context)

    async def archived(self, place: Place, *, context: Context) -> list[bytes]:
        seal = Seal(context)
        return [seal.opened(entry) for entry in await self._inner.archived(place, context=context)]

    async def keep_frame(self, place: Place, name: str, frame: bytes, *, context: Context) -> None:
        seal = Seal(context)
        # Under each key its own: one that another key sealed could not be read.
        await self._inner.keep_frame(place, seal.name(name), seal.bytes(frame), context=context)

    async def frame(self, place: Place, name: str, *, context: Context) -> bytes | None:
        seal = Seal(context)
        sealed = await self._inner.frame(place, seal.name(name), context=context)
        return seal.opened(sealed) if sealed is not None else None

    async def append_turns(
        self, place: Place, turns: Sequence[NewTurn], *, context: Context
    ) -> list[Turn]:
        seal = Seal(context)
        sealed = [replace(turn, text=seal.text(turn.text)) for turn in turns]
        recorded = await self._inner.append_turns(place, sealed, context=context)
        return [replace(turn, text=seal.read(turn.text)) for turn in recorded]

    async def touch(self, place: Place, *, context: Context) -> ThreadInfo:
        return _named(Seal(context), await self._inner.touch(place, context=context))

    async def turns(
        self,
        place: Place,
        *,
        after: int = 0,
        limit: int = 500,
        newest_first: bool = False,
        context: Context,
    ) -> Page[Turn]:
        seal = Seal(context)
        page = await self._inner.turns(
            place, after=after, limit=limit, newest_first=newest_first, context=context
        )
        return Page([replace(turn, text=seal.read(turn.text)) for turn in page.items], page.after)

    async def thread(self, place: Place, *, context: Context) -> ThreadInfo | None:
        info = await self._inner.thread(place, context=context)
        return _named(Seal(context), info) if info is not None else None

    async def threads(
        self,
        service: str,
        agent: str,
        *,
        user: str | None = None,
        after: str | None = None,
        limit: int = 100,
        context: Context,
    ) -> Page[ThreadInfo]:
        seal = Seal(context)
        page = await self._inner.threads(
            service, agent, user=user, after=after, limit=limit, context=context
        )
        return Page([_named(seal, info) for info in page.items], page.after)

    async def set_title(self, place: Place, title: str, *, context: Context) -> None:
        await self._inner.set_title(place, Seal(context).text(title), context=context)

    async def delete_thread(self, place: Place, *, context: Context) -> Removed:
        return await self._inner.delete_thread(place, context=context)

    async def facts(
        self, person: Person, *, after: str | None = None, limit: int = 100, context: Context
    ) -> Page[Fact]:
        seal = Seal(context)
        page = await self._inner.facts(person, after=after, limit=limit, context=context)
        return Page([_opened(seal, fact) for fact in page.items], page.after)

    async def fact(self, person: Person, name: str, *, context: Context) -> Fact | None:
        fact = await self._inner.fact(person, name, context=context)
        return _opened(Seal(context), fact) if fact is not None else None

    async def put_fact(
        self,
        person: Person,
        name: str,
        value: str,
        *,
        expect: int | None,
        thread: str = "",
        seq: int = 0,
        context: Context,
    ) -> Fact:
        known = await self.fact(person, name, context=context)
        if known is not None and known.value == value and expect in (None, known.version):
            return known  # sealed anew it would look like a change
        sealed = Seal(context).text(value)
        fact = await self._inner.put_fact(
            person, name, sealed, expect=expect, thread=thread, seq=seq, context=context
        )
        return _opened(Seal(context), fact)

    async def delete_fact(self, person: Person, name: str, *, context: Context) -> bool:
        return await self._inner.delete_fact(person, name, context=context)

    async def search(self, person: Person, query: str, *, limit: int, context: Context) -> Found:
        """By shared words, over what can be opened: no index of sealed texts is kept anywhere."""
        wanted = set(query.casefold().split())
        hits = [
            Hit("fact", fact.id, fact.thread, fact.seq, fact.name, fact.value, float(len(shared)),
                fact.updated, "words", tuple(sorted(shared)))
            for fact in (await self.facts(person, context=context)).items
            if (shared := wanted & set(f"{fact.name} {fact.value}".casefold().split()))
        ]  # fmt: skip
        hits.sort(key=lambda hit: hit.score, reverse=True)
        return Found(hits[:limit], "words", 0)

    async def close(self) -> None:
        await self._inner.close()


def _named(seal: Seal, info: ThreadInfo) -> ThreadInfo:
    return replace(info, title=seal.read(info.title))


def _opened(seal: Seal, fact: Fact) -> Fact:
    earlier = tuple(replace(each, value=seal.read(each.value)) for each in fact.earlier)
    return replace(fact, value=seal.read(fact.value), earlier=earlier)
