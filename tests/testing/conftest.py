"""A fake API that answers everything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flowrt.testing import FakeMessagesAPI


@pytest.fixture
def api() -> Iterator[FakeMessagesAPI]:
    with FakeMessagesAPI(reply=lambda body: "fine") as fake:
        yield fake
