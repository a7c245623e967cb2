"""What the source `slack` remembers: posts, threads it takes part in, turns of other bots."""

from __future__ import annotations

from flowrt.clock import Clock
from flowrt.errors import StoreError, StoreUnavailable, VersionConflict
from flowrt.observe.log import Logger
from flowrt.slack.post import Post
from flowrt.storage.tiers import Space

POST_TTL = 48 * 3600.0
"""Slack sends again for up to a day what it believes was not received."""
THREAD_TTL = 90 * 24 * 3600.0
WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds between attempts to mark a post while the store is away."""


class NotTaken(Exception):
    """An event that cannot be taken now: Slack is to send it again."""


class Ledger:
    """Keys of one service in its persistent store, so that replicas and restarts share them."""

    def __init__(self, space: Space, clock: Clock, log: Logger) -> None:
        self._space = space
        self._clock = clock
        self._log = log

    async def seen(self, post: Post) -> bool:
        """Whether a run for this post has begun. Raises `NotTaken`."""
        return await self._read(f"slack/posts/{post.key}") is not None

    async def claim(self, key: str, token: str) -> bool:
        """Mark a post as begun; False where it was under another token. Raises `StoreError`.

        Slack has been told that the post was received and does not send it again, so a store that
        is away for a moment is waited for.
        """
        for wait in WAITS:
            try:
                return await self._mark(key, token)
            except StoreUnavailable as error:
                self._log.warning("a slack post waits for the store", post=key, error=str(error))
                await self._clock.sleep(wait)
        return await self._mark(key, token)

    async def _mark(self, key: str, token: str) -> bool:
        try:
            await self._space.set(f"slack/posts/{key}", token, expect=0, ttl=POST_TTL)
        except VersionConflict:
            marked = await self._space.get(f"slack/posts/{key}")
            return marked is not None and marked.value == token
        return True

    async def follow(self, post: Post) -> None:
        """Take part in the thread of a post from now on. Raises `NotTaken`."""
        try:
            await self._space.set(_thread("threads", post), True, ttl=THREAD_TTL)
        except StoreError as error:
            raise self.later(error) from error

    async def followed(self, post: Post) -> bool:
        """Whether it takes part in the thread of a post. Raises `NotTaken`."""
        return await self._read(_thread("threads", post)) is not None

    async def person_spoke(self, post: Post) -> None:
        """Let other bots begin anew in the thread of a post. Raises `NotTaken`."""
        try:
            await self._space.delete(_thread("bots", post))
        except StoreError as error:
            raise self.later(error) from error

    async def bot_turn(self, post: Post, most: int) -> bool:
        """Count a turn of another bot; False where it has had `most`. Raises `NotTaken`."""
        key = _thread("bots", post)
        while True:
            try:
                stored = await self._space.get(key)
                turns = stored.value if stored is not None else 0
                if turns >= most:
                    return False
                version = stored.version if stored is not None else 0
                await self._space.set(key, turns + 1, expect=version, ttl=THREAD_TTL)
            except VersionConflict:
                continue
            except StoreError as error:
                raise self.later(error) from error
            return True

    async def _read(self, key: str) -> object:
        try:
            return await self._space.get(key)
        except StoreError as error:
            raise self.later(error) from error

    def later(self, error: StoreError) -> NotTaken:
        """What Slack is told where the store could not be asked."""
        self._log.error("a slack post was sent back: the store failed", error=str(error))
        return NotTaken("the service cannot reach its store")


def _thread(kind: str, post: Post) -> str:
    return f"slack/{kind}/{post.team}/{post.thread_id}"
