"""How Slack signs what it sends: HMAC-SHA256 over the time and the very bytes of the body."""

from __future__ import annotations

import hashlib
import hmac

SIGNATURE_HEADER = "X-Slack-Signature"
TIMESTAMP_HEADER = "X-Slack-Request-Timestamp"
MOST_SKEW = 300
"""Seconds that a request may be old, or ahead of this machine's clock."""


class BadSignature(Exception):
    """A request that is not Slack's, or no longer.

    `skew` is the sender's time less ours in seconds, where the times are why; else None.
    """

    def __init__(self, text: str, skew: float | None = None) -> None:
        self.skew = skew
        super().__init__(text)


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The signature of a body that is sent at `timestamp`, in seconds since 1970."""
    signed = b"v0:" + timestamp.encode("utf-8", "surrogatepass") + b":" + body
    return "v0=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def check_signature(secret: str, timestamp: str, signature: str, body: bytes, now: float) -> None:
    """Raise `BadSignature` unless `body`, byte for byte, was signed by Slack within five minutes.

    `timestamp` and `signature` are the headers' values, empty where there was none; `now` is in
    seconds since 1970. Nothing of the body may be read before.
    """
    if not timestamp or not signature:
        missing = SIGNATURE_HEADER if timestamp else TIMESTAMP_HEADER
        raise BadSignature(f"the header {missing} is missing")
    # isdigit alone takes digits of other scripts, which int reads and Slack never sends.
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        raise BadSignature(f"{TIMESTAMP_HEADER} is {timestamp[:40]!r}, and no time")
    expected = sign(secret, timestamp, body)
    # As bytes: on texts, compare_digest refuses what is not ASCII with an error of its own.
    if not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "surrogatepass")):
        raise BadSignature("the signature is not that of this body and signing secret")
    skew = int(timestamp) - now
    if abs(skew) > MOST_SKEW:
        where = "behind" if skew < 0 else "ahead of"
        raise BadSignature(
            f"the request is {abs(skew):.0f}s {where} this machine's clock, more than {MOST_SKEW}s",
            skew,
        )
