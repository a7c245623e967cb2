"""The settings of `http-client`."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from flowrt.engine.block import Settings
from flowrt.engine.fields import Duration

# RFC 9110: what a header's name consists of; and what would end its line.
_NAME = re.compile(r"[0-9A-Za-z!#$%&'*+.^_`|~-]+")
_BREAKS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

WRITTEN_BY_THE_CLIENT = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "te"}
)
"""Headers that say how a request is framed; a second opinion on that is a smuggled request."""


def header_problem(name: str, value: str) -> str:
    """Why a header cannot be sent; empty where it can. The value is not repeated: it may be a
    secret."""
    if not _NAME.fullmatch(name):
        return f"{name!r} cannot be the name of a header"
    if name.lower() in WRITTEN_BY_THE_CLIENT:
        return f"the header {name!r} is written by the client"
    if _BREAKS.search(value):
        return f"the value of the header {name!r} has a line break or another control character"
    return ""


def _absolute(url: str) -> str:
    problem = _url_problem(url)
    if problem:
        raise PydanticCustomError("url", "{problem}", {"problem": problem})
    return url.rstrip("/")


def _url_problem(url: str) -> str:
    # The URL is not repeated: one with a password in it is one of those refused here.
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return f"not a URL: {error}"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "expected an absolute URL such as https://api.example.com/v1"
    if parts.username is not None or parts.password is not None:
        return "a URL with a user in it ends up in logs; write `auth: {type: basic, …}`"
    if parts.query or parts.fragment:
        return "expected a URL without `?` and `#`; requests give the query"
    if re.search(r"[\s\\]", url) or ".." in parts.path.split("/"):
        return "expected a URL without blanks, backslashes and `..`"
    return ""


def _headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if problem := header_problem(name, value):
            raise PydanticCustomError("header", "{problem}", {"problem": problem})
    return headers


BaseURL = Annotated[str, AfterValidator(_absolute)]
Headers = Annotated[dict[str, str], AfterValidator(_headers)]


class BearerAuth(Settings):
    """A token that is sent as it is."""

    type: Literal["bearer"] = Field(description="Sends `Authorization: Bearer <token>`.")
    token: str = Field(min_length=1, description="The token; write it as `${API_TOKEN}`.")


class BasicAuth(Settings):
    """A user and a password."""

    type: Literal["basic"] = Field(description="Sends user and password with each request.")
    username: str = Field(min_length=1, description="The user.")
    password: str = Field(description="The password; write it as `${API_PASSWORD}`.")

    @model_validator(mode="after")
    def _separable(self) -> Self:
        if ":" in self.username:
            raise PydanticCustomError("colon", "a user with `:` cannot be told from the password")
        return self


class OAuth2Auth(Settings):
    """The client credentials grant."""

    type: Literal["oauth2"] = Field(description="Fetches a token with a client's credentials.")
    token_url: BaseURL = Field(alias="tokenURL", description="Where tokens are given out.")
    client_id: str = Field(alias="clientID", min_length=1, description="The client.")
    client_secret: str = Field(min_length=1, description="Its secret; write it as `${SECRET}`.")
    scopes: list[str] = Field(default_factory=list, description="What the token is to allow.")


Credentials = Annotated[BearerAuth | BasicAuth | OAuth2Auth, Field(discriminator="type")]


class RetryOn429(Settings):
    """When a request is sent again."""

    max_attempts: int = Field(default=3, ge=1, le=100, description="Attempts, the first included.")
    max_backoff: Duration = Field(
        default=30.0, description="Longest wait; where the server asks for more, that was the last."
    )


class ConnectionPool(Settings):
    """Connections that are kept for the next request."""

    max_idle_conns: int = Field(
        default=100, ge=0, description="Kept open; 0: as many as there are."
    )
    max_idle_conns_per_host: int = Field(default=100, ge=0, description="The same, for each host.")
    idle_conn_timeout: Duration = Field(default=90.0, description="How long; 0: for ever.")
    disable_keep_alives: bool = Field(default=False, description="Open a connection per request.")


class AnswersKept(Settings):
    """Answers that are used again."""

    enabled: bool = Field(default=False, description="Whether answers to GET are kept.")
    ttl: Duration = Field(default=60.0, description="How long an answer is used; 0: for ever.")
    max_entries: int = Field(
        default=256, ge=1, description="How many; the longest unused go first."
    )


class HttpClientSettings(Settings):
    """Settings of `http-client`."""

    base_url: BaseURL = Field(alias="baseURL", description="What every path is below; absolute.")
    timeout: Duration = Field(
        default=30.0, description="For one attempt, from connecting to the last byte; 0: for ever."
    )
    headers: Headers = Field(
        default_factory=dict, description="Sent with each request; a block's own go before them."
    )
    max_response_bytes: int = Field(
        default=1024 * 1024, ge=1, description="A longer answer fails the request."
    )
    auth: Credentials | None = Field(
        default=None,
        description="`{type: bearer, token}`, `{type: basic, username, password}` or "
        "`{type: oauth2, tokenURL, clientID, clientSecret, scopes}`.",
    )
    retry: RetryOn429 = Field(
        default_factory=RetryOn429,
        description="Of 429 only, when `Retry-After` says: `maxAttempts` (3), the first included, "
        "and `maxBackoff` (30s); where the server asks for more, that was the last.",
    )
    pool: ConnectionPool = Field(
        default_factory=ConnectionPool,
        description="Connections that are kept: `maxIdleConns` (100), `maxIdleConnsPerHost` (100), "
        "`idleConnTimeout` (90s), `disableKeepAlives` (false).",
    )
    cache: AnswersKept = Field(
        default_factory=AnswersKept,
        description="Of GET answered with 200: `enabled` (false), `ttl` (60s; 0: for ever), "
        "`maxEntries` (256).",
    )
    deny_private: bool = Field(
        default=False,
        description="Refuse hosts that resolve to a private, loopback or link-local address. "
        "Proxies of the environment are not used then.",
    )
