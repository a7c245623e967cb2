"""`sse-event`: frames to a caller's open stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.engine import registry
from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.engine.streams import StreamClosed
from flowrt.errors import ConfigError
from flowrt.message import Outcome
from flowrt.service import Result
from tests.blocks.chains import payload, run
from tests.services import flows, load

FRAMES: list[tuple[str, ...]] = []
AFTER = payload('"after"')


class Server(Connector[Settings]):
    """Holds one stream open: `1`."""

    Settings = Settings

    async def send_event(self, stream: str, event: str, data: str) -> None:
        if stream != "1":
            raise StreamClosed(f"stream {stream!r} is closed")
        FRAMES.append((event, data))

    async def close_stream(self, stream: str) -> None:
        if stream != "1":
            raise StreamClosed(f"stream {stream!r} is closed")
        FRAMES.append(("closed",))


@pytest.fixture(autouse=True)
def server() -> None:
    FRAMES.clear()
    registry.connectors.add("test-streams", Server)


async def send(folder: Path, address: Any = "api:1", body: Any = None, **settings: Any) -> Result:
    document = flows(main=[{"type": "sse-event", **settings}, AFTER])
    document["connectors"] = [{"name": "api", "type": "test-streams"}]
    async with load(folder, document) as service:
        return await service.invoke("main", body, {"sseStream": address})


@pytest.mark.parametrize(
    ("settings", "frames"),
    [
        ({"event": "tick", "data": '"as it is"'}, [("tick", "as it is")]),
        ({"data": '{"a": [1, null]}'}, [("", '{"a":[1,null]}')]),
        ({"event": "tick"}, [("tick", '{"n":"ä"}')]),
        ({}, []),
        ({"close": True}, [("closed",)]),
        ({"event": "bye", "data": "1", "close": True}, [("bye", "1"), ("closed",)]),
        ({"event": "tick", "data": "1", "stream": '"1"', "connector": "api"}, [("tick", "1")]),
    ],
)
async def test_what_is_written(
    tmp_path: Path, settings: dict[str, Any], frames: list[tuple[str, ...]]
) -> None:
    result = await send(tmp_path, body={"n": "ä"}, **settings)
    assert result.message is not None, result.error
    assert ("after", frames) == (result.message.body, FRAMES)


async def test_the_flow_can_end_with_the_frame(tmp_path: Path) -> None:
    assert Outcome.STOPPED == (await send(tmp_path, event="bye", stop=True)).outcome
    assert 1 == len(FRAMES)


@pytest.mark.parametrize(
    ("settings", "outcome"),
    [
        ({}, Outcome.STOPPED),
        ({"ifClosed": "stop"}, Outcome.STOPPED),
        ({"ifClosed": "ignore"}, Outcome.COMPLETED),
        ({"ifClosed": "ignore", "stop": True}, Outcome.STOPPED),
        ({"ifClosed": "error"}, Outcome.FAILED),
    ],
)
async def test_a_closed_stream_ends_the_flow_or_not(
    tmp_path: Path, settings: dict[str, Any], outcome: Outcome
) -> None:
    # One whose client left, and one of a server that an invoke does not start.
    for stream in ("api:gone", "http:1"):
        assert outcome == (await send(tmp_path, stream, event="tick", **settings)).outcome


@pytest.mark.parametrize("if_closed", ["stop", "ignore", "error"])
@pytest.mark.parametrize("stream", [None, "", " ", "nobody:1", "api:"])
async def test_a_message_without_an_address_always_fails(
    tmp_path: Path, stream: Any, if_closed: str
) -> None:
    result = await send(tmp_path, stream, event="tick", ifClosed=if_closed)
    assert "sse-event stream" in str(result.error)


async def test_a_message_that_never_had_an_address_fails(tmp_path: Path) -> None:
    result = await run(tmp_path, [{"type": "sse-event", "event": "tick"}])
    assert "sse-event stream" in str(result.error)
    assert "sseStream" in str(result.error)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"connector": "nobody"}, 'connector "nobody" is not configured'),
        ({"event": "a\nb"}, "event"),
        ({"ifClosed": "retry"}, "ifClosed"),
        ({"data": "1 +"}, "data"),
    ],
)
def test_what_cannot_work_does_not_load(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        load(tmp_path, flows(main=[{"type": "sse-event", **settings}]))
    (fault,) = caught.value.faults
    assert fault.position is not None
