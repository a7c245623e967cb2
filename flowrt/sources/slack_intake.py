"""What the source `slack` does with an event, however it came: take it, once, or say why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flowrt.engine.source import LISTENERS, Deliver, SourceSite
from flowrt.engine.transport import Payload, Transport, packed, unpacked
from flowrt.errors import FlowError, StoreError
from flowrt.ids import new_id
from flowrt.message import Message
from flowrt.observe.flood import Flood
from flowrt.observe.log import Logger
from flowrt.slack.post import Post, event_body, post_of
from flowrt.sources.slack_inbox import Inbox
from flowrt.sources.slack_ledger import Ledger, NotTaken
from flowrt.sources.slack_settings import SlackSourceSettings

if TYPE_CHECKING:
    from flowrt.engine.delivery import Delivery
    from flowrt.engine.run import Runtime

MOST_TAKEN = 10_000
"""Posts that a process knows to be taken before they are marked; others may work them."""


class _Open(NamedTuple):
    """What a started source works with. `user` and `bot` are the app's ids."""

    transport: Transport
    ledger: Ledger
    user: str
    bot: str

    def wrote(self, post: Post) -> bool:
        """Whether the app has posted it itself; a post may have either id."""
        return bool(post.user and post.user == self.user) or bool(
            post.bot_id and post.bot_id == self.bot
        )


class Intake:
    """Puts the posts of one flow into its queue, from `start` to `stop`, and works that."""

    def __init__(self, settings: SlackSourceSettings, site: SourceSite, log: Logger) -> None:
        self.settings = settings
        self.site = site
        self._log = log
        self._full = Flood(log, "posts were sent back: the flow is full")
        self._open: _Open | None = None
        self._taken: dict[str, None] = {}
        self._queue = f"slack {site.flow}"
        # Only where the queue goes with the process.
        self._inbox: Inbox | None = None

    async def open(self, deliver: Deliver, runtime: Runtime) -> None:
        """Work what is in the queue, whoever has put it there."""
        ledger = self._ledger(runtime)

        async def work(payload: Payload, delivery: Delivery) -> Payload:
            key, token = payload["post"], payload["token"]
            answer: Payload = {}
            try:
                # Not before: a post that is marked and never worked on would be lost.
                if await ledger.claim(key, token):
                    await deliver(unpacked(payload), delivery)
            except (FlowError, StoreError) as error:
                self._log.error("a slack post failed", post=key, error=str(error))
                answer = {"error": str(error)}
            finally:
                self._taken.pop(key, None)
            # Not where it is cut off: it is worked again.
            if self._inbox is not None:
                await self._inbox.done(key)
            return answer

        self._working = await runtime.transport.consume(
            self._queue,
            work,
            listeners=self.site.workers or LISTENERS,
            buffer=self.site.buffer,
        )
        if runtime.storage.mail() is None:
            await self._open_inbox(runtime)

    async def _open_inbox(self, runtime: Runtime) -> None:
        def send(left: Payload) -> None:
            sending = runtime.transport.dispatch(self._queue, left, **_way(left))
            runtime.spawn(sending, f"slack post {left['post']}")

        space = runtime.storage.space("system")
        self._inbox = Inbox(space, self.site.flow, self._log, send)
        try:
            await self._inbox.open()
        except StoreError as error:
            # The next post tries again, and is sent back where that fails too.
            self._log.error("posts that were left are not known", error=str(error))

    async def close(self) -> None:
        """Work nothing more."""
        await self._working.stop()
        if self._inbox is not None:
            await self._inbox.close()
            self._inbox = None

    def start(self, runtime: Runtime, identity: dict[str, str]) -> None:
        """Take events from now on, for the app of this identity."""
        user, bot = identity.get("user_id", ""), identity.get("bot_id", "")
        self._taken.clear()
        self._open = _Open(runtime.transport, self._ledger(runtime), user, bot)

    def stop(self) -> None:
        """Take nothing more; what was taken is worked on."""
        self._open = None
        self._full.flush()

    @property
    def is_open(self) -> bool:
        """Whether events are taken."""
        return self._open is not None

    def _ledger(self, runtime: Runtime) -> Ledger:
        return Ledger(runtime.storage.space("system"), runtime.clock, self._log)

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
        # Asked again: the questions before took their time. From here to the mark nothing waits, so
        # that of two deliveries at once one comes this far.
        opened = self._admitting()
        if post.key in self._taken:
            return
        self._taken[post.key] = None
        while len(self._taken) > MOST_TAKEN:
            del self._taken[next(iter(self._taken))]
        try:
            sent = await self._hand_over(post, envelope, opened)
        except StoreError as error:
            self._taken.pop(post.key, None)
            raise opened.ledger.later(error) from error
        if not sent:
            self._taken.pop(post.key, None)
            self._full.note()
            # Slack sends it again, after a minute and after five.
            raise NotTaken("the service is busy")

    async def _hand_over(self, post: Post, envelope: dict[str, Any], opened: _Open) -> bool:
        """Put a post where it is worked on; False where there is no room."""
        message = Message(
            event_body(envelope),
            {"slack": post.variable(opened.user)},
            correlation_id=str(envelope.get("event_id") or ""),
        )
        # The token tells a second delivery of this from another one of the same post.
        mine = {"post": post.key, "thread": f"{post.team}/{post.thread_id}", "token": new_id()}
        payload = {**packed(message), **mine}
        if self._inbox is not None:
            await self._inbox.put(post.key, payload)
        sent = await opened.transport.offer(self._queue, payload, **_way(payload))
        if not sent and self._inbox is not None:
            await self._inbox.done(post.key)
        return sent

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


def _way(payload: Payload) -> dict[str, str]:
    """How a post goes through the queue: in the order of its thread, and told from others."""
    return {"order": payload["thread"], "delivery": payload["post"]}
