"""Sends requests to one API: credentials, retries, redirects, limits, cache."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from flowrt.clock import Clock
from flowrt.connectors.http_client.auth import Auth, auth_of
from flowrt.connectors.http_client.cache import AnswerCache, key_of
from flowrt.connectors.http_client.exchange import Answer, Request
from flowrt.connectors.http_client.paths import is_below, joined, path_problem
from flowrt.connectors.http_client.settings import HttpClientSettings, header_problem
from flowrt.engine.outward import leave
from flowrt.errors import ConnectorError, FlowError, FlowrtError, describe
from flowrt.llm.retry import retry_after
from flowrt.observe.log import get_logger
from flowrt.observe.masking import MASK, SHORTEST, mask_text

if TYPE_CHECKING:
    import httpx2

FIRST_WAIT = 0.5
"""Seconds before the second attempt where the server does not say; doubled for each more."""

MOST_REDIRECTS = 5

_log = get_logger("flowrt.connectors.http_client")

T = TypeVar("T")


class HttpClient:
    """One connector's way out. It opens at the first request; after `close` it may be used again,
    also in another event loop."""

    def __init__(self, name: str, settings: HttpClientSettings) -> None:
        self._name = name
        self._settings = settings
        self._open: httpx2.AsyncClient | None = None
        self._auth: Auth = auth_of(name, settings.auth)
        self._cache = self._new_cache()

    async def close(self) -> None:
        """Close the connections, and forget tokens and answers."""
        client, self._open = self._open, None
        self._auth = auth_of(self._name, self._settings.auth)
        self._cache = self._new_cache()
        if client is not None:
            await client.aclose()

    async def send(self, request: Request, clock: Clock) -> Answer:
        """The answer, whatever its status.

        Raises `FlowError` for a request that may not be sent, and `ConnectorError` where no answer
        came, or none that may be used.
        """
        url, headers = self._prepared(request)
        leave(self._name, self._settings.base_url)
        if self._cache is None or request.method != "GET" or request.content:
            return await self._as_somebody(request, url, headers, clock)
        key = key_of(url, headers)
        if (kept := self._cache.get(key, clock.monotonic())) is not None:
            return kept
        answer = await self._as_somebody(request, url, headers, clock)
        if answer.status == 200:
            self._cache.put(key, answer, clock.monotonic())
        return answer

    def masked(self, text: str) -> str:
        """`text` without the secrets of this connector: servers repeat what they were sent."""
        for secret in self._auth.secrets:
            if len(secret) >= SHORTEST:
                text = text.replace(secret, MASK)
        return mask_text(text)

    def error(self, request: Request, problem: str) -> str:
        """The text of a failure: connector, method, path, and what went wrong."""
        return self.masked(f"connector {self._name!r}: {request} {problem}")

    def _prepared(self, request: Request) -> tuple[str, dict[str, str]]:
        """The URL and the headers. Raises `FlowError` for what may not be sent."""
        import httpx2

        problem = path_problem(request.path)
        for name, value in request.headers.items():
            problem = problem or header_problem(name, value)
        if problem:
            raise FlowError(self.error(request, f"was not sent: {problem}"))
        own = {name.lower() for name in request.headers}
        headers = {k: v for k, v in self._settings.headers.items() if k.lower() not in own}
        try:
            url = httpx2.URL(joined(self._settings.base_url, request.path))
            if request.query:
                pairs = (*url.params.multi_items(), *request.query)
                url = url.copy_with(params=httpx2.QueryParams(pairs))
        except httpx2.InvalidURL as error:
            raise FlowError(self.error(request, f"was not sent: {error}")) from None
        return str(url), headers | request.headers

    async def _as_somebody(
        self, request: Request, url: str, headers: dict[str, str], clock: Clock
    ) -> Answer:
        """With the connector's credentials, unless the request brings its own."""
        if any(name.lower() == "authorization" for name in headers):
            return await self._patiently(request, url, headers, clock)
        auth = self._auth

        async def once() -> tuple[str, Answer]:
            header = await self._fetched(request, auth.header(self._post, clock))
            mine = {"Authorization": header} if header else {}
            return header, await self._patiently(request, url, headers | mine, clock)

        header, answer = await once()
        if answer.status == 401 and auth.refused(header):
            _, answer = await once()
        return answer

    async def _fetched(self, request: Request, header: Awaitable[str]) -> str:
        try:
            return await header
        except FlowrtError as error:
            raise ConnectorError(self.masked(f"{error} (for {request})")) from None

    async def _patiently(
        self, request: Request, url: str, headers: Mapping[str, str], clock: Clock
    ) -> Answer:
        """Once more after 429, when the server says, as often and as late as the settings allow."""
        retry = self._settings.retry
        for number in range(1, retry.max_attempts + 1):
            answer, wanted = await self._within(
                request, self._exchange(request, url, headers, clock)
            )
            if answer.status != 429 or number == retry.max_attempts:
                return answer
            wait = _wait(number, wanted)
            if wanted is not None and wait > retry.max_backoff:
                return answer
            wait = min(wait, retry.max_backoff)
            _log.warning(
                "a request was answered with 429 and is sent again",
                connector=self._name, request=str(request), attempt=number, wait=round(wait, 2),
            )  # fmt: skip
            await clock.sleep(wait)
        raise AssertionError("the last attempt returns")

    async def _within(self, request: Request, work: Awaitable[T]) -> T:
        """`work` in the time of one attempt, its failures in our own words."""
        import httpx2

        limit = self._settings.timeout or None
        try:
            async with asyncio.timeout(limit):
                return await work
        except TimeoutError:
            text = self.error(request, f"had no answer within {limit:g}s")
            raise ConnectorError(text) from None
        except httpx2.HTTPError as error:
            text = self.error(request, f"had no answer: {_reason(error)}")
            raise ConnectorError(text) from None

    async def _exchange(
        self, request: Request, url: str, headers: Mapping[str, str], clock: Clock
    ) -> tuple[Answer, float | None]:
        """The answer at the end of all redirects, and what `Retry-After` asks to wait."""
        client = self._client()
        # As bytes, for what is not ASCII; httpx2 would refuse it as text.
        pairs = [(name.encode("ascii"), value.encode()) for name, value in headers.items()]
        outgoing = client.build_request(
            request.method, url, headers=pairs, content=request.content or None
        )
        for _ in range(MOST_REDIRECTS + 1):
            response = await client.send(outgoing, stream=True)
            try:
                if response.next_request is None:
                    content = await self._read(request, response)
                    kind = response.headers.get("content-type", "")
                    wanted = retry_after(response.headers, clock.now())
                    return Answer(response.status_code, kind, content), wanted
                self._check_redirect(request, response.status_code, response.next_request.url)
                outgoing = response.next_request
            finally:
                await response.aclose()
        raise ConnectorError(
            self.error(request, f"was redirected more than {MOST_REDIRECTS} times")
        )

    def _check_redirect(self, request: Request, status: int, url: httpx2.URL) -> None:
        base = urlsplit(self._settings.base_url)
        target = urlsplit(str(url))
        problem = ""
        if _origin(target.scheme, target.hostname, target.port) != _origin(
            base.scheme, base.hostname, base.port
        ):
            problem = (
                f"to {target.scheme}://{target.netloc.rpartition('@')[2]}; write that as baseURL"
            )
        elif request.below and not is_below(target.path, joined(base.path, request.below)):
            problem = f"to {target.path!r}, which is not below {request.below!r}"
        if problem:
            text = f"was answered with a redirect ({status}) that is not followed, {problem}"
            raise ConnectorError(self.error(request, text))

    async def _read(self, request: Request, response: httpx2.Response) -> bytes:
        most = self._settings.max_response_bytes
        content = bytearray()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > most:
                text = f"was answered with more than {most} bytes (maxResponseBytes)"
                raise ConnectorError(self.error(request, text))
        return bytes(content)

    async def _post(self, url: str, headers: dict[str, str], content: bytes) -> Answer:
        """Send a form to another place than the API: where tokens are given out."""
        client = self._client()
        asked = Request("POST", urlsplit(url).path)

        async def exchange() -> Answer:
            async with client.stream("POST", url, headers=headers, content=content) as response:
                kind = response.headers.get("content-type", "")
                return Answer(response.status_code, kind, await self._read(asked, response))

        return await self._within(asked, exchange())

    def _client(self) -> httpx2.AsyncClient:
        if self._open is None:
            self._open = self._made()
        return self._open

    def _made(self) -> httpx2.AsyncClient:
        import httpx2

        pool = self._settings.pool
        idle = [n for n in (pool.max_idle_conns, pool.max_idle_conns_per_host) if n]
        limits = httpx2.Limits(
            max_connections=None,
            max_keepalive_connections=0 if pool.disable_keep_alives else min(idle, default=None),
            keepalive_expiry=pool.idle_conn_timeout or None,
        )
        transport = _public_only(limits) if self._settings.deny_private else None
        return httpx2.AsyncClient(
            headers={"User-Agent": "flowrt"},
            limits=limits,
            transport=transport,
            # `timeout` bounds the attempt as a whole.
            timeout=None,
            # One flow's session is not to be another's: nothing is kept between requests.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    def _new_cache(self) -> AnswerCache[Answer] | None:
        cache = self._settings.cache
        return AnswerCache(cache.ttl, cache.max_entries) if cache.enabled else None


def _public_only(limits: httpx2.Limits) -> httpx2.AsyncHTTPTransport:
    import httpcore2
    import httpx2

    from flowrt.connectors.http_client.addresses import PublicOnly

    transport = httpx2.AsyncHTTPTransport()
    # httpx2 has no setting for what connects; its pool has.
    transport._pool = httpcore2.AsyncConnectionPool(
        ssl_context=httpx2.create_ssl_context(),
        max_connections=limits.max_connections,
        max_keepalive_connections=limits.max_keepalive_connections,
        keepalive_expiry=limits.keepalive_expiry,
        network_backend=PublicOnly(),
    )
    return transport


def _origin(scheme: str, host: str | None, port: int | None) -> tuple[str, str, int]:
    return scheme, (host or "").lower(), port or {"http": 80, "https": 443}.get(scheme, 0)


def _wait(number: int, wanted: float | None) -> float:
    if wanted is not None:
        return max(0.0, wanted)
    # Up to a quarter less, so that flows that were refused together do not return together.
    return FIRST_WAIT * 2.0 ** min(number - 1, 30) * (1 - random.random() / 4)  # noqa: S311


def _reason(error: Exception) -> str:
    """What httpx2 says, and at the end of its chain the system: "All connection attempts failed"
    alone helps nobody."""
    cause: BaseException = error
    while (deeper := cause.__cause__ or cause.__context__) is not None:
        cause = deeper
    own, last = describe(error), describe(cause)
    return f"{own} ({last})" if isinstance(cause, OSError) and last not in own else own
