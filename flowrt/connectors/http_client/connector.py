"""`http-client`: an HTTP API that `rest` and `rest-dynamic` call."""

from __future__ import annotations

from importlib.util import find_spec

from flowrt.connectors.http_client.client import HttpClient
from flowrt.connectors.http_client.settings import HttpClientSettings
from flowrt.engine.connector import Connector
from flowrt.errors import ConnectorError


class HttpClientConnector(Connector[HttpClientSettings]):
    """An HTTP API: where it is, who asks, and how patiently.

    Requests stay below `baseURL`; redirects are followed within its origin. Nothing is kept between
    requests but connections, the token of `oauth2`, and answers where `cache` is enabled. Needs
    `pip install 'flowrt[http]'`.

    ```yaml
    connectors:
      - name: shop
        type: http-client
        settings:
          baseURL: https://api.example.com/v1
          timeout: 10s
          auth: {type: bearer, token: "${SHOP_TOKEN}"}
          cache: {enabled: true, ttl: 5m}
    ```
    """

    Settings = HttpClientSettings

    def __init__(self, name: str, settings: HttpClientSettings) -> None:
        super().__init__(name, settings)
        self.client = HttpClient(name, settings)

    async def start(self) -> None:
        # Imported at the first request: a tenth of a second that a flow without one does not pay.
        if find_spec("httpx2") is None:
            raise ConnectorError(
                f"connector {self.name!r}: http-client needs another package; "
                "pip install 'flowrt[http]'"
            )

    async def stop(self) -> None:
        await self.client.close()
