"""What Slack sends in a storm: posts of many threads, and what must start nothing."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from flowrt.testing import SlackEvents
from flowrt.testing.slack_events import BOT_ID, BOT_USER


@dataclass(frozen=True, slots=True)
class Weather:
    """How bad it gets.

    `noise` is the share of events that must start nothing: posts sent twice or as two events,
    echoes of the bot. `rate` is events a second; every `kill_every` seconds a replica is killed,
    `kills` times at most.
    """

    events: int = 2000
    threads: int = 200
    replicas: int = 3
    noise: float = 0.2
    rate: float = 40.0
    latency: float = 0.2
    kill_every: float = 5.0
    kills: int = 1000
    seed: int = 1


def thread_of(number: int) -> str:
    return f"{1_700_000_000 + number}.000001"


def script(weather: Weather, events: SlackEvents) -> list[tuple[int, dict[str, Any]]]:
    """What is sent, in order: the thread of each event, and the event."""
    dice = random.Random(weather.seed)
    posts = round(weather.events * (1 - weather.noise))
    order = [number % weather.threads for number in range(posts)]
    dice.shuffle(order)
    counts: Counter[int] = Counter()
    sent: list[tuple[int, dict[str, Any]]] = []
    for thread in order:
        sent.append((thread, _post(events, thread, counts[thread])))
        counts[thread] += 1
    noise = [_noise(dice, events, *dice.choice(sent)) for _ in range(weather.events - posts)]
    for thread, event in noise:
        # Behind what it repeats, which it may still overtake: it is sent beside it.
        first = next(at for at, (t, _) in enumerate(sent) if t == thread)
        sent.insert(dice.randint(first + 1, len(sent)), (thread, event))
    return sent


def _post(events: SlackEvents, thread: int, number: int) -> dict[str, Any]:
    channel, text = f"C{thread % 20}", f"thread {thread} post {number}"
    if number == 0:
        return events.mention(text, channel=channel, ts=thread_of(thread))
    ts = f"{1_700_000_000 + thread}.{number + 1:06}"
    return events.message(text, channel=channel, ts=ts, thread_ts=thread_of(thread))


def _noise(
    dice: random.Random, events: SlackEvents, thread: int, event: dict[str, Any]
) -> tuple[int, dict[str, Any]]:
    said = event["event"]
    kind = dice.choice(("again", "twin", "echo"))
    if kind == "again":
        return thread, event
    fields = {"ts": said["ts"], "channel": said["channel"]}
    if "thread_ts" in said:
        fields["thread_ts"] = said["thread_ts"]
    if kind == "twin":
        other = events.message if said["type"] == "app_mention" else events.mention
        return thread, other(said["text"], **fields)
    echo = f"answer to {said['text']}"
    echoed = {**fields, "ts": f"{said['ts']}9", "thread_ts": thread_of(thread)}
    return thread, events.message(echo, user=BOT_USER, bot_id=BOT_ID, **echoed)


def answer(body: dict[str, Any]) -> str:
    """What the model says: what it was asked, and how much it remembers."""
    asked = [m for m in body["messages"] if m["role"] == "user"]
    text = asked[-1]["content"][-1]["text"]
    return f"answer to {text} ({len(asked)})"


def asked_in(sent: list[tuple[int, dict[str, Any]]]) -> dict[int, list[str]]:
    """What was asked in each thread, in order."""
    asked: dict[int, list[str]] = defaultdict(list)
    for thread, event in sent:
        text = event["event"]["text"].removeprefix(f"<@{BOT_USER}> ")
        if event["event"].get("bot_id") is None and text not in asked[thread]:
            asked[thread].append(text)
    return asked
