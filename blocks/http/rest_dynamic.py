"""`rest-dynamic`: call an HTTP API as data says, within bounds that the file sets."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from blocks.http.exchange import (
    METHODS,
    ExchangeSettings,
    Method,
    content_of,
    exchange,
    headers_of,
    pairs_of,
)
from flowrt.connectors.http_client.connector import HttpClientConnector
from flowrt.connectors.http_client.exchange import Request
from flowrt.connectors.http_client.paths import is_below, path_problem
from flowrt.engine.block import Block
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import FlowError
from flowrt.message import Message

# Who asks is the connector's word: data that could say it would borrow another's rights.
_CREDENTIALS = ("authorization", "proxy-authorization")


class RestDynamicSettings(ExchangeSettings):
    """Settings of `rest-dynamic`."""

    method: Expr = Field(description="The method, as a text.")
    path: Expr = Field(description="The path below the connector's `baseURL`; may have a query.")
    query: Expr | None = Field(
        default=None, description="A map, added to the URL; a list repeats, null leaves out."
    )
    headers: Expr | None = Field(
        default=None, description="A map; `Authorization` is refused, the connector says that."
    )
    allow_methods: list[Method] = Field(
        default_factory=list, description="The methods that may be used; unset, all of them."
    )
    path_prefix: str = Field(
        default="", description="Where paths must be, by whole segments: `/a/bc` is not in `/a/b`."
    )


class RestDynamic(Block[RestDynamicSettings]):
    """Sends a request that expressions describe, such as a model's tool call.

    Refused before anything is sent: methods outside `allowMethods`, paths outside `pathPrefix`,
    absolute URLs, `..` however it is encoded, and credentials. The answer is taken as in `rest`.

    ```yaml
    - type: rest-dynamic
      connector: shop
      method: body.method
      path: body.path
      query: body.query
      allowMethods: [GET]
      pathPrefix: /orders
    ```
    """

    Settings = RestDynamicSettings

    def __init__(self, settings: RestDynamicSettings, site: Site) -> None:
        super().__init__(settings, site)
        if problem := path_problem(settings.path_prefix):
            raise site.refuse(("pathPrefix",), problem)
        if "?" in settings.path_prefix:
            raise site.refuse(("pathPrefix",), "a prefix has no query", "cut it off at the `?`")
        self._client = site.connector(
            settings.connector, HttpClientConnector, "an http-client"
        ).client

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        method = self._method(settings.method.text(message).strip().upper())
        path = self._path(settings.path.value(message))
        query = pairs_of(_value(settings.query, message), "query")
        headers = headers_of(_value(settings.headers, message))
        for name in headers:
            if name.lower() in _CREDENTIALS:
                raise FlowError(f"the header {name!r} is refused: the connector says who asks")
        content = b""
        if settings.body is not None:
            content = content_of(settings.body.value(message), settings.body_type, headers)
        request = Request(method, path, query, headers, content, settings.path_prefix)
        return await exchange(self._client, request, settings, message, run.clock)

    def _method(self, method: str) -> str:
        allowed = self.settings.allow_methods or METHODS
        if method not in allowed:
            raise FlowError(f"the method {method[:40]!r} is refused; one of {', '.join(allowed)}")
        return method

    def _path(self, path: Any) -> str:
        if not isinstance(path, str):
            raise FlowError(f"path must be a text, found {type(path).__name__}")
        if problem := path_problem(path):
            raise FlowError(f"the path is refused: {problem}")
        if not is_below(path, self.settings.path_prefix):
            raise FlowError(
                f"the path {path.partition('?')[0][:100]!r} is refused: it is not below "
                f"{self.settings.path_prefix!r}"
            )
        return path


def _value(expr: Expr | None, message: Message) -> Any:
    return None if expr is None else expr.value(message)
