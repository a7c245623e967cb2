"""Bare scalars."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowrt.config.scalars import NotJson, read_scalar


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("-0", 0), ("0.5", 0.5), ("-.5", -0.5), ("1e3", 1000.0), ("0e0", 0.0), ("0o7", 7)],
)
def test_a_number_reads_as_a_number(text: str, expected: Any) -> None:
    assert (expected, type(expected)) == (read_scalar(text), type(read_scalar(text)))


@pytest.mark.parametrize(
    "text",
    ["00", "01", "-01", "01.5", "0b1", "0o8", "0xg", "1e", "1.2.3", ".", "-", "+", "--1", "1_0",
     "1,0", "١", "nULL", "tRUE", "Infinity", "NaN", ".infx", "12 "],
)  # fmt: skip
def test_what_only_looks_like_something_else_is_text(text: str) -> None:
    assert text == read_scalar(text)


@pytest.mark.parametrize("text", [".inf", "+.INF", "-.Inf", ".NaN", "-1e400", "1" * 5000])
def test_what_json_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        read_scalar(text)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_as_python_prints_it_comes_back(number: float) -> None:
    assert number == read_scalar(repr(number))
