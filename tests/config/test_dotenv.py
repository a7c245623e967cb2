"""Env files."""

from __future__ import annotations

import pytest

from flowrt.config.dotenv import parse_dotenv
from flowrt.errors import Position


def values(text: str | bytes) -> dict[str, str]:
    found, faults = parse_dotenv(text, ".env")
    assert faults == []
    return found


def test_lines_are_keys_and_values_and_comments_are_passed_over() -> None:
    text = "# a comment\n\nA=1\n  export B = two words  \nexport\tC=3\nA=4\n   # B=5\n"
    assert values(text) == {"A": "4", "B": "two words", "C": "3"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('"x y"', "x y"),
        ("'x y'", "x y"),
        ("\"'q'\"", "'q'"),
        ('"q', '"q'),
        ('"', '"'),
        ('""', ""),
        ("", ""),
        ("' x '", " x "),
        ("a=b=c", "a=b=c"),
        ("a # b", "a # b"),
        ("a\\nb", "a\\nb"),
        ("${OTHER} $HOME", "${OTHER} $HOME"),
        ("a: b", "a: b"),
        ("#x", "#x"),
    ],
)
def test_a_value_is_taken_as_it_stands_but_for_one_pair_of_quotes(
    written: str, expected: str
) -> None:
    assert {"A": expected} == values(f"A={written}\n")


def test_files_from_windows_are_accepted() -> None:
    assert values("\ufeffA=ü\r\nB=2\r\n".encode()) == {"A": "ü", "B": "2"}


def test_a_line_without_an_equals_sign_is_a_fault_that_does_not_show_the_line() -> None:
    found, faults = parse_dotenv("A=1\nhunter2\n=x\nB C=1\n", ".env")
    assert found == {"A": "1"}
    assert [Position(".env", line, 1) for line in (2, 3, 4)] == [fault.position for fault in faults]
    assert "hunter2" not in str(faults[0])


def test_utf_16_is_refused_by_name() -> None:
    _, (fault,) = parse_dotenv("A=1".encode("utf-16"), ".env")
    assert "UTF-16" in fault.found


def test_a_nul_in_a_value_is_replaced_where_it_enters() -> None:
    assert values("A=x\0y\n") == {"A": "x\ufffdy"}
