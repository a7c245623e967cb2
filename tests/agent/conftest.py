"""A fake Messages API for every test of the agent, and strict requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flowrt.testing import FakeMessagesAPI


@pytest.fixture
def api() -> Iterator[FakeMessagesAPI]:
    with FakeMessagesAPI() as fake:
        yield fake
