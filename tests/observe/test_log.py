"""Log lines: on standard error, as JSON where nobody looks, without secrets."""

from __future__ import annotations

import json

import pytest

from flowrt.observe.log import get_logger
from flowrt.observe.masking import add_secrets


def test_a_line_is_json_with_its_logger_level_and_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    get_logger("here").warning("something happened", figure=3)
    out, err = capsys.readouterr()
    line = json.loads(err)
    assert "" == out
    assert ("something happened", "here", "warning", 3) == (
        line["event"],
        line["logger"],
        line["level"],
        line["figure"],
    )


def test_the_environment_chooses_the_level(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOG_LEVEL", "error")
    get_logger("here").warning("quiet")
    assert "" == capsys.readouterr().err


def test_secrets_do_not_reach_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    add_secrets(["s3cret-value"])
    get_logger("here").error("failed with s3cret-value", detail={"url": "http://u:pass@h/"})
    err = capsys.readouterr().err
    assert "s3cret-value" not in err
    assert ":pass@" not in err
