"""`rest`: call an HTTP API at a path that the file names."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from blocks.http.exchange import (
    ExchangeSettings,
    Method,
    content_of,
    exchange,
    headers_of,
    pairs_of,
)
from flowrt.connectors.http_client.connector import HttpClientConnector
from flowrt.connectors.http_client.exchange import Request
from flowrt.connectors.http_client.paths import path_problem
from flowrt.connectors.http_client.settings import header_problem
from flowrt.engine.block import Block
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.message import Message


def _upper(method: Any) -> Any:
    return method.upper() if isinstance(method, str) else method


class RestSettings(ExchangeSettings):
    """Settings of `rest`."""

    method: Annotated[Method, BeforeValidator(_upper)] = Field(
        default="GET", description="The method."
    )
    path: str = Field(
        default="", description="Below the connector's `baseURL`; not an expression, see `query`."
    )
    query: dict[str, Expr] = Field(
        default_factory=dict, description="Added to the URL; a list repeats, null leaves out."
    )
    headers: dict[str, Expr] = Field(
        default_factory=dict, description="Sent before those of the connector; null leaves out."
    )


class Rest(Block[RestSettings]):
    """Sends a request and makes the answer the body.

    JSON becomes the body it describes, an empty answer null, anything else raw content,
    `{contentType, rawData}`. A status of 400 or more fails the block, unless `failOnError: false`;
    `vars.statusCode` has it either way.

    ```yaml
    - type: rest
      connector: shop
      method: POST
      path: /orders
      query: {notify: vars.notify}
      body: '{"sku": body.sku, "qty": body.qty}'
    ```
    """

    Settings = RestSettings

    def __init__(self, settings: RestSettings, site: Site) -> None:
        super().__init__(settings, site)
        if problem := path_problem(settings.path):
            raise site.refuse(("path",), problem, "write it below the connector's baseURL")
        for name in settings.headers:
            if problem := header_problem(name, ""):
                raise site.refuse(("headers", name), problem)
            if name.lower() == "content-type" and settings.body_type == "multipart":
                raise site.refuse(
                    ("headers", name),
                    "bodyType: multipart writes its own Content-Type",
                    "remove it",
                )
        if settings.body_type == "multipart" and settings.body is None:
            raise site.refuse(("bodyType",), "bodyType: multipart needs a body")
        self._client = site.connector(
            settings.connector, HttpClientConnector, "an http-client"
        ).client

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        query = {name: expr.value(message) for name, expr in settings.query.items()}
        headers = headers_of({name: expr.value(message) for name, expr in settings.headers.items()})
        content = b""
        if settings.body is not None:
            content = content_of(settings.body.value(message), settings.body_type, headers)
        request = Request(
            settings.method, settings.path, pairs_of(query, "query"), headers, content
        )
        return await exchange(self._client, request, settings, message, run.clock)
