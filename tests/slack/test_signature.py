"""Signatures of Slack's requests: over the very bytes, and soon (FB-77)."""

from __future__ import annotations

import pytest

from flowrt.slack.signature import BadSignature, check_signature, sign

NOW = 1_700_000_000.0
T = "1700000000"


@pytest.mark.parametrize(
    "body",
    [b"", b'{"a":  1 }', b'{"a": "\\u00e9"}', '{"a": "é"}'.encode(), b"\xff\xfe\x00 no text"],
)
def test_a_body_is_taken_byte_for_byte(body: bytes) -> None:
    check_signature("s", T, sign("s", T, body), body, NOW)
    with pytest.raises(BadSignature, match="not that of this body"):
        check_signature("s", T, sign("s", T, body), body + b" ", NOW)


def test_it_is_the_signature_that_slack_documents() -> None:
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
        b"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
        b"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands"
        b"%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015"
        b".47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    expected = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
    assert expected == sign("8f742231b10e8888abcd99yyyzzz85a5", "1531420618", body)


@pytest.mark.parametrize(
    "wrong",
    [
        sign("another", T, b"{}"),
        sign("s", T, b"{}").upper(),
        sign("s", T, b"{}").replace("v0=", "V0="),
        sign("s", T, b"{}").removeprefix("v0="),
        sign("s", T, b"{}") + ", " + sign("s", T, b"{}"),
        "v0=",
        "v0=é",
        "\udcff",
    ],
)
def test_what_is_not_the_signature_is_refused(wrong: str) -> None:
    with pytest.raises(BadSignature):
        check_signature("s", T, wrong, b"{}", NOW)


@pytest.mark.parametrize(
    "times", ["", "now", "1e9", "-1700000000", "１７０００００００0", "9" * 400]
)
def test_what_is_no_time_is_refused_whatever_its_signature(times: str) -> None:
    with pytest.raises(BadSignature, match="Timestamp"):
        check_signature("s", times, sign("s", times, b"{}"), b"{}", NOW)


def test_a_missing_signature_is_named() -> None:
    with pytest.raises(BadSignature, match="X-Slack-Signature is missing"):
        check_signature("s", T, "", b"{}", NOW)


@pytest.mark.parametrize(
    ("seconds", "fine"), [(300, True), (-300, True), (301, False), (-301, False)]
)
def test_five_minutes_either_way(seconds: int, fine: bool) -> None:
    now = NOW + seconds
    if fine:
        check_signature("s", T, sign("s", T, b"{}"), b"{}", now)
        return
    with pytest.raises(BadSignature, match="301s") as caught:
        check_signature("s", T, sign("s", T, b"{}"), b"{}", now)
    assert -seconds == caught.value.skew


def test_the_time_of_a_forged_request_is_not_told() -> None:
    with pytest.raises(BadSignature) as caught:
        check_signature("s", "1", "v0=00", b"{}", NOW)
    assert caught.value.skew is None
