"""What a request carries as `Authorization`, and where that comes from."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Protocol
from urllib.parse import quote_plus, urlencode

from flowrt.clock import Clock
from flowrt.connectors.http_client.exchange import Answer
from flowrt.connectors.http_client.settings import BasicAuth, BearerAuth, Credentials, OAuth2Auth
from flowrt.errors import ConnectorError

EARLY = 30.0
"""Seconds before its end that a token is no longer used: a request takes its time."""

Post = Callable[[str, dict[str, str], bytes], Awaitable[Answer]]
"""Sends a form to a URL, with these headers."""


class Auth(Protocol):
    """Gives each request its credentials."""

    @property
    def secrets(self) -> list[str]:
        """What must not be seen in any text."""
        ...

    async def header(self, post: Post, clock: Clock) -> str:
        """The value of `Authorization`, empty for none. Raises `ConnectorError`."""
        ...

    def refused(self, header: str) -> bool:
        """`header` was answered with 401; whether another one can be had."""
        ...


class Fixed:
    """The same header for ever; an empty one is not sent."""

    def __init__(self, header: str, secrets: list[str]) -> None:
        self._header = header
        self.secrets = secrets

    async def header(self, post: Post, clock: Clock) -> str:
        return self._header

    def refused(self, header: str) -> bool:
        return False


def auth_of(name: str, settings: Credentials | None) -> Auth:
    """How the connector `name` proves who it is."""
    match settings:
        case None:
            return Fixed("", [])
        case BearerAuth():
            return Fixed(f"Bearer {settings.token}", [settings.token])
        case BasicAuth():
            header = _basic(settings.username, settings.password)
            return Fixed(header, [settings.password, header.removeprefix("Basic ")])
        case OAuth2Auth():
            return ClientCredentials(name, settings)


class ClientCredentials:
    """A token that is fetched when one is needed, and used until shortly before it ends."""

    def __init__(self, name: str, settings: OAuth2Auth) -> None:
        self._name = name
        self._settings = settings
        self._header = ""
        self._until: float | None = None
        # As RFC 6749 asks first; the form is what some servers understand instead.
        self._in_form = False
        # Two requests that find no token fetch one.
        self._fetching = asyncio.Lock()

    @property
    def secrets(self) -> list[str]:
        token = self._header.partition(" ")[2]
        return [self._settings.client_secret, *([token] if token else [])]

    async def header(self, post: Post, clock: Clock) -> str:
        async with self._fetching:
            if not self._header or (self._until is not None and clock.monotonic() >= self._until):
                await self._fetch(post, clock)
            return self._header

    def refused(self, header: str) -> bool:
        # Another request may have fetched one since.
        if header == self._header:
            self._header = ""
        return True

    async def _fetch(self, post: Post, clock: Clock) -> None:
        self._header = ""
        asked = clock.monotonic()
        answer = await self._ask(post)
        if answer.status in (400, 401):
            self._in_form = not self._in_form
            answer = await self._ask(post)
        if answer.status != 200:
            raise self._error(f"answered {answer.said}")
        token, lifetime = self._read(answer)
        self._header = f"Bearer {token}"
        self._until = asked + max(lifetime - EARLY, lifetime / 2) if lifetime else None

    async def _ask(self, post: Post) -> Answer:
        settings = self._settings
        form = {"grant_type": "client_credentials"}
        headers = {"Accept": "application/json"}
        if settings.scopes:
            form["scope"] = " ".join(settings.scopes)
        if self._in_form:
            form |= {"client_id": settings.client_id, "client_secret": settings.client_secret}
        else:
            client, secret = quote_plus(settings.client_id), quote_plus(settings.client_secret)
            headers["Authorization"] = _basic(client, secret)
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        return await post(settings.token_url, headers, urlencode(form).encode())

    def _read(self, answer: Answer) -> tuple[str, float]:
        """The token and how long it is good, 0 where that is not said."""
        try:
            said = json.loads(answer.content)
        except ValueError as error:
            raise self._error(f"answered with something that is not JSON: {error}") from None
        found = said if isinstance(said, dict) else {}
        token, kind = found.get("access_token"), found.get("token_type", "Bearer")
        if not isinstance(token, str) or not token or not (token.isascii() and token.isprintable()):
            raise self._error("answered without an access_token that a header can hold")
        if str(kind).lower() != "bearer":
            raise self._error(f"gave a token of the type {str(kind)[:40]!r}, and not a bearer's")
        try:
            return token, max(0.0, float(found.get("expires_in") or 0))
        except (TypeError, ValueError):
            raise self._error("answered with an expires_in that is no number") from None

    def _error(self, problem: str) -> ConnectorError:
        return ConnectorError(f"connector {self._name!r}: the token's URL {problem}")


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
