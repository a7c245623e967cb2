"""`flowrt slack replay`: recorded events, sent to a running bot as Slack sends them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from flowrt.cli.exits import DONE, FAILED
from flowrt.errors import CallError
from flowrt.slack.signature import SIGNATURE_HEADER, TIMESTAMP_HEADER, sign

SECRET = "SLACK_SIGNING_SECRET"  # noqa: S105 - the variable's name
PATIENCE = 10.0
"""Seconds for one answer. Slack itself waits three."""
_TIMES = ("ts", "thread_ts", "event_ts")


def replay_command(file: str, url: str, *, fresh: bool) -> int:
    """Send the events in order and print what each was answered; 1 where one was refused."""
    secret = os.environ.get(SECRET)
    if not secret:
        raise CallError(f"{SECRET} is not set; set it to the signing secret of the bot")
    if not url.startswith(("http://", "https://")):
        raise CallError(f"--url is {url!r}, and no http or https URL")
    events = list(_read(Path(file)))
    if fresh:
        _move(events, time.time())
    statuses = [_send(event, url, secret) for event in events]
    return DONE if all(200 <= status < 300 for status in statuses) else FAILED


def _send(event: dict[str, Any], url: str, secret: str) -> int:
    body = json.dumps(event).encode()
    timestamp = str(int(time.time()))
    headers = {
        "content-type": "application/json",
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: sign(secret, timestamp, body),
    }
    began = time.perf_counter()
    try:
        with urlopen(Request(url, body, headers), timeout=PATIENCE) as answer:  # noqa: S310
            status = int(answer.status)
    except HTTPError as error:
        with error:
            status = error.code
    except (URLError, TimeoutError) as error:
        raise CallError(f"nobody answers at {url}: {error}; is the bot running?") from error
    inner = event.get("event") or {}
    what = (
        f"{inner.get('type') or event.get('type')} {inner.get('channel', '')} {inner.get('ts', '')}"
    )
    print(f"{status}  {(time.perf_counter() - began) * 1000:6.0f} ms  {what.rstrip()}")
    return status


def _read(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CallError(f"{path} cannot be read: {error}") from error
    if text.lstrip().startswith("["):
        entries = [(1, text)]
    else:
        entries = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    for number, entry in entries:
        try:
            value = json.loads(entry)
        except ValueError as error:
            raise CallError(f"{path}:{number}: no JSON: {error}") from error
        for event in value if isinstance(value, list) else [value]:
            if not isinstance(event, dict):
                raise CallError(f"{path}:{number}: an event is an object, found {event!r}")
            yield event


def _move(events: list[dict[str, Any]], now: float) -> None:
    """Move the times of all posts by as much as makes the newest one now: threads stay threads."""
    inner = [event["event"] for event in events if isinstance(event.get("event"), dict)]
    seconds = [int(str(event["ts"]).partition(".")[0]) for event in inner if "ts" in event]
    ahead = int(now) - max(seconds, default=0)
    for event in inner:
        for name in _TIMES:
            if name in event:
                whole, dot, rest = str(event[name]).partition(".")
                event[name] = f"{int(whole) + ahead}{dot}{rest}"
