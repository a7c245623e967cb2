"""`logger`, through the `log` blocks that name it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError, ConnectorError
from tests.services import flows, load
from tests.storage.hands import HandClock


def log(**settings: Any) -> dict[str, Any]:
    return {"type": "log", "logger": "audit", "message": "body.text", **settings}


def document(*chain: dict[str, Any], **settings: Any) -> dict[str, Any]:
    connector = {"name": "audit", "type": "logger", "settings": settings}
    return flows(main=list(chain)) | {"connectors": [connector]}


async def lines(folder: Path, text: str, *chain: dict[str, Any], **settings: Any) -> list[str]:
    entry = document(*chain, **{"output": "audit.log", **settings})
    async with load(folder, entry, clock=HandClock()) as service:
        result = await service.invoke("main", {"text": text})
        assert result.error is None
    return (folder / "audit.log").read_text("utf-8").splitlines()


async def test_a_line_of_text(tmp_path: Path) -> None:
    (line,) = await lines(tmp_path, "paid", log(full=True, level="warn"), addSource=True)
    assert line.startswith("2026-01-01T00:00:00.000Z WARN  paid event_id=")
    assert line.endswith(' body={"text": "paid"} vars={} source=main.log')


async def test_a_line_of_json(tmp_path: Path) -> None:
    (line,) = await lines(tmp_path, "grün\nzwei", log(), format="json")
    record = json.loads(line)
    assert ("grün\nzwei", "info") == (record["event"], record["level"])
    assert ["timestamp", "level", "event", "event_id"] == list(record)


async def test_text_cannot_make_lines_of_its_own(tmp_path: Path) -> None:
    (line,) = await lines(tmp_path, "a\n2026-01-01 ERROR forged\x1b[2J", log())
    assert r'"a\n2026-01-01 ERROR forged\u001b[2J" event_id=' in line


async def test_lines_below_the_level_are_left_out(tmp_path: Path) -> None:
    chain = [log(level=level) for level in ("debug", "info", "warn", "error")]
    found = await lines(tmp_path, "x", *chain, level="warn")
    assert ["WARN", "ERROR"] == [line.split()[1] for line in found]


async def test_secrets_are_masked(tmp_path: Path) -> None:
    (line,) = await lines(tmp_path, "Authorization: Bearer abcdefghijklmnop", log(full=True))
    assert "abcdefghijklmnop" not in line


async def test_a_file_is_appended_to_and_for_its_owner_only(tmp_path: Path) -> None:
    await lines(tmp_path, "one", log())
    assert 2 == len(await lines(tmp_path, "two", log()))
    assert 0o600 == stat.S_IMODE((tmp_path / "audit.log").stat().st_mode)


@pytest.mark.parametrize("output", ["stdout", "stderr"])
async def test_the_standard_streams(
    tmp_path: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with load(tmp_path, document(log(), output=output)) as service:
        await service.invoke("main", {"text": "here"})
    assert "INFO  here" in getattr(capsys.readouterr(), output.removeprefix("std"))


async def test_a_file_that_cannot_be_opened_is_told_at_the_start(tmp_path: Path) -> None:
    service = load(tmp_path, document(log(), output="nowhere/audit.log"))
    with pytest.raises(ConnectorError, match=r"connector 'audit': the file .* cannot be written"):
        await service.start()


@pytest.mark.parametrize("name", ["nope", "files"])
def test_the_connector_must_be_a_logger(tmp_path: Path, name: str) -> None:
    entry = document(log(logger=name))
    entry["connectors"].append({"name": "files", "type": "file", "settings": {"root": "."}})
    with pytest.raises(ConfigError, match=f'connector "{name}" is not'):
        load(tmp_path, entry)
