"""Connections that do not go to private addresses (`denyPrivate`)."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from typing import Any

import httpcore2

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# IPv6 addresses that carry an IPv4 one in their last four bytes: what a NAT64 gateway, or a
# dual-stack socket, connects to is that one.
_CARRIERS = (
    ipaddress.ip_network("64:ff9b::/96"),
    ipaddress.ip_network("64:ff9b:1::/48"),
    ipaddress.ip_network("::/96"),
)


def is_public(text: str) -> bool:
    """Whether an address is one of the open internet."""
    address: Address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        address = _carried(address)
    return address.is_global and not address.is_multicast


def _carried(address: ipaddress.IPv6Address) -> Address:
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and any(address in network for network in _CARRIERS):
        inner = ipaddress.IPv4Address(address.packed[-4:])
    return address if inner is None else inner


class PublicOnly(httpcore2.AsyncNetworkBackend):
    """Connects to public addresses only.

    It resolves the name and connects to what it has looked at: asked for again, the name could give
    another address.
    """

    def __init__(self) -> None:
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as the pool calls it
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        failure: httpcore2.ConnectError | None = None
        for address in await self._public(host, port):
            try:
                return await self._backend.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except httpcore2.ConnectError as error:
                failure = error
        raise failure or httpcore2.ConnectError(f"{host!r} has no address")

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)

    async def _public(self, host: str, port: int) -> list[str]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        addresses = [str(entry[4][0]) for entry in found]
        for address in addresses:
            # One is enough: a name with a public and a private address is how the check is evaded.
            if not is_public(address):
                raise httpcore2.ConnectError(
                    f"{host!r} is at {address}, which is private, and denyPrivate is set"
                )
        return addresses
