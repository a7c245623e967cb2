"""Files: those that come with a message, and those that a model produces."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from flowrt.agent import media
from flowrt.clock import SystemClock
from flowrt.memory.transcript import Thread
from flowrt.observe.trace import Trace
from flowrt.service import Service
from flowrt.testing import FakeMessagesAPI, FakeReply
from flowrt.testing.replies import Gate
from tests.services import agent, load, say

PNG = base64.b64encode(b"\x89PNG picture").decode()
PDF = base64.b64encode(b"%PDF-1.7").decode()
CAT = {"mimeType": "image/png", "data": PNG, "name": "cat.png"}
BILL = {"mimeType": "application/pdf", "data": PDF, "name": "bill.pdf"}
CALL = FakeReply(tool_calls=[{"name": "echo", "input": {"x": 1}}])
DRAWN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}


def seeing(api: FakeMessagesAPI, **settings: Any) -> dict[str, Any]:
    return agent(api.base_url, attachments="has(body.files) ? body.files : null", **settings)


def show(*files: Any) -> dict[str, Any]:
    return say("What is it?") | {"files": list(files)}


async def stored(service: Service) -> list[dict[str, Any]]:
    transcript = await Thread(service.storage.space("user"), "t").load()
    return [entry.message for entry in transcript.entries]


def kinds(message: dict[str, Any]) -> list[str]:
    return [block["type"] for block in message["content"]]


def bare(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in block.items() if key != "cache_control"}
        for block in message["content"]
    ]


async def test_files_stand_in_front_of_the_text_under_their_names(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add("A cat.")
    async with load(tmp_path, seeing(api)) as service:
        await service.invoke("chat", show(CAT, BILL))
    assert [
        {"type": "text", "text": "cat.png:"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
            "title": "bill.pdf",
        },
        {"type": "text", "text": "What is it?"},
    ] == bare(api.bodies[0]["messages"][0])


async def test_files_are_sent_once_and_then_named(api: FakeMessagesAPI, tmp_path: Path) -> None:
    api.add(CALL, "A cat.", "As I said.")
    async with load(tmp_path, seeing(api)) as service:
        await service.invoke("chat", show(CAT))
        await service.invoke("chat", say("Sure?"))
        kept = (await stored(service))[0]
    assert "image" in kinds(api.bodies[0]["messages"][0])
    for body in api.bodies[1:]:
        assert ["text", "text"] == kinds(body["messages"][0])
    assert [
        "[shown with this message and not kept: cat.png (image/png, 12 bytes)]",
        "What is it?",
    ] == [block["text"] for block in kept["content"]]


async def test_kept_files_are_part_of_the_conversation(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(CALL, "A cat.", "Yes.")
    async with load(tmp_path, seeing(api, keepAttachments=True)) as service:
        await service.invoke("chat", show(CAT))
        await service.invoke("chat", say("Sure?"))
        assert "image" in kinds((await stored(service))[0])
    assert all("image" in kinds(body["messages"][0]) for body in api.bodies)


async def test_a_run_that_is_stopped_before_an_answer_stores_no_files(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(FakeReply(text="I will not.", stop_reason="refusal"))
    async with load(tmp_path, seeing(api)) as service:
        await service.invoke("chat", show(CAT))
        assert PNG not in json.dumps(await stored(service))


async def test_a_message_without_files_is_as_ever(api: FakeMessagesAPI, tmp_path: Path) -> None:
    api.add("Hello.", "Hello.")
    async with load(tmp_path, seeing(api)) as service:
        await service.invoke("chat", say("Hi."))
        await service.invoke("chat", show())
    assert ["text"] == kinds(api.bodies[0]["messages"][0])
    assert [["text"]] * 3 == [kinds(message) for message in api.bodies[1]["messages"]]


@pytest.mark.parametrize(
    ("given", "media_type"),
    [
        ({"data": f"data:image/png;base64,{PNG}"}, "image/png"),
        ({"data": f"data:image/png;name=a.png;base64,{PNG}"}, "image/png"),
        ({"data": f"data:;base64,{PNG}", "mimeType": "image/webp"}, "image/webp"),
        ({"data": PNG[:8] + "\r\n" + PNG[8:], "mimeType": "IMAGE/GIF"}, "image/gif"),
        ({"data": PNG, "mimeType": "image/jpg; q=1", "name": None, "size": 12}, "image/jpeg"),
    ],
)
async def test_data_may_be_written_in_several_ways(
    api: FakeMessagesAPI, tmp_path: Path, given: dict[str, Any], media_type: str
) -> None:
    api.add("A cat.")
    async with load(tmp_path, seeing(api)) as service:
        await service.invoke("chat", show(given))
    source = api.bodies[0]["messages"][0]["content"][0]["source"]
    assert {"type": "base64", "media_type": media_type, "data": PNG} == source


async def test_texts_go_as_documents(api: FakeMessagesAPI, tmp_path: Path) -> None:
    api.add("Two rows.")
    data = base64.b64encode("a,b\n1,2 ü".encode()).decode()
    async with load(tmp_path, seeing(api)) as service:
        await service.invoke("chat", show({"mimeType": "text/csv", "data": data, "name": "t.csv"}))
    source = {"type": "text", "media_type": "text/plain", "data": "a,b\n1,2 ü"}
    assert {"type": "document", "source": source, "title": "t.csv"} == bare(
        api.bodies[0]["messages"][0]
    )[0]


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ("text", "attachments: expected a list of {mimeType, data, name}, got a text"),
        ([CAT, "x"], "attachments[1]: expected {mimeType, data, name}, got a text"),
        ([CAT, {"mimeType": "image/png"}], "attachments[1].data: expected base64 or a data: URL"),
        ([CAT | {"data": ""}], "attachments[0].data: expected base64"),
        ([CAT | {"data": "%%%"}], "attachments[0].data: this is not base64"),
        ([CAT | {"data": PNG[:-1]}], "attachments[0].data: this is not base64"),
        ([CAT | {"data": "data:image/png,abc"}], "attachments[0].data: this data: URL is not"),
        ([CAT | {"data": "data:image/png;base64,"}], "attachments[0].data: the file is empty"),
        ([CAT | {"mimeType": "video/mp4"}], "attachments[0].mimeType: 'video/mp4' cannot be shown"),
        ([{"data": PNG}], "attachments[0].mimeType: '' cannot be shown"),
        ([CAT | {"mimeType": 5}], "attachments[0].mimeType: 5 cannot be shown"),
        ([CAT | {"name": ["x"]}], "attachments[0].name: expected a text, got a list"),
        ([CAT | {"mimeType": "text/plain"}], "attachments[0]: the text is not UTF-8"),
        ([CAT] * 101, "attachments: 101 files are too many; at most 100"),
    ],
)
async def test_a_file_that_no_model_can_be_shown_is_an_error_that_names_it(
    api: FakeMessagesAPI, tmp_path: Path, files: Any, text: str
) -> None:
    async with load(tmp_path, seeing(api)) as service:
        result = await service.invoke("chat", say("See.") | {"files": files})
    assert text in str(result.error)
    assert [] == api.requests


async def test_more_than_a_request_can_hold_is_an_error_that_names_the_first_over_it(
    api: FakeMessagesAPI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media, "MAX_BYTES", 30)
    async with load(tmp_path, seeing(api)) as service:
        several = await service.invoke("chat", show(CAT, CAT, CAT))
        huge = await service.invoke("chat", show(CAT | {"data": PNG * 20}))
    assert "attachments[2]: with this one, the files are over" in str(several.error)
    assert "attachments[0].data: the file is over" in str(huge.error)


async def test_a_large_picture_is_no_large_prompt(api: FakeMessagesAPI, tmp_path: Path) -> None:
    """FB-27: three megabytes of base64 were taken for a million tokens."""
    api.add("Hello.", "A cat.")
    large = base64.b64encode(bytes(3_000_000)).decode()
    document = seeing(api, contextMaxTokens=20_000, keepAttachments=True)
    async with load(tmp_path, document) as service:
        await service.invoke("chat", say("Hi."))
        await service.invoke("chat", show(CAT | {"data": large}))
        assert 4 == len(await stored(service))
    assert 3 == len(api.bodies[1]["messages"])


async def test_a_long_document_that_is_gone_does_not_count_for_what_follows(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    usage = {"inputTokens": 19_000, "outputTokens": 10}
    api.add("Hello.", FakeReply(text="A bill.", usage=usage), "Yes.")
    async with load(tmp_path, seeing(api, contextMaxTokens=20_000)) as service:
        await service.invoke("chat", say("Hi."))
        await service.invoke("chat", show(BILL))
        await service.invoke("chat", say("Sure? " + "Really? " * 2000))
        assert 6 == len(await stored(service))
    assert 5 == len(api.bodies[2]["messages"])


async def test_what_the_model_produces_is_collected_over_the_run(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    document = {
        "type": "document",
        "title": "notes.txt",
        "source": {"type": "text", "media_type": "text/plain", "data": "hi"},
    }
    first = [DRAWN, {"type": "tool_use", "id": "c1", "name": "echo", "input": {}}]
    api.add(FakeReply(content=first), FakeReply(content=[DRAWN, document]), "Once more.")
    async with load(tmp_path, seeing(api, responseMedia="drawn")) as service:
        result = await service.invoke("chat", say("Draw."), {"drawn": "old", "mine": 1})
        again = await service.invoke("chat", say("And?"))
        transcript = await stored(service)
    assert result.message is not None
    picture = {"mimeType": "image/png", "size": 12, "data": PNG}
    notes = {"name": "notes.txt", "mimeType": "text/plain", "size": 2, "data": "aGk="}
    assert [
        {"name": "image-1.png", **picture},
        {"name": "image-2.png", **picture},
        notes,
    ] == result.message.vars["drawn"]
    assert 1 == result.message.vars["mine"]
    assert again.message is not None
    assert [] == again.message.vars["drawn"]
    # The API takes files from the user alone: the transcript names them.
    assert PNG not in json.dumps(transcript)
    assert "[a file was delivered here: image/png, 12 bytes]" == transcript[1]["content"][0]["text"]


async def test_files_that_nobody_collects_do_not_break_the_conversation(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    api.add(FakeReply(content=[DRAWN]), "Fine.")
    async with load(tmp_path, seeing(api)) as service:
        await service.invoke("chat", say("Draw."))
        result = await service.invoke("chat", say("And?"))
    assert result.message is not None
    assert "Fine." == result.message.body


async def test_a_large_file_in_a_variable_does_not_hide_the_others_from_a_trace(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    large = base64.b64encode(bytes(100_000)).decode()
    source = {**DRAWN["source"], "data": large}  # type: ignore[dict-item]
    api.add(FakeReply(content=[{"type": "image", "source": source}]))
    lines: list[str] = []
    async with load(tmp_path, seeing(api, responseMedia="drawn")) as service:
        await service.invoke(
            "chat", say("Draw."), {"mine": 1}, trace=Trace(lines.append, SystemClock())
        )
    last = json.loads(lines[-1])
    assert {"mine": 1} == last["vars"]
    assert last["truncated"]


async def test_files_of_a_message_that_joins_a_live_run_are_named_to_the_model(
    api: FakeMessagesAPI, tmp_path: Path
) -> None:
    gate = Gate()
    api.add(FakeReply(text="Wait.", hold=gate), "Both.")
    async with load(tmp_path, seeing(api, threadPolicy="merge")) as service:
        first = asyncio.create_task(service.invoke("chat", say("Hi.")))
        await gate.reached()
        await service.invoke("chat", show(CAT))
        gate.open()
        await first
    told = api.bodies[1]["messages"][-1]["content"][0]["text"]
    assert (
        "What is it?\n"
        "[came with this message and cannot be shown now: cat.png (image/png, 12 bytes)]"
    ) == told
