"""Requests a second over HTTP beside a bare starlette endpoint, and a thousand conversations.

The server runs in a process of its own, the clients in this one.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import yaml

from bench.measure import report

SECONDS, CONNECTIONS, ROUNDS = 2.0, 16, 5
STREAMS, LATENCY = 1000, 0.2
BODY = b'{"id": 7, "name": "Sam"}'

ROUTE = {"type": "http", "settings": {"path": "/orders", "methods": ["POST"]}}
FLOW = {
    "service": {"name": "bench"},
    "connectors": [{"name": "http", "type": "http", "settings": {"host": "127.0.0.1", "port": 0}}],
    "flows": [
        {
            "name": "orders",
            "source": ROUTE,
            "workers": 64,
            "process": [{"type": "set-payload", "value": '{"id": body.id, "hello": body.name}'}],
        }
    ],
}
CHAT = {
    "service": {"name": "bench"},
    "connectors": [
        {"name": "http", "type": "http", "settings": {"host": "127.0.0.1", "port": 0}},
        {
            "name": "model",
            "type": "llm-scripted",
            "settings": {
                "repeat": True,
                "replies": [{"text": "one two three four five six", "delay": LATENCY}],
            },
        },
    ],
    "flows": [
        {
            "name": "chat",
            "workers": STREAMS,
            "source": {
                "type": "http",
                "settings": {
                    "path": "/orders",
                    "sse": {"enabled": True, "finalEvent": True, "maxStreams": STREAMS},
                },
            },
            "process": [
                {
                    "type": "ai-agent",
                    "name": "assistant",
                    "connector": "model",
                    "prompt": "Help.",
                    "answer": "text",
                    "input": "body.name",
                    "memoryThreadId": "string(body.id)",
                    "stream": True,
                    "emit": ["text"],
                    "events": {
                        "process": [{"type": "sse-event", "event": "text", "data": "body.text"}]
                    },
                }
            ],
        }
    ],
}


def serve_bare(ready: Connection) -> None:
    """A starlette endpoint that decodes JSON and answers JSON, on a uvicorn without our limits."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def orders(request: Request) -> JSONResponse:
        body = await request.json()
        return JSONResponse({"id": body["id"], "hello": body["name"]})

    async def main() -> None:
        app = Starlette(routes=[Route("/orders", orders, methods=["POST"])])
        # Named TCP: of a socket without a protocol asyncio does not turn Nagle's algorithm off.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        ready.send(listening.getsockname()[1])
        config = uvicorn.Config(app, http="h11", access_log=False, log_level="warning")
        await uvicorn.Server(config).serve(sockets=[listening])

    asyncio.run(main())


def serve_flows(document: dict[str, Any], ready: Connection) -> None:
    """A service with its sources, as `flowrt run` starts it."""
    from flowrt.connectors.http import HttpConnector
    from flowrt.service import Service

    async def main() -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "bench.yaml"
            path.write_text(yaml.safe_dump(document), encoding="utf-8")
            service = Service.load(path, storage=f"sqlite:{folder}/state.db")
            await service.start(sources=True)
            server = service.streams["http"]
            assert isinstance(server, HttpConnector)
            ready.send(int(server.url.rpartition(":")[2]))
            await asyncio.Event().wait()

    asyncio.run(main())


def pin(core: int, pid: int = 0) -> None:
    """Keep a process to one core, where the system can: client and server must not share one."""
    if sys.platform == "linux" and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(pid, {core})


class Served:
    """A server in a process of its own, on a core of its own."""

    def __init__(self, serve: Callable[..., None], *arguments: Any) -> None:
        here, there = multiprocessing.get_context("spawn").Pipe()
        process = multiprocessing.get_context("spawn").Process
        self.process = process(target=serve, args=(*arguments, there), daemon=True)
        self.process.start()
        self.port: int = here.recv()
        assert self.process.pid is not None
        pin(1, self.process.pid)

    def memory(self) -> int:
        """Bytes of memory that are its own."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def cpu(self) -> float:
        """Seconds of processor time it has used: what other processes do does not count."""
        used = psutil.Process(self.process.pid).cpu_times()
        return float(used.user + used.system)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.join()


REQUEST = (
    b"POST /orders HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n" % len(BODY)
) + BODY


async def hammer(port: int, until: float, times: list[float]) -> None:
    """One connection that asks again as soon as it is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        began = time.perf_counter()
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        times.append(time.perf_counter() - began)
    writer.close()


async def load(port: int) -> tuple[float, list[float]]:
    """Requests a second, and how long each took."""
    times: list[float] = []
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(hammer(port, began + SECONDS, times))
    return len(times) / (time.perf_counter() - began), times


def requests() -> None:
    """Both servers in turn, so that what else the machine does meets both."""
    servers = {"bare": Served(serve_bare), "flow": Served(serve_flows, FLOW)}
    rates: dict[str, list[float]] = {name: [] for name in servers}
    costs: dict[str, list[float]] = {name: [] for name in servers}
    times: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(ROUNDS):
        for name, server in servers.items():
            before = server.cpu()
            rate, each = asyncio.run(load(server.port))
            costs[name].append((server.cpu() - before) / len(each) * 1e6)
            rates[name].append(rate)
            times[name] += each
    for server in servers.values():
        server.stop()
    ratios = [flow / other for flow, other in zip(rates["flow"], rates["bare"], strict=True)]
    report(
        "serve",
        what="requests",
        flow_per_s=round(statistics.median(rates["flow"])),
        bare_per_s=round(statistics.median(rates["bare"])),
        ratio=round(statistics.median(ratios), 2),
        flow_cpu_us=round(statistics.median(costs["flow"])),
        bare_cpu_us=round(statistics.median(costs["bare"])),
        ratio_by_cpu=round(statistics.median(costs["bare"]) / statistics.median(costs["flow"]), 2),
        **{
            f"{name}_{key}": value for name in servers for key, value in spread(times[name]).items()
        },
    )


def spread(times: list[float]) -> dict[str, float]:
    """The median and the 99th percentile, in milliseconds."""
    cuts = statistics.quantiles(times, n=100)
    return {"p50_ms": round(cuts[49] * 1e3, 2), "p99_ms": round(cuts[98] * 1e3, 2)}


async def converse(port: int, number: int, times: list[float]) -> None:
    """One conversation watched to its last event."""
    body = json.dumps({"id": number, "name": "hello"}).encode()
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /orders HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n")
    writer.write(b"content-length: %d\r\n\r\n" % len(body) + body)
    told = await reader.read()
    while piece := await reader.read():
        told += piece
    assert b"event: text" in told, told[:300]
    assert b"event: result" in told, told[-300:]
    times.append(time.perf_counter() - began)
    writer.close()


async def conversations(port: int, first: int) -> tuple[float, list[float]]:
    """All at the same time; how long that took, and each of them."""
    times: list[float] = []
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(STREAMS):
            group.create_task(converse(port, first + number, times))
    return time.perf_counter() - began, times


def streams() -> None:
    """A thousand conversations in one process, each on a thread of its own."""
    server = Served(serve_flows, CHAT)
    asyncio.run(converse(server.port, -1, []))
    before = server.memory()
    peak = before

    async def measured(first: int) -> tuple[float, list[float]]:
        nonlocal peak
        task = asyncio.create_task(conversations(server.port, first))
        while not task.done():
            peak = max(peak, server.memory())
            await asyncio.wait((task,), timeout=0.02)
        return task.result()

    used = server.cpu()
    runs = [asyncio.run(measured(STREAMS * turn)) for turn in range(3)]
    used = server.cpu() - used
    server.stop()
    took = statistics.median(seconds for seconds, _ in runs)
    every = [each for _, times in runs for each in times]
    report(
        "serve",
        what="conversations over SSE",
        conversations=STREAMS,
        latency_s=LATENCY,
        took_s=round(took, 2),
        ratio_to_ideal=round(took / LATENCY, 1),
        cpu_ms_each=round(used / STREAMS / len(runs) * 1e3, 2),
        kb_each=round((peak - before) / STREAMS / 1024, 1),
        **spread(every),
    )


if __name__ == "__main__":
    os.environ.setdefault("LOG_LEVEL", "error")
    pin(0)
    requests()
    streams()
