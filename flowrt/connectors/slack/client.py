"""Calls of Slack's Web API, in order and no faster than Slack allows. Needs the extra `slack`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from flowrt.clock import Clock
from flowrt.engine.outward import leave
from flowrt.errors import ConnectorError
from flowrt.message import clean
from flowrt.observe.log import get_logger

if TYPE_CHECKING:
    from slack_sdk.errors import SlackApiError
    from slack_sdk.web.async_client import AsyncWebClient

_log = get_logger("flowrt.slack")

PATIENCE = 120.0
"""Seconds that one call waits for limits to pass, all together."""
_PASSING = frozenset(
    {
        "fatal_error",
        "internal_error",
        "ratelimited",
        "request_timeout",
        "service_unavailable",
        "team_added_to_org",
        "timeout",
        "unreachable",
    }
)
"""What Slack, and this client, call troubles that are over sooner or later."""
_READS = ("users.",)
"""Methods that take a query string and no JSON."""


class SlackFailure(ConnectorError):
    """Slack refused a call, or was not reached; `code` is Slack's word, such as `no_text`."""

    def __init__(self, text: str, code: str) -> None:
        self.code = code
        super().__init__(text)

    @property
    def passing(self) -> bool:
        """Whether the same call may succeed later, with nothing changed on this side."""
        return self.code in _PASSING or self.code.startswith("http_5")


class _Lane:
    """The calls of one method to one channel: Slack counts them together."""

    __slots__ = ("lock", "resume", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.resume = 0.0
        self.users = 0


class SlackClient:
    """One bot token. It connects at the first call and lives in one event loop until `close`."""

    def __init__(self, name: str, token: str, base_url: str, timeout: float) -> None:
        self.name = name
        self._token = token
        self._base_url = base_url
        self._timeout = timeout
        self._web: AsyncWebClient | None = None
        self._lanes: dict[tuple[str, str], _Lane] = {}

    async def call(self, method: str, arguments: dict[str, Any], clock: Clock) -> dict[str, Any]:
        """Slack's answer to `method`. Arguments that are None are left out.

        Calls of one method to one channel go one after the other, in the order in which they were
        made, and wait where Slack says so (429), up to `PATIENCE`. Raises `SlackFailure`, and
        `ConnectorError` where nothing may leave the machine. A call whose answer was lost is not
        sent again: it may have been carried out.
        """
        leave(self.name, self._base_url)
        given = {name: value for name, value in arguments.items() if value is not None}
        waited = 0.0
        async with self._lane(method, str(given.get("channel", ""))) as lane:
            while True:
                pause = lane.resume - clock.monotonic()
                if pause > 0:
                    waited += pause
                    await clock.sleep(pause)
                answer, again = await self._send(method, given)
                if again is None:
                    return answer
                if waited + again > PATIENCE:
                    raise self._failure(method, "ratelimited", f"asks to wait {again:g}s more")
                _log.info("slack asks to wait", connector=self.name, method=method, seconds=again)
                lane.resume = clock.monotonic() + again

    async def close(self) -> None:
        """Let go of the connections; the next call opens new ones."""
        web, self._web = self._web, None
        if web is not None and web.session is not None:
            await web.session.close()

    async def _send(
        self, method: str, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], float | None]:
        """The answer, and for how long to wait before the call is sent again, if it is to be."""
        import aiohttp
        from slack_sdk.errors import SlackApiError

        options: dict[str, Any] = {"json": arguments}
        if method.startswith(_READS):
            options = {"params": arguments, "http_verb": "GET"}
        try:
            response = await self._client().api_call(method, **options)
        except SlackApiError as error:
            return {}, self._pause(method, error)
        except TimeoutError:
            text = f"did not answer within {self._timeout:g}s"
            raise self._failure(method, "timeout", text) from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._failure(method, "unreachable", f"was not reached: {error}") from error
        return clean(response.data), None

    def _pause(self, method: str, error: SlackApiError) -> float:
        response: Any = error.response
        status = getattr(response, "status_code", None) or getattr(response, "status", 0)
        if status == 429:
            try:
                return max(0.0, float(response.headers.get("Retry-After", 1)))
            except ValueError:
                return 1.0
        data = getattr(response, "data", None)
        data = data if isinstance(data, dict) else {}
        code = str(data.get("error") or f"http_{status}")
        needed = f", it needs the scope {data['needed']}" if data.get("needed") else ""
        raise self._failure(method, code, f"said {code!r}{needed}") from None

    def _failure(self, method: str, code: str, text: str) -> SlackFailure:
        return SlackFailure(f"connector {self.name!r}: slack {method} {text}", code)

    def _client(self) -> AsyncWebClient:
        if self._web is None:
            import aiohttp
            from slack_sdk.web.async_client import AsyncWebClient

            self._web = AsyncWebClient(
                self._token,
                base_url=self._base_url,
                session=aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=self._timeout or None)
                ),
                # Its own retries do not know which channel has to wait.
                retry_handlers=[],
            )
        return self._web

    @asynccontextmanager
    async def _lane(self, method: str, channel: str) -> AsyncIterator[_Lane]:
        lane = self._lanes.setdefault((method, channel), _Lane())
        lane.users += 1
        try:
            async with lane.lock:
                yield lane
        finally:
            lane.users -= 1
            if not lane.users:
                del self._lanes[method, channel]
