"""What the source `slack` does with an event, however it came: take it, once, or say why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flowrt.engine.source import LISTENERS, Deliver, SourceSite
from flowrt.errors import FlowError, StoreError
from flowrt.message import Message
from flowrt.observe.log import Logger
from flowrt.slack.post import Post, event_body, post_of
from flowrt.sources.http_gate import Gate
from flowrt.sources.slack_ledger import Ledger, NotTaken
from flowrt.sources.slack_settings import SlackSourceSettings

if TYPE_CHECKING:
    from flowrt.engine.run import Runtime


class _Open(NamedTuple):
    """What a started source works with. `user` and `bot` are the app's ids."""

    deliver: Deliver
    runtime: Runtime
    gate: Gate
    ledger: Ledger
    user: str
    bot: str

    def wrote(self, post: Post) -> bool:
        """Whether the app has posted it itself; a post may have either id."""
        return bool(post.user and post.user == self.user) or bool(
            post.bot_id and post.bot_id == self.bot
        )


class Intake:
    """Takes the events of one flow, from `open` to `close`."""

    def __init__(self, settings: SlackSourceSettings, site: SourceSite, log: Logger) -> None:
        self.settings = settings
        self.site = site
        self._log = log
        self._open: _Open | None = None
        self._taken: set[str] = set()

    def open(self, deliver: Deliver, runtime: Runtime, identity: dict[str, str]) -> None:
        """Take events from now on, for the app of this identity."""
        full = "posts were sent back to Slack: the flow is full"
        gate = Gate(self.site.workers or LISTENERS, self.site.buffer, self._log, full)
        ledger = Ledger(runtime.storage.space("system"), runtime.clock, self._log)
        user, bot = identity.get("user_id", ""), identity.get("bot_id", "")
        self._taken.clear()
        self._open = _Open(deliver, runtime, gate, ledger, user, bot)

    def close(self) -> None:
        """Take nothing more; what was taken is worked on."""
        if self._open is not None:
            self._open.gate.close()
        self._open = None

    @property
    def is_open(self) -> bool:
        """Whether events are taken."""
        return self._open is not None

    @property
    def waiting(self) -> int:
        """How many posts wait for a place to be worked on."""
        return self._open.gate.waiting if self._open is not None else 0

    async def take(self, envelope: dict[str, Any]) -> None:
        """Have the flow work on the post that an `event_callback` tells of, unless it is no post.

        Raises `NotTaken` where Slack is to send it again.
        """
        opened = self._admitting()
        post = post_of(envelope, opened.user)
        if post is not None and not opened.wrote(post):
            await self._take(post, envelope, opened)

    def _admitting(self) -> _Open:
        if self._open is None:
            raise NotTaken("the service is shutting down")
        return self._open

    async def _take(self, post: Post, envelope: dict[str, Any], opened: _Open) -> None:
        """Have the flow work on a post, if it should and has not yet. Raises `NotTaken`."""
        if post.key in self._taken or await opened.ledger.seen(post):
            return
        if not await self._wanted(post, envelope, opened):
            return
        # Asked again: the questions before took their time. From here on nothing waits, so that
        # of two deliveries at once one comes this far.
        opened = self._admitting()
        if post.key in self._taken:
            return
        if opened.gate.full():
            # Slack sends it again, after a minute and after five.
            raise NotTaken("the service is busy")
        message = Message(
            event_body(envelope),
            {"slack": post.variable(opened.user)},
            correlation_id=str(envelope.get("event_id") or ""),
        )
        opened.gate.enter()
        self._taken.add(post.key)
        name = f"slack post {post.key} to {self.site.flow}"
        opened.runtime.spawn(self._work(post, message, opened), name)

    async def _wanted(self, post: Post, envelope: dict[str, Any], opened: _Open) -> bool:
        ledger = opened.ledger
        is_bot = bool(post.bot_id) or post.user in ("", "USLACKBOT")
        if is_bot and not self.settings.bots:
            return False
        if self.settings.bots and not is_bot:
            await ledger.person_spoke(post)
        if post.is_mention and not (post.is_direct or post.thread_ts):
            # Only the thread that it opens: in one of others, people talk to each other as well.
            await ledger.follow(post)
        if not (
            post.is_direct
            or post.is_mention
            or self.settings.respond_to == "all"
            or envelope["event"].get("parent_user_id") == opened.user
            or (post.thread_ts and await ledger.followed(post))
        ):
            return False
        if is_bot and not await ledger.bot_turn(post, self.settings.max_bot_turns):
            self._log.warning("a bot has had its turns in a thread", thread=post.thread_id)
            return False
        return True

    async def _work(self, post: Post, message: Message, opened: _Open) -> None:
        try:
            async with opened.gate:
                # Not before: a post that is marked and never worked on would be lost.
                if await opened.ledger.claim(post):
                    await opened.deliver(message)
        except (FlowError, StoreError) as error:
            self._log.error("a slack post failed", post=post.key, error=str(error))
        finally:
            opened.gate.leave()
            self._taken.discard(post.key)
