"""The blocks of `tests.blocks.chains`, fresh for each test."""

from __future__ import annotations

import pytest

from flowrt.engine import registry
from tests.blocks import chains
from tests.sources.gate import Gate


@pytest.fixture(autouse=True)
def test_blocks() -> None:
    chains.register()
    registry.blocks.add("test-gate", Gate)
