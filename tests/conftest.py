"""What every test gets: async tests, no network beyond loopback."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.redis_server import redis_url as redis_url

# How long an example takes says something about the machine, not about the code.
settings.register_profile("flowrt", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("flowrt")

# A request that flowrt would have to repair is a fault of flowrt: here it raises.
os.environ["FLOWRT_STRICT_REQUESTS"] = "1"

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests in an event loop of their own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names if name in pyfuncitem.funcargs}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(autouse=True, scope="session")
def strict_requests() -> Iterator[None]:
    """Fail where a request would have to be repaired before it is sent: nothing of ours may be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLOWRT_STRICT_REQUESTS", "1")
        yield


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """Refuse every connection that leaves the machine, so that no test depends on one."""
    with pytest.MonkeyPatch.context() as patch:
        connect = socket.socket.connect
        connect_ex = socket.socket.connect_ex

        def check(sock: socket.socket, address: Any) -> None:
            if sock.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _LOOPBACK:
                raise AssertionError(f"a test tried to reach {address!r}; only loopback is allowed")

        def guarded(sock: socket.socket, address: Any) -> None:
            check(sock, address)
            connect(sock, address)

        def guarded_ex(sock: socket.socket, address: Any) -> int:
            check(sock, address)
            return connect_ex(sock, address)

        patch.setattr(socket.socket, "connect", guarded)
        patch.setattr(socket.socket, "connect_ex", guarded_ex)
        yield
