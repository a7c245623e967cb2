"""What came of a storm, beside what must have come of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.storm_events import thread_of
from flowrt.memory.transcript import Thread
from flowrt.storage.tiers import Storage
from flowrt.testing import FakeSlackAPI

PLACEHOLDER = ":thinking_face:"


def finals(slack: FakeSlackAPI) -> list[str]:
    return [
        arguments["text"]
        for method, arguments in list(slack.calls)
        if method == "chat.update" and arguments["text"].startswith("answer to")
    ]


def wrong_answers(slack: FakeSlackAPI, asked: dict[int, list[str]]) -> Iterator[str]:
    shown = Counter(post.text for post in slack.posts if post.text != PLACEHOLDER)
    first: dict[str, None] = dict.fromkeys(finals(slack))
    for thread, texts in asked.items():
        wanted = [f"answer to {text} ({number})" for number, text in enumerate(texts, 1)]
        for text in wanted:
            if shown[text] != 1:
                yield f"{text!r} is shown {shown[text]} times"
        order = [text for text in first if text in set(wanted)]
        if order != wanted:
            yield f"thread {thread} was answered in the order {order}"
    for text in set(shown) - {f"answer to {t} ({n})" for ts in asked.values()
                              for n, t in enumerate(ts, 1)}:  # fmt: skip
        yield f"nobody is to be shown {text!r}"


async def wrong_memories(redis: str, asked: dict[int, list[str]]) -> list[str]:
    wrong: list[str] = []
    storage = Storage.from_urls("storm", redis, environ={})
    for thread, texts in asked.items():
        name = f"slack:C{thread % 20}:{thread_of(thread)}"
        entries = (await Thread(storage.space("user"), name).load()).entries
        said = [entry.message["content"][0]["text"] for entry in entries]
        wanted = [
            part for n, text in enumerate(texts, 1) for part in (text, f"answer to {text} ({n})")
        ]
        if said != wanted:
            wrong.append(f"thread {thread} remembers {said}")
    await storage.close()
    return wrong


def tracebacks(folder: Path) -> Iterator[str]:
    for log in folder.glob("*.log"):
        text = log.read_text(encoding="utf-8", errors="replace")
        if "Traceback" in text:
            yield f"{log.name} has a traceback: {text[text.index('Traceback') :][:2000]}"
