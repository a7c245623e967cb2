"""The ASGI app of an `http` connector: which request belongs to which flow. Needs `serve`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, Router

from flowrt.connectors.http_answer import refusal

if TYPE_CHECKING:
    from flowrt.connectors.http import CorsSettings, Endpoint


def make_app(endpoints: Sequence[Endpoint], cors: CorsSettings) -> Any:
    """Route requests to endpoints by path and method; 404 and 405 for those that have none."""
    paths: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, []).append(endpoint)
    # A segment that is written out goes before one that may be anything: /orders/new is no id.
    ordered = sorted(paths, key=lambda path: [part.startswith("{") for part in path.split("/")])
    routes = [_Path(path, _ByMethod(paths[path])) for path in ordered]
    router = Router(routes, redirect_slashes=False, default=_nowhere)
    if not cors.allowed_origins:
        return router
    return CORSMiddleware(
        router,
        allow_origins=cors.allowed_origins,
        allow_methods=cors.allowed_methods,
        allow_headers=cors.allowed_headers,
        expose_headers=cors.exposed_headers,
        allow_credentials=cors.allow_credentials,
        max_age=round(cors.max_age),
    )


class _Path(Route):
    """A path. Where it has no endpoint for the method, a path less written out may have one."""

    def __init__(self, path: str, app: _ByMethod) -> None:
        super().__init__(path, app)
        self.methods = app.methods

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


class _ByMethod:
    """The endpoints of one path. `methods` is None where it takes them all."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._any = next((each for each in endpoints if not each.methods), None)
        self._named = {method: each for each in endpoints for method in each.methods}
        self.methods = None if self._any is not None else set(self._named)
        self._allow = ", ".join(sorted(self._named)).encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        endpoint = self._named.get(scope["method"], self._any)
        if endpoint is not None:
            await endpoint.handle(scope, receive, send)
            return
        text = f"the method {scope['method'][:20]} is not allowed here"
        await refusal(405, text, (b"allow", self._allow)).send(send)


async def _nowhere(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await refusal(404, "there is nothing at this path").send(send)
