"""A fake API and a clock that does not wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flowrt.testing import FakeCompletionsAPI, FakeMessagesAPI
from tests.llm.anthropic_calls import Waits


@pytest.fixture
def api() -> Iterator[FakeMessagesAPI]:
    with FakeMessagesAPI() as fake:
        yield fake


@pytest.fixture
def clock() -> Waits:
    return Waits()


@pytest.fixture
def chat() -> Iterator[FakeCompletionsAPI]:
    with FakeCompletionsAPI() as fake:
        yield fake
