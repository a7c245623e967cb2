"""Masking: secrets by name, by place, by shape; and innocents left alone (FB-68)."""

from __future__ import annotations

import pytest

from flowrt.observe.masking import mask, mask_text

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLXZhbHVl"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("redis://:p4ssw0rd@host:6379/0", "p4ssw0rd"),
        ("postgres://user:p4ssw0rd@host/db", "p4ssw0rd"),
        ("https://host/x?api_key=abcdef123456&y=1", "abcdef123456"),
        ("Authorization: Bearer abcdef123456", "abcdef123456"),
        ("cookie: session=abcdef; other=ghijkl", "abcdef"),
        ('{"x-api-key": "abcdef123456"}', "abcdef123456"),
        ("password=hunterhunter", "hunterhunter"),
        ("password: hunter2hunter2", "hunter2hunter2"),
        ("https://hooks.slack.com/services/T0/B0/abcdefgh", "abcdefgh"),
        ("token xoxb-1234567890-abcdef", "xoxb-1234567890-abcdef"),
        ("token xapp-1-A0-1234567890-abcdef", "xapp-1-A0-1234567890-abcdef"),
        (f"signed {JWT}", JWT),
        ("key sk-ant-api03-abcdefghijklmnop", "sk-ant-api03-abcdefghijklmnop"),
        ("pay sk_live_4eC39HqLyjWDarjtT1", "sk_live_4eC39HqLyjWDarjtT1"),
        ("pay pk_live_4eC39HqLyjWDarjtT1", "pk_live_4eC39HqLyjWDarjtT1"),
        ("pat github_pat_11AAAAAAA0aaaaaaaaaaaa", "github_pat_11AAAAAAA0aaaaaaaaaaaa"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI/K7MDENG"),
        ("key -----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----", "MIIEow"),
        ("cut -----BEGIN PRIVATE KEY-----\nMIIEvQ", "MIIEvQ"),
    ],
)
def test_a_secret_is_masked_and_its_context_stays(text: str, secret: str) -> None:
    masked = mask_text(text)
    assert secret not in masked
    assert "[redacted]" in masked
    assert masked.startswith(text[:3])


@pytest.mark.parametrize(
    "text",
    [
        "9b91e5a1c0ffee9b91e5a1c0ffee9b91e5a1c0ff",
        "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" * 4,
        "the token count is 12",
        "env.ANTHROPIC_API_KEY: required environment variable is not set",
        "https://host/path?page=2",
        "task_live_1234567890",
        "the access key is under the mat",
    ],
)
def test_an_innocent_text_is_left_alone(text: str) -> None:
    assert text == mask_text(text)


def test_a_value_is_masked_all_the_way_down() -> None:
    found = mask({"a": ["redis://:p4ssw0rd@h/0", 1], "b": None})
    assert {"a": ["redis://:[redacted]@h/0", 1], "b": None} == found
