"""Addresses of Redis."""

from __future__ import annotations

import pytest

from flowrt.errors import CallError
from flowrt.storage.redis_url import check_url, mask_url


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://127.0.0.1:6379/3",
        "rediss://user:p%40ss@db.example:6380/0?ssl_cert_reqs=none",
        "redis://:p%2Fw@[::1]:6379",
    ],
)
def test_an_address_is_accepted(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis:6379",
        "redis://:hunter2/rest@host:6379/0",
        "redis://:hunter2[x@host:6379",
        "redis://:hunter2#x@host",
        "redis://host:port",
        "redis://host:6379/not-a-number",
        "redis://host:99999",
    ],
)
def test_what_is_no_address_is_refused_without_showing_the_password(url: str) -> None:
    with pytest.raises(CallError, match="percent-encoded") as caught:
        check_url(url)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host:1/0", "redis://host:1/0"),
        ("redis://:secret@host:1/0", "redis://:[redacted]@host:1/0"),
        ("redis://ann:secret@host", "redis://ann:[redacted]@host"),
        ("redis://:se@cr:et/x?y@host", "redis://:[redacted]@host"),
        ("redis://host?password=hunter2hunter2", "redis://host?password=[redacted]"),
    ],
)
def test_a_password_is_masked_also_where_it_is_not_encoded(url: str, shown: str) -> None:
    assert shown == mask_url(url)
