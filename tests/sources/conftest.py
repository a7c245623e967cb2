"""The blocks of `tests.blocks.chains`, fresh for each test, and what carries messages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flowrt.engine import registry
from flowrt.ids import new_id
from flowrt.testing import FakeSlackAPI
from tests.blocks import chains
from tests.sources import serving
from tests.sources.gate import Gate


@pytest.fixture(autouse=True)
def test_blocks() -> None:
    chains.register()
    registry.blocks.add("test-gate", Gate)


@pytest.fixture(params=["memory", "redis"])
def carried(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages go inside of the process, or over Redis."""
    if request.param == "redis":
        url = request.getfixturevalue("redis_url")
        monkeypatch.setattr(serving, "carrier", serving.Carrier(url, f"test {new_id()}"))


@pytest.fixture
def slack() -> Iterator[FakeSlackAPI]:
    """A fake Slack that has had to refuse nothing."""
    with FakeSlackAPI() as fake:
        yield fake
    assert [] == fake.refused
