"""The blocks of `tests.blocks.chains`, fresh for each test."""

from __future__ import annotations

import pytest

from tests.blocks import chains


@pytest.fixture(autouse=True)
def test_blocks() -> None:
    chains.register()
