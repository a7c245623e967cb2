"""What may be stored, and that it comes back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowrt.storage.encoding import (
    DEEPEST,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    lifetime,
)

# Hypothesis leaves surrogates out of text() unless it is told not to.
TEXT = st.text(st.characters(codec=None), max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def joined(value: Any) -> Any:
    """`value` with surrogates that form a pair joined to their character, as JSON does."""
    return json.loads(json.dumps(value))


@given(JSON)
def test_json_comes_back_equal(value: Any) -> None:
    assert joined(value) == decode_value(*encode_value(value))


@given(JSON)
def test_encoded_json_is_plain_ascii(value: Any) -> None:
    _, data = encode_value(value)
    assert data.isascii()
    assert b"\0" not in data


@given(st.binary())
def test_bytes_come_back_equal(value: bytes) -> None:
    assert value == decode_value(*encode_value(value))


@given(TEXT)
def test_keys_come_back_equal(key: str) -> None:
    assert key == decode_key(encode_key(key))


@given(TEXT, TEXT)
def test_encoded_keys_order_as_keys_do(one: str, other: str) -> None:
    assert (one < other) == (encode_key(one) < encode_key(other))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), "the value is of type datetime"),
        ({"a": {"b": [0, Decimal(1)]}}, r"a\.b\[1\] is of type Decimal"),
        ({"a": {"b c": {1: 2}}}, r"a\.b c has the key 1; keys must be strings"),
        ([[float("nan")]], r"\[0\]\[0\] is nan"),
        ({"a": -float("inf")}, "a is -inf"),
        ({"a": [(1, 2)]}, r"a\[0\] is of type tuple"),
        ({"a": b"bytes"}, "a is of type bytes"),
        ({None: 1}, "the value has the key None"),
        ({True: 1}, "the value has the key True"),
    ],
)
def test_a_refusal_says_where_and_what(value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        encode_value(value)


def test_a_value_is_taken_to_a_fixed_depth_and_no_deeper() -> None:
    deep: Any = 1
    for _ in range(DEEPEST):
        deep = [deep]
    assert deep == decode_value(*encode_value(deep))
    with pytest.raises(ValueError, match=f"deeper than {DEEPEST} levels"):
        encode_value([deep])


def test_a_value_that_holds_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(ValueError, match="deeper"):
        encode_value(ring)


@pytest.mark.parametrize("ttl", [0, -0.0, -5, float("nan"), -float("inf")])
def test_a_lifetime_that_is_not_above_zero_is_refused(ttl: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        lifetime(ttl)


def test_no_lifetime_is_for_good_and_a_huge_one_is_a_century() -> None:
    assert lifetime(None) is None
    assert 3_153_600_000.0 == lifetime(float("inf"))
