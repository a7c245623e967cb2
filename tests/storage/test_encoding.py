"""What may be stored, and how it becomes bytes."""

from __future__ import annotations

from collections import OrderedDict
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowrt.errors import StoreError
from flowrt.storage.encoding import (
    DEEPEST,
    JSON,
    LOG,
    check_kind,
    decode_key,
    decode_value,
    encode_entries,
    encode_json,
    encode_key,
    encode_value,
    lifetime,
)

# Surrogates that form a pair are one character to JSON; alone they come back.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
FINITE = SCALARS.filter(lambda value: value not in (float("inf"), float("-inf")))
VALUES = st.recursive(
    FINITE, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20
)


@given(VALUES)
def test_every_json_value_comes_back_equal(value: Any) -> None:
    assert value == decode_value(*encode_value(value))


@given(st.binary())
def test_bytes_come_back_as_bytes(value: bytes) -> None:
    assert value == decode_value(*encode_value(value))
    assert value == decode_value(*encode_value(memoryview(value)))


@given(st.lists(st.text(st.characters())))
def test_encoded_keys_sort_as_the_keys_do(keys: list[str]) -> None:
    assert sorted(keys) == [decode_key(data) for data in sorted(map(encode_key, keys))]


def test_json_is_ascii_so_that_no_store_stumbles_over_text() -> None:
    assert b'{"\\u0000":"\\ud83d \\u00e9"}' == encode_json({"\x00": "\ud83d é"})


class Color(IntEnum):
    RED = 1


@pytest.mark.parametrize("value", [OrderedDict(a=1), Color.RED])
def test_a_subclass_that_is_equal_to_its_json_is_stored(value: Any) -> None:
    assert value == decode_value(*encode_value(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({1: 2}, "the value has the key 1; keys must be strings"),
        ({"a": [{True: 2}]}, r"a\[0\] has the key True"),
        ({"a": ()}, "a is of type tuple"),
        ({"a": {"b": float("-inf")}}, r"a\.b is -inf"),
        ({"a": b""}, "a is of type bytes"),
        (range(3), "the value is of type range"),
    ],
)
def test_what_would_not_come_back_equal_is_refused_by_its_path(value: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        encode_json(value)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_the_deepest_value_is_a_rule_and_not_the_size_of_a_stack() -> None:
    assert nested(DEEPEST) == decode_value(JSON, encode_json(nested(DEEPEST)))
    for levels in (DEEPEST + 1, 10_000):
        with pytest.raises(ValueError, match="deeper than 500 levels"):
            encode_json(nested(levels))


def test_an_integer_that_json_could_not_read_again_is_refused() -> None:
    with pytest.raises(ValueError, match="4300 digits"):
        encode_json({"n": 10**5000})


@pytest.mark.parametrize("entry", ["text", 5, None])
def test_an_entry_that_is_not_bytes_is_refused(entry: Any) -> None:
    with pytest.raises(TypeError):
        encode_entries([b"fine", entry])


def test_a_lifetime_is_above_0_and_at_most_100_years() -> None:
    assert lifetime(None) is None
    assert 0.5 == lifetime(0.5)
    assert 100 * 365 * 86400 == lifetime(float("inf"))
    for ttl in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="above 0"):
            lifetime(ttl)


def test_a_kind_that_was_not_meant_is_named() -> None:
    check_kind("k", LOG, log=True)
    with pytest.raises(StoreError, match="'k' holds a log, not a value"):
        check_kind("k", LOG, log=False)
    with pytest.raises(StoreError, match="'k' holds a value, not a log"):
        check_kind("k", JSON, log=True)
