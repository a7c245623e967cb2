"""A fake of Slack: a real HTTP server that keeps what was posted, and Socket Mode."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl

from flowrt.testing.loopback import Answer, Call, LoopbackServer
from flowrt.testing.replies import Gate
from flowrt.testing.slack_events import BOT_ID, BOT_USER, TEAM
from flowrt.testing.slack_sockets import FakeSockets

TOKEN = "xoxb-a-bot-token"  # noqa: S105 - the fake's own
APP_TOKEN = "xapp-an-app-token"  # noqa: S105 - the fake's own
OPEN_SOCKET = "apps.connections.open"
LONGEST = 4000
_MENTION = re.compile(r"<(@[UW]\w+|!\w+(?:\^\w+)?)(?:\|[^>]*)?>")


@dataclass(slots=True)
class FakePost:
    """A message in Slack. `texts` are all it has shown, the last is what it shows now."""

    channel: str
    ts: str
    texts: list[str]
    thread_ts: str | None = None
    blocks: Any = None
    reactions: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What it shows."""
        return self.texts[-1]

    @property
    def mentions(self) -> list[str]:
        """Whom it rings, by all it has shown: `@U1`, `!channel`."""
        return [who for text in self.texts for who in _MENTION.findall(text)]


class _Scripted(NamedTuple):
    error: str | None
    status: int
    headers: dict[str, str]
    hold: Gate | None


class _SlackError(Exception):
    """An answer with `ok: false`."""


class FakeSlackAPI:
    """Slack's Web API on a loopback port, for as long as the `with` block runs.

    `base_url` is for `apiBaseURL`, `posts` are the messages that the app has posted, `calls` the
    calls in order, `refused` the errors that no script asked for. `users` are user objects by id.
    `sockets` are the connections of Socket Mode, which `app_token` opens.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        app_token: str = APP_TOKEN,
        users: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self.token = token
        self.app_token = app_token
        self.sockets = FakeSockets()
        self.users = users or {}
        self.base_url = ""
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.requests: list[Call] = []
        self.posts: list[FakePost] = []
        self.refused: list[str] = []
        self._scripts: dict[str, list[_Scripted]] = {}
        self._server: LoopbackServer | None = None
        self._methods: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "auth.test": self._auth_test,
            OPEN_SOCKET: lambda _: {},
            "chat.postMessage": self._post_message,
            "chat.update": self._update,
            "reactions.add": self._add_reaction,
            "users.info": self._user,
            "users.lookupByEmail": self._user_by_email,
        }

    def add(
        self,
        method: str,
        *,
        error: str | None = None,
        status: int = 200,
        headers: dict[str, str] | None = None,
        hold: Gate | None = None,
    ) -> None:
        """Have the next call of `method` that has no script yet fail, or wait for a `Gate`.

        `error` is Slack's word, such as `channel_not_found`; `status=429` with a `retry-after`
        asks the app to wait. With `hold` alone the call is carried out and its answer held back.
        """
        scripted = _Scripted(error, status, headers or {}, hold)
        self._scripts.setdefault(method, []).append(scripted)

    def called(self, method: str) -> list[dict[str, Any]]:
        """The arguments of the calls of a method."""
        return [arguments for name, arguments in self.calls if name == method]

    def post(self, ts: str) -> FakePost:
        """The message with a time. Raises `KeyError`."""
        for post in self.posts:
            if post.ts == ts:
                return post
        raise KeyError(ts)

    def __enter__(self) -> Self:
        self._server = LoopbackServer(self._handle)
        self._server.start()
        self.base_url = f"{self._server.url}/api/"
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving; requests that are being held are cut off."""
        if self._server is not None:
            self._server.stop()

    async def _handle(self, call: Call) -> Answer:
        method = call.path.removeprefix("/api/")
        arguments = _arguments(call)
        self.requests.append(call)
        self.calls.append((method, arguments))
        scripts = self._scripts.get(method)
        scripted = scripts.pop(0) if scripts else _Scripted(None, 200, {}, None)
        if scripted.status != 200 or scripted.error is not None:
            word = scripted.error or ("ratelimited" if scripted.status == 429 else "fatal_error")
            body: dict[str, Any] = {"ok": False, "error": word}
        else:
            body = self._answer(method, call, arguments)
            if method == OPEN_SOCKET and body["ok"]:
                body["url"] = await self.sockets.url()
        part = json.dumps(body).encode()
        return Answer(scripted.status, [part], scripted.headers, hold=scripted.hold)

    def _answer(self, method: str, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            self._authorize(method, call.headers.get("authorization", ""))
            if method not in self._methods:
                raise _SlackError("unknown_method")
            return {"ok": True, **self._methods[method](arguments)}
        except _SlackError as error:
            self.refused.append(f"{method}: {error}")
            return {"ok": False, "error": str(error)}

    def _authorize(self, method: str, authorization: str) -> None:
        token = authorization.removeprefix("Bearer ")
        if token not in (self.token, self.app_token):
            raise _SlackError("invalid_auth")
        if (token == self.app_token) != (method == OPEN_SOCKET):
            raise _SlackError("not_allowed_token_type")

    def _auth_test(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"user_id": BOT_USER, "bot_id": BOT_ID, "team_id": TEAM, "user": "bot"}

    def _post_message(self, arguments: dict[str, Any]) -> dict[str, Any]:
        channel = str(_needed(arguments, "channel"))
        # A message to a user goes to the direct channel with them.
        channel = f"D{channel[1:]}" if channel.startswith(("U", "W")) else channel
        number = len(self.posts) + 1
        post = FakePost(
            channel,
            f"{1_800_000_000 + number}.{number:06}",
            [_content(arguments)],
            arguments.get("thread_ts"),
            arguments.get("blocks"),
        )
        self.posts.append(post)
        return {"channel": channel, "ts": post.ts, "message": {"text": post.text, "ts": post.ts}}

    def _update(self, arguments: dict[str, Any]) -> dict[str, Any]:
        post = self._found(arguments, "ts")
        post.texts.append(_content(arguments))
        post.blocks = arguments.get("blocks")
        return {"channel": post.channel, "ts": post.ts, "text": post.text}

    def _add_reaction(self, arguments: dict[str, Any]) -> dict[str, Any]:
        name = str(_needed(arguments, "name"))
        if not re.fullmatch(r"[a-z0-9_+'-]+", name):
            raise _SlackError("invalid_name")
        ts = _needed(arguments, "timestamp")
        # Of messages that others have posted the fake knows nothing.
        for post in self.posts:
            if post.ts == ts:
                if name in post.reactions:
                    raise _SlackError("already_reacted")
                post.reactions.append(name)
        return {}

    def _user(self, arguments: dict[str, Any]) -> dict[str, Any]:
        user = self.users.get(str(_needed(arguments, "user")))
        if user is None:
            raise _SlackError("user_not_found")
        return {"user": user}

    def _user_by_email(self, arguments: dict[str, Any]) -> dict[str, Any]:
        email = _needed(arguments, "email")
        for user in self.users.values():
            if user.get("profile", {}).get("email") == email:
                return {"user": user}
        raise _SlackError("users_not_found")

    def _found(self, arguments: dict[str, Any], name: str) -> FakePost:
        channel, ts = _needed(arguments, "channel"), _needed(arguments, name)
        for post in self.posts:
            if (post.channel, post.ts) == (channel, ts):
                return post
        raise _SlackError("message_not_found")


def _arguments(call: Call) -> dict[str, Any]:
    kind = call.headers.get("content-type", "")
    if call.raw and kind.startswith("application/json"):
        arguments: dict[str, Any] = json.loads(call.raw)
        return arguments
    return dict(parse_qsl(call.query)) | dict(parse_qsl(call.raw.decode()))


def _needed(arguments: dict[str, Any], name: str) -> Any:
    if not arguments.get(name):
        raise _SlackError("invalid_arguments")
    return arguments[name]


def _content(arguments: dict[str, Any]) -> str:
    """The text of a message. Stricter than Slack, which cuts a long one where it likes."""
    text = str(arguments.get("text") or "")
    if not text.strip() and not arguments.get("blocks"):
        raise _SlackError("no_text")
    if len(text) > LONGEST:
        raise _SlackError("msg_too_long")
    return text
