"""`file-read` and `file-write` through a flow."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError, ConnectorError
from flowrt.service import Result
from tests.blocks.chains import RAW
from tests.services import flows, load


def document(*chain: dict[str, Any], **settings: Any) -> dict[str, Any]:
    connector = {"name": "files", "type": "file", "settings": {"root": "data", **settings}}
    return flows(main=list(chain)) | {"connectors": [connector]}


def read(**settings: Any) -> dict[str, Any]:
    return {"type": "file-read", "connector": "files", "path": "body.path", **settings}


def write(**settings: Any) -> dict[str, Any]:
    return {"type": "file-write", "connector": "files", "path": '"out.txt"', **settings}


async def run(folder: Path, *chain: dict[str, Any], data: Any = None, **settings: Any) -> Result:
    (folder / "data").mkdir(exist_ok=True)
    async with load(folder, document(*chain, **settings)) as service:
        return await service.invoke("main", data)


async def read_file(folder: Path, path: str, content: bytes, **settings: Any) -> Result:
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / path).write_bytes(content)
    return await run(folder, read(**settings), data={"path": path})


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.csv", "text/csv"),
        ("a.HTML", "text/html"),
        ("notes.md", "text/markdown"),
        ("a.yaml", "application/yaml"),
        ("README", "application/octet-stream"),
    ],
)
async def test_a_file_becomes_raw_content_of_its_type(tmp_path: Path, path: str, kind: str) -> None:
    message = (await read_file(tmp_path, path, "grün".encode())).message
    assert message is not None
    assert ({"contentType": kind, "rawData": "grün"}, True) == (message.body, message.raw)


async def test_the_type_may_be_said(tmp_path: Path) -> None:
    message = (await read_file(tmp_path, "a.csv", b"x", contentType="text/plain")).message
    assert message is not None
    assert {"contentType": "text/plain", "rawData": "x"} == message.body


async def test_a_file_may_become_a_variable(tmp_path: Path) -> None:
    message = (await read_file(tmp_path, "a", b"\xef\xbb\xbfx\0", resultVar="text")).message
    assert message is not None
    assert ({"path": "a"}, {"text": "x\ufffd"}, False) == (
        message.body, dict(message.vars), message.raw,
    )  # fmt: skip


async def test_bytes_need_base64(tmp_path: Path) -> None:
    result = await read_file(tmp_path, "a.png", b"\x89\xff")
    assert "file-read: 'a.png' is no UTF-8 text; `encoding: base64`" in str(result.error)
    message = (await read_file(tmp_path, "a.png", b"\x89\xff", encoding="base64")).message
    assert message is not None
    assert {"contentType": "image/png", "rawData": "if8="} == message.body


@pytest.mark.parametrize(
    ("settings", "data", "content"),
    [
        ({}, "text", b"text"),
        ({}, {"a": "ä"}, '{"a": "ä"}'.encode()),
        ({"content": "body.a"}, {"a": 7}, b"7"),
        ({"content": '"if8="', "encoding": "base64"}, None, b"\x89\xff"),
    ],
)
async def test_a_text_is_written_as_it_is_and_everything_else_as_json(
    tmp_path: Path, settings: dict[str, Any], data: Any, content: bytes
) -> None:
    result = await run(tmp_path, write(**settings), data=data)
    assert result.message is not None, result.error
    assert {"path": "out.txt", "bytes": len(content)} == result.message.body
    made = tmp_path / "data/out.txt"
    assert (content, 0o600) == (made.read_bytes(), stat.S_IMODE(made.stat().st_mode))


async def test_raw_content_is_written_as_its_text(tmp_path: Path) -> None:
    result = await run(tmp_path, RAW, write(resultVar="receipt"))
    assert result.message is not None
    assert b"text" == (tmp_path / "data/out.txt").read_bytes()
    assert ({"path": "out.txt", "bytes": 4}, True) == (
        result.message.vars["receipt"],
        result.message.raw,
    )


async def test_what_was_read_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/in.bin").write_bytes(bytes(range(256)) * 10_000)
    chain = (read(encoding="base64"), write(encoding="base64"))
    result = await run(tmp_path, *chain, data={"path": "in.bin"})
    assert result.error is None
    assert (tmp_path / "data/in.bin").read_bytes() == (tmp_path / "data/out.txt").read_bytes()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("../service.yaml", "the path '../service.yaml' has a `..`"),
        ("/etc/passwd", "must be a path below the root"),
        ("link", "is a link out of the root"),
        ("missing.txt", "cannot be read: it is not there"),
        ("", "file-read path is missing"),
        (None, "file-read path is missing"),
        ("x" * 5000, "cannot be read: File name too long"),
    ],
)
async def test_a_path_that_leads_nowhere_fails(tmp_path: Path, path: str, told: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/link").symlink_to(tmp_path / "service.yaml")
    text = str((await run(tmp_path, read(), data={"path": path})).error)
    assert told in text
    assert str(tmp_path / "data") not in text


async def test_folders_are_made_only_when_asked_for(tmp_path: Path) -> None:
    block = write(path='"a/b/c.txt"', content='"x"')
    assert "`createDirs: true` makes folders" in str((await run(tmp_path, block)).error)
    assert [] == os.listdir(tmp_path / "data")
    assert (await run(tmp_path, block, createDirs=True)).error is None
    assert "x" == (tmp_path / "data/a/b/c.txt").read_text()


@pytest.mark.parametrize("content", ['"no base64!"', "7", "{}"])
async def test_bytes_that_are_no_base64_are_not_written(tmp_path: Path, content: str) -> None:
    result = await run(tmp_path, write(content=content, encoding="base64"))
    assert "file-write: encoding base64 needs a text in base64" in str(result.error)
    assert [] == os.listdir(tmp_path / "data")


async def test_the_root_must_exist_when_the_service_starts(tmp_path: Path) -> None:
    service = load(tmp_path, document())
    with pytest.raises(ConnectorError, match=r"connector 'files': the root '.*/data' is not a"):
        await service.start()


async def test_a_relative_root_is_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert (await read_file(tmp_path, "a", b"x")).error is None


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (read(connector="nope"), 'connector "nope" is not configured'),
        (read(encoding="hex"), "encoding"),
        (read(contentType="text/plain", resultVar="x"), "contentType is of a body"),
        (write(contnt="1"), "contnt"),
        (write(path="body."), "path"),
    ],
)
def test_what_cannot_work_is_a_load_error(tmp_path: Path, block: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, document(block))
    (fault,) = caught.value.faults
    assert fault.position is not None
    assert told in str(fault)
