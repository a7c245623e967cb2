"""What a suite may call: this machine, and nothing else unless it is told to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.testing import FakeSlackAPI
from tests.services import flows
from tests.slack.app import connector
from tests.testing.suite.suites import run_one, told

POST = {
    "type": "slack-send-message",
    "name": "post",
    "connector": "team",
    "target": '"C1"',
    "text": '"hi"',
}
CALL = {"type": "rest", "name": "call", "connector": "shop", "method": "DELETE", "path": "/x"}
SLACK, SHOP = "https://slack.com/api/", "https://shop.example/v1"


def outside(*chain: dict[str, Any], slack: str = SLACK) -> dict[str, Any]:
    document = flows(main=list(chain))
    shop = {"name": "shop", "type": "http-client", "settings": {"baseURL": SHOP}}
    document["connectors"] = [connector(slack), shop]
    return document


@pytest.mark.parametrize(("block", "url"), [(POST, SLACK), (CALL, SHOP)])
async def test_a_call_that_would_leave_the_machine_fails_the_case(
    tmp_path: Path, block: dict[str, Any], url: str
) -> None:
    """Also where the flow goes on without it."""
    recovering = {
        "type": "handle-errors",
        "name": "try",
        "process": [block],
        "error": [{"type": "set-payload", "value": '"never mind"'}],
    }
    for chain in (block, recovering):
        result = await run_one(tmp_path, outside(chain), {"expect": {}})
        assert "failed" == result.status
        assert f"would call {url}" in told(result)
        assert "`mocks`" in told(result)


async def test_what_is_mocked_or_on_this_machine_is_called(tmp_path: Path) -> None:
    mocks = {"main.call": {"default": {"body": {"deleted": True}}}}
    with FakeSlackAPI() as slack:
        document = outside(POST, CALL, slack=slack.base_url)
        result = await run_one(tmp_path, document, {"mocks": mocks, "expect": {}})
        assert "passed" == result.status, told(result)
        assert ["hi"] == [post.text for post in slack.posts]
