"""The source `slack`: what people say to a Slack app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flowrt.connectors.http import HttpConnector
from flowrt.connectors.http_answer import Answer
from flowrt.connectors.slack.connector import SlackConnector
from flowrt.engine.site import Refusal
from flowrt.engine.source import LISTENERS, Deliver, Source, SourceSite
from flowrt.engine.transport import Payload, Transport, packed, unpacked
from flowrt.errors import FlowError, StoreError
from flowrt.ids import new_id
from flowrt.message import Message
from flowrt.observe.flood import Flood
from flowrt.observe.log import get_logger
from flowrt.slack.post import Post, event_body, post_of
from flowrt.slack.signature import (
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    BadSignature,
    check_signature,
)
from flowrt.sources.http_request import Gone, Refused, read_body, read_json
from flowrt.sources.slack_ledger import Ledger
from flowrt.sources.slack_settings import SlackSourceSettings

if TYPE_CHECKING:
    from flowrt.clock import Clock
    from flowrt.engine.delivery import Delivery
    from flowrt.engine.run import Runtime

MOST_BODY = 1024 * 1024
MOST_TAKEN = 10_000
"""Posts that a process knows to be taken before they are marked; others may work them."""
TAKEN = Answer(200, [])
SOON, CLOSE = (b"retry-after", b"1"), (b"connection", b"close")


class _Open(NamedTuple):
    """What a started source works with. `user` and `bot` are the app's ids."""

    transport: Transport
    clock: Clock
    ledger: Ledger
    user: str
    bot: str

    def wrote(self, post: Post) -> bool:
        """Whether the app has posted it itself; a post may have either id."""
        return bool(post.user and post.user == self.user) or bool(
            post.bot_id and post.bot_id == self.bot
        )


class Slack(Source[SlackSourceSettings]):
    """Sends a flow what people say to the app, each post once.

    Every request is verified and answered at once, then the flow works. `vars.slack` is `{team,
    channel, user, ts, threadTs, threadId, isDirectMessage, mention, text}`, the body the event as
    `slack-event` makes it. The app's own posts, edits and deletions start nothing. Posts that came
    in are kept for two days, so that a restart or another replica does not answer them again.

    ```yaml
    source:
      type: slack
      settings:
        path: /slack/events
    ```
    """

    Settings = SlackSourceSettings
    listens_on = "http"

    def __init__(self, settings: SlackSourceSettings, site: SourceSite) -> None:
        super().__init__(settings, site)
        assert isinstance(site.connector, SlackConnector)
        assert isinstance(site.server, HttpConnector)
        self._slack, self._server = site.connector, site.server
        if self._slack.settings.signing_secret is None:
            raise Refusal(
                (),
                f"the source needs a signing secret, connector {self._slack.name!r} has none",
                "give it `signingSecret`",
            )
        if settings.http is not None and settings.http != self._server.name:
            raise Refusal(
                ("http",),
                f'connector "{settings.http}" is not an http connector of this service',
                f"write {self._server.name!r}, or leave it out",
            )
        self._secret = self._slack.settings.signing_secret
        self._log = get_logger(f"flowrt.sources.{site.flow}")
        self._refused = Flood(self._log, "requests were refused: they are not signed by Slack")
        self._full = Flood(self._log, "posts were sent back: the flow is full")
        self._open: _Open | None = None
        self._taken: dict[str, None] = {}
        self._queue = f"slack {site.flow}"
        self.path = self._server.settings.base_path + settings.path
        self.methods: tuple[str, ...] = ("POST",)
        if taken := self._server.mount(self):
            raise Refusal(
                ("path",),
                f"another flow has {taken} of connector {self._server.name!r}",
                "give one of them another path",
            )

    async def open(self, deliver: Deliver, runtime: Runtime) -> None:
        ledger = self._ledger(runtime)

        async def work(payload: Payload, delivery: Delivery) -> Payload:
            key, token = payload["post"], payload["token"]
            try:
                # Not before: a post that is marked and never worked on would be lost.
                if await ledger.claim(key, token):
                    await deliver(unpacked(payload), delivery)
            except (FlowError, StoreError) as error:
                self._log.error("a slack post failed", post=key, error=str(error))
                return {"error": str(error)}
            finally:
                self._taken.pop(key, None)
            return {}

        self._working = await runtime.transport.consume(
            self._queue,
            work,
            listeners=self.site.workers or LISTENERS,
            buffer=self.site.buffer,
        )

    async def close(self) -> None:
        await self._working.stop()

    async def start(self, deliver: Deliver, runtime: Runtime) -> None:
        identity = await self._slack.identity(runtime.clock)
        user, bot = identity.get("user_id", ""), identity.get("bot_id", "")
        self._taken.clear()
        ledger = self._ledger(runtime)
        self._open = _Open(runtime.transport, runtime.clock, ledger, user, bot)
        await self._server.serve()

    async def stop(self) -> None:
        self._open = None
        self._refused.flush()
        self._full.flush()

    def _ledger(self, runtime: Runtime) -> Ledger:
        return Ledger(runtime.storage.space("system"), runtime.clock, self._log)

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request of Slack's."""
        try:
            self._admitting()
            patience = self._server.settings.read_timeout
            data = await read_body(scope, receive, MOST_BODY, patience)
            answer = await self._answer(dict(scope["headers"]), data)
        except Refused as refused:
            answer = refused.answer
        except Gone:
            return
        await answer.send(send)

    def _admitting(self) -> _Open:
        """What works on posts. Raises `Refused` where none is taken now."""
        if self._open is None:
            self._server.late.note(path=self.path)
            raise Refused(503, "the service is shutting down", SOON, CLOSE)
        return self._open

    async def _answer(self, headers: dict[bytes, bytes], data: bytes) -> Answer:
        opened = self._admitting()
        self._verify(headers, data, opened.clock.now().timestamp())
        envelope = read_json(data)
        if not isinstance(envelope, dict):
            raise Refused(400, "the body is no object")
        if envelope.get("type") == "url_verification":
            challenge = str(envelope.get("challenge") or "")
            return Answer(200, [(b"content-type", b"text/plain")], challenge.encode())
        if envelope.get("type") == "event_callback":
            post = post_of(envelope, opened.user)
            if post is not None and not opened.wrote(post):
                await self._take(post, envelope, opened)
        return TAKEN

    def _verify(self, headers: dict[bytes, bytes], data: bytes, now: float) -> None:
        timestamp, signature = (
            headers.get(name.lower().encode(), b"").decode("latin-1")
            for name in (TIMESTAMP_HEADER, SIGNATURE_HEADER)
        )
        try:
            check_signature(self._secret, timestamp, signature, data, now)
        except BadSignature as bad:
            self._refused.note(error=str(bad), skew=bad.skew)
            raise Refused(401, str(bad)) from None

    async def _take(self, post: Post, envelope: dict[str, Any], opened: _Open) -> None:
        """Have the flow work on a post, if it should and has not yet. Raises `Refused`."""
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
            raise Refused(503, "the service is busy", SOON)

    async def _hand_over(self, post: Post, envelope: dict[str, Any], opened: _Open) -> bool:
        """Put a post where it is worked on; False where there is no room."""
        message = Message(
            event_body(envelope),
            {"slack": post.variable(opened.user)},
            correlation_id=str(envelope.get("event_id") or ""),
        )
        # The token tells a second delivery of this from another one of the same post.
        payload = {**packed(message), "post": post.key, "token": new_id()}
        order = f"{post.team}/{post.thread_id}"
        return await opened.transport.offer(self._queue, payload, order=order, delivery=post.key)

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
