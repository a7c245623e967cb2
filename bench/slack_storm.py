"""A Slack bot of several replicas in bad weather: events at once, twice and again, and kills.

Real processes of `flowrt run`, a real Redis, the fake Slack and the fake model; Slack's part, that
of a load balancer and that of whoever kills replicas are played here. What comes out is compared
with what must: each post answered once and in the order of its thread, nothing lost, and every
thread's memory whole.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import yaml

from bench.measure import report
from bench.storm_events import Weather, answer, asked_in, script
from bench.storm_verdict import PLACEHOLDER, finals, tracebacks, wrong_answers, wrong_memories
from flowrt.testing import FakeMessagesAPI, FakeSlackAPI, SlackEvents
from flowrt.testing.slack_api import TOKEN
from flowrt.testing.slack_events import SIGNING_SECRET
from tests.redis_server import RedisServer

PATIENCE = 120.0
"""Seconds after the last event in which all must be answered; a killed replica's posts are taken
over after 15 seconds."""


@dataclass(slots=True)
class Outcome:
    """What came of it; `faults` are sentences about what must not have happened."""

    posts: int = 0
    events: int = 0
    kills: int = 0
    seconds: float = 0.0
    model_calls: int = 0
    orphans: int = 0
    acknowledged: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def milliseconds(self, share: float) -> float:
        """How fast this share of the requests was acknowledged."""
        ordered = sorted(self.acknowledged)
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000, 1)


class Replicas:
    """Processes of `flowrt run`, each on a port that it has again after it was killed."""

    def __init__(self, folder: Path, storage: str, count: int) -> None:
        self._folder = folder
        self._storage = storage
        self._ports = [_free_port() for _ in range(count)]
        self._processes = [self._begin(port) for port in self._ports]
        self.urls = [f"http://127.0.0.1:{port}" for port in self._ports]
        self.kills = 0

    def _begin(self, port: int) -> subprocess.Popen[bytes]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("FLOWRT_")}
        command = [sys.executable, "-m", "flowrt.cli.main", "run", "--config", "bot.yaml"]
        with (self._folder / f"{port}.log").open("ab") as log:
            return subprocess.Popen(
                [*command, "--storage", self._storage, "--admin", "127.0.0.1:0"],
                cwd=self._folder,
                env=kept | {"HTTP_HOST": "127.0.0.1", "HTTP_PORT": str(port)},
                stdout=log,
                stderr=log,
            )

    def kill(self, at: int) -> None:
        """Kill a replica; another takes its port at once."""
        self._processes[at].kill()
        self._processes[at].wait()
        self.kills += 1
        self._processes[at] = self._begin(self._ports[at])

    def stop(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()

    async def serving(self, client: httpx2.AsyncClient) -> None:
        """Wait until all take requests."""
        for url in self.urls:
            while True:
                try:
                    await client.get(url)
                    break
                except httpx2.HTTPError:
                    await asyncio.sleep(0.05)


class Slack:
    """Sends events as Slack does: what is not acknowledged is sent again, to any replica."""

    def __init__(self, client: httpx2.AsyncClient, urls: list[str], outcome: Outcome) -> None:
        self._client = client
        self._urls = urls
        self._outcome = outcome
        self.events = SlackEvents()

    async def send(self, event: dict[str, Any]) -> None:
        attempt = 0
        while True:
            body, headers = self.events.signed(event)
            if attempt:
                headers["X-Slack-Retry-Num"] = str(attempt)
            url = random.choice(self._urls)
            began = time.perf_counter()
            try:
                answer = await self._client.post(
                    f"{url}/slack/events", content=body, headers=headers
                )
            except httpx2.HTTPError:
                # Killed, or not there again yet; the next replica is asked.
                await asyncio.sleep(0.01)
            else:
                if answer.status_code == 200:
                    self._outcome.acknowledged.append(time.perf_counter() - began)
                    return
                await asyncio.sleep(0.2)
            attempt += 1


def bot(slack: str, model: str) -> dict[str, Any]:
    """The bot with the `slack` source, as in the samples."""
    return {
        "service": {"name": "storm"},
        "connectors": [
            {
                "name": "claude",
                "type": "llm-anthropic",
                "settings": {"apiKey": "k", "baseURL": model},
            },
            {
                "name": "team",
                "type": "slack",
                "settings": {
                    "botToken": TOKEN,
                    "signingSecret": SIGNING_SECRET,
                    "apiBaseURL": slack,
                },
            },
        ],
        "flows": [
            {
                "name": "bot",
                "workers": 16,
                "source": {"type": "slack"},
                "process": [
                    {"type": "slack-reply", "connector": "team"},
                    {
                        "type": "ai-agent",
                        "connector": "claude",
                        "prompt": "Answer.",
                        "answer": "text",
                        "input": "vars.slack.text",
                        "memoryThreadId": "vars.slack.threadId",
                    },
                    {"type": "slack-reply-finish", "connector": "team", "format": "plain"},
                ],
            }
        ],
    }


async def storm(weather: Weather, redis: str, folder: Path) -> Outcome:
    """Let it happen; what came of it."""
    outcome = Outcome()
    reply = {"delay": weather.latency}
    with (
        FakeSlackAPI() as slack,
        FakeMessagesAPI(reply=lambda body: {"text": answer(body), **reply}) as api,
    ):
        document = bot(slack.base_url, api.base_url)
        (folder / "bot.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        async with _replicas(folder, redis, weather) as (replicas, client):
            sender = Slack(client, replicas.urls, outcome)
            sent = script(weather, sender.events)
            began = time.perf_counter()
            killer = asyncio.create_task(_kill(replicas, weather))
            await _send_all(sender, sent, weather.rate)
            asked = asked_in(sent)
            await _all_answered(slack, asked)
            killer.cancel()
            outcome.seconds = round(time.perf_counter() - began, 1)
            outcome.kills, outcome.events = replicas.kills, len(sent)
        outcome.posts = sum(map(len, asked.values()))
        outcome.model_calls = len(api.requests)
        outcome.orphans = sum(post.text == PLACEHOLDER for post in slack.posts)
        outcome.faults = [
            *wrong_answers(slack, asked),
            *await wrong_memories(redis, asked),
            *(f"the model refused: {text}" for text in api.refused),
            *(f"slack refused: {text}" for text in slack.refused),
            *tracebacks(folder),
        ]
    return outcome


@asynccontextmanager
async def _replicas(
    folder: Path, redis: str, weather: Weather
) -> AsyncIterator[tuple[Replicas, httpx2.AsyncClient]]:
    replicas = Replicas(folder, redis, weather.replicas)
    limits = httpx2.Limits(max_connections=200)
    try:
        async with httpx2.AsyncClient(timeout=10, limits=limits) as client:
            async with asyncio.timeout(60):
                await replicas.serving(client)
            yield replicas, client
    finally:
        replicas.stop()


async def _kill(replicas: Replicas, weather: Weather) -> None:
    for number in range(weather.kills):
        await asyncio.sleep(weather.kill_every)
        await asyncio.to_thread(replicas.kill, number % len(replicas.urls))


async def _send_all(sender: Slack, sent: list[tuple[int, dict[str, Any]]], rate: float) -> None:
    """At a steady rate. What is said in a thread waits until what was said before is acknowledged,
    as it does where people write it; what repeats a post may overtake it, but not those before."""
    last: dict[int, asyncio.Task[None]] = {}
    waited: dict[str, asyncio.Task[None] | None] = {}
    tasks: list[asyncio.Task[None]] = []
    began = time.perf_counter()
    for number, (thread, event) in enumerate(sent):
        await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
        said = event["event"]
        news = said["ts"] not in waited
        before = waited.setdefault(said["ts"], last.get(thread))
        task = asyncio.create_task(_after(before, sender, event))
        tasks.append(task)
        if news:
            last[thread] = task
    await asyncio.gather(*tasks)


async def _after(before: asyncio.Task[None] | None, sender: Slack, event: dict[str, Any]) -> None:
    if before is not None:
        await asyncio.wait([before])
    await sender.send(event)


async def _all_answered(slack: FakeSlackAPI, asked: dict[int, list[str]]) -> None:
    wanted = sum(map(len, asked.values()))
    try:
        async with asyncio.timeout(PATIENCE):
            while len(set(finals(slack))) < wanted:
                await asyncio.sleep(0.2)
    except TimeoutError:
        return  # what is missing is counted as a fault
    await asyncio.sleep(1.0)  # whoever would answer twice has the time for it


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in vars_of(Weather()).items():
        kind = type(default)
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default)
    parser.add_argument("--redis", help="its URL; unset, one is started")
    given = vars(parser.parse_args())
    redis = given.pop("redis")
    weather = Weather(**given)
    with TemporaryDirectory() as folder:
        if redis:
            outcome = asyncio.run(storm(weather, redis, Path(folder)))
        else:
            server = RedisServer(Path(folder))
            server.start()
            outcome = asyncio.run(storm(weather, server.url, Path(folder)))
            server.stop()
    for fault in outcome.faults[:20]:
        print(json.dumps({"fault": fault}))
    report(
        "slack_storm",
        events=outcome.events,
        posts=outcome.posts,
        replicas=weather.replicas,
        kills=outcome.kills,
        seconds=outcome.seconds,
        model_calls=outcome.model_calls,
        placeholders_left=outcome.orphans,
        acknowledged_ms={
            "median": round(statistics.median(outcome.acknowledged) * 1000, 1),
            "p99": outcome.milliseconds(0.99),
            "max": outcome.milliseconds(1.0),
        },
        faults=len(outcome.faults),
    )
    sys.exit(1 if outcome.faults else 0)


def vars_of(weather: Weather) -> dict[str, Any]:
    return {name: getattr(weather, name) for name in Weather.__dataclass_fields__}


if __name__ == "__main__":
    main()
