"""Requests that somebody else would like to pass for Slack's, on both ways into a flow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.observe.flood import MOST
from flowrt.slack.signature import SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from flowrt.testing import SlackEvents
from flowrt.testing.slack_events import SIGNING_SECRET
from tests.blocks.chains import NOTE, Note
from tests.slack.app import connector
from tests.sources.test_http_limits import told
from tests.sources.web import Web, route, web

EVENTS = SlackEvents()
BODY, SIGNED = EVENTS.signed(EVENTS.direct("hi"))
AT, SIGNATURE = SIGNED[TIMESTAMP_HEADER], SIGNED[SIGNATURE_HEADER]
LATIN = "v0=é".encode("latin-1")


def attacks() -> dict[str, tuple[bytes, list[tuple[str, Any]]]]:
    """Body and headers, by what is wrong with them."""
    stale = EVENTS.signed(BODY, at=1_700_000_000)[1]
    ahead = EVENTS.signed(BODY, at=float(AT) + 3600)[1]
    both = [(TIMESTAMP_HEADER, AT), (SIGNATURE_HEADER, SIGNATURE)]
    return {
        "another body": (BODY + b" ", both),
        "another secret": (BODY, [both[0], (SIGNATURE_HEADER, sign("guess", AT, BODY))]),
        "another time": (BODY, [(TIMESTAMP_HEADER, str(int(AT) + 1)), both[1]]),
        "no signature": (BODY, both[:1]),
        "no time": (BODY, both[1:]),
        "nothing": (BODY, []),
        "an empty signature": (BODY, [both[0], (SIGNATURE_HEADER, "")]),
        "replayed later": (BODY, list(stale.items())),
        "from the future": (BODY, list(ahead.items())),
        "V0": (BODY, [both[0], (SIGNATURE_HEADER, SIGNATURE.replace("v0=", "V0="))]),
        "in capitals": (BODY, [both[0], (SIGNATURE_HEADER, SIGNATURE.upper())]),
        "without its version": (BODY, [both[0], (SIGNATURE_HEADER, SIGNATURE[3:])]),
        "no ASCII": (BODY, [both[0], (SIGNATURE_HEADER, LATIN)]),
        "a time in no ASCII": (BODY, [(TIMESTAMP_HEADER, "１７".encode()), both[1]]),
        "two signatures": (BODY, [*both, (SIGNATURE_HEADER, SIGNATURE)]),
        "two times": (BODY, [*both, (TIMESTAMP_HEADER, AT)]),
        "a body that is no text": (b"\xff" + BODY, both),
        "a text that reads the same": (json.dumps(json.loads(BODY), indent=1).encode(), both),
    }


VERIFIED = {"connectors": [connector()]}
BY_HAND = route(
    "/events",
    {"type": "slack-verify-request", "connector": "team"},
    NOTE,
    headers=[SIGNATURE_HEADER, TIMESTAMP_HEADER],
    rawBodyVar="rawBody",
)


async def attack(site: Web, content: bytes, headers: list[tuple[str, Any]]) -> None:
    """Send it, and see that nothing of the inside comes back."""
    kind = ("content-type", "application/json")
    sent = [(name, v if isinstance(v, bytes) else v.encode()) for name, v in [kind, *headers]]
    answer = await site.client.post(
        "/events", content=content, headers=[(name.encode(), value) for name, value in sent]
    )
    assert answer.status_code in (400, 401, 500)
    assert isinstance(answer.json()["error"], str)
    for inside in ("Traceback", ".py", SIGNING_SECRET, SIGNATURE):
        assert inside not in answer.text


async def test_no_attack_gets_past_the_block(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with web(tmp_path, BY_HAND, **VERIFIED) as site:
        for content, headers in attacks().values():
            await attack(site, content, headers)
        assert [] == Note.seen
        await site.client.post("/events", content=BODY, headers=SIGNED)
    assert 1 == len(Note.seen)
    assert SIGNING_SECRET not in capsys.readouterr().err


async def test_no_attack_gets_past_the_source(tmp_path: Path) -> None:
    from tests.slack.app import running

    async with running(tmp_path, NOTE, path="/events") as app:
        site = Web(app.service, app.client, 0)
        for content, headers in attacks().values():
            await attack(site, content, headers)
        await app.settle()
        assert [] == Note.seen
        await app.client.post("/events", content=BODY, headers=SIGNED)
        await app.settle()
    assert 1 == len(Note.seen)


async def test_five_hundred_forged_requests_are_not_as_many_log_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with web(tmp_path, BY_HAND, **VERIFIED) as site:
        for _ in range(500):
            await attack(site, BODY + b" ", list(SIGNED.items()))
    lines = told(capsys)
    refused = [line for line in lines if line["event"] == "a request was refused"]
    failed = [line for line in lines if line["event"] == "a request failed"]
    assert MOST <= len(refused) < 200
    assert MOST <= len(failed) < 200
    left_out = sum(line["count"] for line in lines if line.get("of") == "a request failed")
    assert 500 == len(failed) + left_out
