"""What a service looks like from outside while something around it fails.

Real processes: `flowrt run`, a Redis, a fake model. Each weather gives a row of figures; `make
test` runs the same ones small (`tests/cli/test_faults.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import psutil

from bench.measure import report
from flowrt.storage.memory import MemoryStore
from flowrt.storage.tiers import Storage, parse_storage_url
from flowrt.testing import FakeMessagesAPI, SlackEvents
from flowrt.testing.replies import FakeReply
from tests.cli.running import Running, write
from tests.redis_server import RedisServer
from tests.services import agent
from tests.slack.app import connector
from tests.sources.malformed import malformed
from tests.sources.serving import carrier, document, flow, listening
from tests.sources.web import route

CLIENTS = 8
SETTLE = 3.0
"""Seconds until what failed is parked: readers try a Redis that is away every second."""
PATIENCE = 60.0
READ = {"type": "object-read", "settings": {"key": '"n:" + string(body)', "default": "null"}}
WRITE = {"type": "object-write", "settings": {"key": '"n:" + string(body)', "value": "body"}}
ECHO = {"type": "set-payload", "value": "body"}
JOBS = {"type": "queue-dispatch", "subject": '"jobs"'}


class Bill:
    """What clients were told, and what that cost the process."""

    def __init__(self, running: Running) -> None:
        self.statuses: Counter[int] = Counter()
        self.inside = 0
        """Answers that show something of the inside."""
        self._running = running
        self._process = psutil.Process(running.process.pid)
        self._before = self._process.memory_info().rss

    def note(self, status: int, text: str) -> None:
        """Count one answer; 0 where there was none."""
        self.statuses[status] += 1
        if any(part in text for part in ("Traceback", '.py"', "site-packages")):
            self.inside += 1

    def grown(self) -> float:
        """Megabytes of memory more than at the start."""
        return round((self._process.memory_info().rss - self._before) / 2**20, 1)

    def settle(self, **more: Any) -> dict[str, Any]:
        """End the process; the figures."""
        grown = self.grown()
        self._running.signal()
        code = self._running.ended()
        lines = self._running.lines
        raw = [line["event"] for line in lines if "level" not in line]
        return {
            "asked": sum(self.statuses.values()),
            "answers": {str(status): n for status, n in sorted(self.statuses.items())},
            "inside_shown": self.inside,
            "log_lines": len(lines),
            "tracebacks": sum("Traceback" in text for text in raw)
            + sum("Traceback" in str(line.get("error", "")) for line in lines),
            "grown_mb": grown,
            "exit": code,
            **more,
        }


async def load(bill: Bill, ask: Callable[[int], Awaitable[tuple[int, str]]], until: Any) -> None:
    """Clients that ask again as soon as they are answered, until `until` is done."""
    numbers = iter(range(10**9))

    async def client() -> None:
        while not until.done():
            bill.note(*await ask(next(numbers)))

    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(client())


async def recovered(ask: Callable[[], Awaitable[tuple[int, str]]]) -> float:
    """Seconds until a request is answered with 200 again."""
    began = time.monotonic()
    while (await ask())[0] != 200:
        assert time.monotonic() - began < PATIENCE, "it does not come back"
        await asyncio.sleep(0.05)
    return round(time.monotonic() - began, 2)


async def left(writer: asyncio.StreamWriter) -> None:
    """Break a connection, and wait until its socket is closed."""
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def post(client: httpx2.AsyncClient, path: str, body: Any) -> tuple[int, str]:
    """Status and text of an answer; 0 where there was none."""
    try:
        answer = await client.post(path, json=body)
    except httpx2.TransportError as error:
        return 0, str(error)
    return answer.status_code, answer.text


async def sent_again(url: str) -> int:
    """Send every parked job again, once the readers have parked what failed; how many."""
    await asyncio.sleep(SETTLE)
    storage = Storage(carrier.service, parse_storage_url(url), MemoryStore())
    mail = storage.mail()
    assert mail is not None
    parked = await mail.parked()
    for each in parked:
        await mail.retry(each.id)
    await storage.close()
    return len(parked)


def redis_gone(folder: Path, seconds: float, how: str) -> dict[str, Any]:
    """Redis is stopped (`freeze`) or killed and started again (`kill`), under HTTP and queues.

    What was answered with 200 must have been done in the end: `lost` counts what was not. A job
    whose flow failed for want of the Redis is parked, and sent again here as an operator would.
    """
    redis_folder = folder / "redis"
    redis_folder.mkdir()
    redis = RedisServer(redis_folder, appendfsync="always")
    redis.start()
    write(
        folder,
        document(
            route("/in", JOBS, name="in"),
            route("/seen", READ, name="seen"),
            flow("work", WRITE, source=listening("queue", "jobs")),
        ),
    )

    async def weather() -> None:
        await asyncio.sleep(seconds)
        if how == "freeze":
            redis.signal(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            redis.signal(signal.SIGCONT)
        else:
            redis.kill()
            await asyncio.sleep(seconds)
            await asyncio.to_thread(redis.start)

    async def run(url: str, bill: Bill) -> dict[str, Any]:
        taken: list[int] = []
        async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:

            async def ask(number: int) -> tuple[int, str]:
                status, text = await post(client, "/in", number)
                if status == 200:
                    taken.append(number)
                return status, text

            await load(bill, ask, asyncio.ensure_future(weather()))
            back = await recovered(lambda: post(client, "/in", -1))
            parked = await sent_again(redis.url)
            lost = set(taken)
            deadline = time.monotonic() + PATIENCE
            while lost and time.monotonic() < deadline:
                for number in list(lost):
                    if (await post(client, "/seen", number)) == (200, str(number)):
                        lost.discard(number)
        return {"recovered_s": back, "taken": len(taken), "parked": parked, "lost": len(lost)}

    try:
        with Running(folder, "--storage", redis.url) as running:
            url, _ = running.serving()
            bill = Bill(running)
            return bill.settle(**asyncio.run(run(url, bill)))
    finally:
        redis.stop()


def provider_down(folder: Path, seconds: float) -> dict[str, Any]:
    """The model answers 529, then breaks connections, then is back."""
    began = time.monotonic() + PATIENCE

    def reply(_: Any) -> Any:
        now = time.monotonic() - began
        if seconds < now < 2 * seconds:
            return FakeReply(error=529)
        if 2 * seconds < now < 3 * seconds:
            return FakeReply(disconnect=0)
        return "Fine."

    with FakeMessagesAPI(reply=reply) as api:
        content = agent(api.base_url, connection={"maxRetries": 1})
        content["flows"][0]["source"] = {"type": "http", "settings": {"path": "/chat"}}
        write(folder, content)
        with Running(folder) as running:
            url, _ = running.serving()

            async def run() -> dict[str, Any]:
                nonlocal began
                async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:

                    async def ask(number: int) -> tuple[int, str]:
                        return await post(client, "/chat", {"thread": f"{number}", "message": "hi"})

                    # What is loaded with the first call is no growth.
                    await ask(-2)
                    bill = Bill(running)
                    began = time.monotonic()
                    await load(bill, ask, asyncio.ensure_future(asyncio.sleep(3 * seconds)))
                    back = await recovered(lambda: ask(-1))
                    return bill.settle(recovered_s=back)

            return asyncio.run(run())


def bad_requests(folder: Path, count: int) -> dict[str, Any]:
    """Requests that are no HTTP, nearly HTTP, or two at once (`tests/sources/malformed.py`)."""
    write(folder, document(route("/", ECHO, maxBodyBytes=1000)))

    async def send(port: int, seed: int) -> tuple[int, str]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(malformed(seed))
            await writer.drain()
            async with asyncio.timeout(0.5):
                told = await reader.read(65536)
        except (OSError, TimeoutError):
            return 0, ""
        finally:
            await left(writer)
        return int(told[9:12] or b"0"), told.decode("latin-1")

    async def run(port: int, bill: Bill) -> None:
        for start in range(0, count, 100):
            for told in await asyncio.gather(*(send(port, start + n) for n in range(100))):
                bill.note(*told)

    with Running(folder, "--storage", "memory:") as running:
        url, _ = running.serving()
        bill = Bill(running)
        asyncio.run(run(int(url.rpartition(":")[2]), bill))
        return bill.settle()


def large_bodies(folder: Path, count: int) -> dict[str, Any]:
    """Bodies of ten times what is allowed, announced and not."""
    write(folder, document(route("/", ECHO, maxBodyBytes=100_000)))
    piece = b"1" * 100_000

    async def pieces() -> Any:
        for _ in range(10):
            yield piece

    async def run(url: str, bill: Bill) -> None:
        async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            for number in range(count):
                content = pieces() if number % 2 else piece * 10
                try:
                    answer = await client.post("/", content=content)
                except httpx2.TransportError:
                    bill.note(0, "")
                else:
                    bill.note(answer.status_code, answer.text)

    with Running(folder, "--storage", "memory:") as running:
        url, _ = running.serving()
        bill = Bill(running)
        asyncio.run(run(url, bill))
        return bill.settle()


def crowd(folder: Path, count: int) -> dict[str, Any]:
    """More connections than are allowed, a third silent, a third with half a head, a third with
    half a body, while others ask for `/healthz` and for an answer."""
    settings = {"host": "127.0.0.1", "port": 0, "maxConnections": count // 2, "readTimeout": "5s"}
    content = document(route("/", ECHO))
    write(
        folder, content | {"connectors": [{"name": "http", "type": "http", "settings": settings}]}
    )
    halves = (b"", b"GET / HT", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n1")

    async def asked(url: str, times: list[float]) -> int:
        began = time.perf_counter()
        async with httpx2.AsyncClient(timeout=PATIENCE) as client:
            try:
                status = (await client.get(url)).status_code
            except httpx2.TransportError:
                status = 0
        times.append((time.perf_counter() - began) * 1e3)
        return status

    async def run(url: str, admin: str, bill: Bill) -> dict[str, Any]:
        port = int(url.rpartition(":")[2])
        held: list[asyncio.StreamWriter] = []
        healthy: list[float] = []
        served: list[float] = []

        async def flood() -> None:
            for number in range(count):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(halves[number % 3])
                held.append(writer)

        flooding = asyncio.ensure_future(flood())
        while not flooding.done() or len(healthy) < 20:
            assert await asked(f"{admin}/healthz", healthy) == 200
            bill.note(await asked(url, served), "")
        back = await recovered(lambda: _first(asked(url, served)))
        await asyncio.gather(*map(left, held))
        return {
            "health_p50_ms": round(statistics.median(healthy), 1),
            "health_max_ms": round(max(healthy), 1),
            "recovered_s": back,
        }

    with Running(folder, "--storage", "memory:") as running:
        url, admin = running.serving()
        bill = Bill(running)
        return bill.settle(**asyncio.run(run(url, admin, bill)))


async def _first(status: Awaitable[int]) -> tuple[int, str]:
    return await status, ""


def forged(folder: Path, count: int) -> dict[str, Any]:
    """Requests to `slack-verify-request` that Slack has not signed."""
    verify = {"type": "slack-verify-request", "connector": "team"}
    headers = ["X-Slack-Signature", "X-Slack-Request-Timestamp"]
    content = document(route("/", verify, headers=headers, rawBodyVar="rawBody"))
    write(folder, content | {"connectors": [connector()]})
    events = SlackEvents()
    body, signed = events.signed(events.direct("hi"))
    wrong = [
        signed | {"X-Slack-Signature": signed["X-Slack-Signature"].upper()},
        signed | {"X-Slack-Request-Timestamp": "1700000000"},
        signed | {"X-Slack-Signature": "v0=0"},
        {"content-type": "application/json"},
    ]

    async def run(url: str, bill: Bill) -> dict[str, Any]:
        async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            for number in range(count):
                answer = await client.post("/", content=body, headers=wrong[number % 4])
                bill.note(answer.status_code, answer.text)
            passed = await client.post("/", content=body, headers=signed)
        return {"signed": passed.status_code}

    with Running(folder, "--storage", "memory:") as running:
        url, _ = running.serving()
        bill = Bill(running)
        return bill.settle(**asyncio.run(run(url, bill)))


WEATHERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "redis frozen for 15 s": lambda folder: redis_gone(folder, 15, "freeze"),
    "redis killed, back after 15 s": lambda folder: redis_gone(folder, 15, "kill"),
    "provider down for 2 x 15 s": lambda folder: provider_down(folder, 15),
    "10,000 malformed requests": lambda folder: bad_requests(folder, 10_000),
    "200 bodies too large": lambda folder: large_bodies(folder, 200),
    "4,000 connections": lambda folder: crowd(folder, 4000),
    "2,000 forged requests": lambda folder: forged(folder, 2000),
}

if __name__ == "__main__":
    for name, weather in WEATHERS.items():
        with TemporaryDirectory() as folder:
            report("faults", what=name, **weather(Path(folder)))
