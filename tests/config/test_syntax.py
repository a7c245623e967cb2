"""Syntax errors in the words of whoever wrote the file."""

from __future__ import annotations

import pytest
import yaml

import flowrt.config.yaml as reader
from flowrt.config.yaml import read_yaml


@pytest.fixture(params=["C", "Python"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = yaml.CSafeLoader if request.param == "C" else yaml.SafeLoader
    monkeypatch.setattr(reader, "_Parser", chosen)


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("a:\n\tb: 1\n", (2, 1), "a tab is used for indentation"),
        ("a:\n  b: 1\n\tc: 2\n", (3, 1), "a tab is used for indentation"),
        ("flows:\n\t- name: x\n", (2, 1), "a tab is used for indentation"),
        ("a: b: c\n", (1, 5), "a ':' stands where no key can be"),
        ("prompt: hello: you\n", (1, 14), "a ':' stands where no key can be"),
        ("a: 1\nfoo\nb: 2\n", (2, 1), "neither a `key: value` nor part of a text"),
        ("a: 'abc\nb: 2\n", (1, 4), "opened here and never closed"),
        ('a: "abc\nb: 2\n', (1, 4), "opened here and never closed"),
        ('a: "x" y\nb: 2\n', (1, 8), "does not belong to the keys above it"),
        ("a: [1, 2\nb: 3\n", (1, 4), "opened here and its inside does not parse"),
        ("a: {x: 1\nb: 3\n", (1, 4), "opened here and its inside does not parse"),
        ("a: @x\n", (1, 4), "a character that YAML keeps for itself"),
        ("a: `x`\n", (1, 4), "a character that YAML keeps for itself"),
        ("a: !AI!3B\n", (1, 4), "starts with '!'"),
        ("a: *.txt\n", (1, 5), "starts with '*' or '&'"),
        ("a: >x\n", (1, 5), "starts badly"),
        ("a:\n    b: 1\n  c: 2\n", (3, 3), "does not belong to the keys above it"),
        ("a:\n  - x\n  b: y\n", (3, 3), "does not belong to the list above it"),
        ("%YAML 3.0\n---\na: 1\n", (1, 1), "another version"),
    ],
)
def test_a_syntax_error_says_where_and_what_in_plain_words(
    text: str, place: tuple[int, int], says: str
) -> None:
    document, (fault,) = read_yaml(text, "f.yaml")
    assert document is None
    assert fault.position is not None
    assert place == fault.position[1:]
    assert says in fault.found


@pytest.mark.parametrize("text", ['a: "\\d"\n', 'a: "C:\\Users"\n'])
def test_a_lone_backslash_in_double_quotes_is_explained(text: str) -> None:
    _, (fault,) = read_yaml(text, "f.yaml")
    assert fault.found == "an unknown escape in a double-quoted text"


def test_a_syntax_error_has_the_path_of_what_it_interrupts() -> None:
    text = "flows:\n  - name: chat\n    process:\n      - type: log\n        message: a: b\n"
    _, (fault,) = read_yaml(text, "f.yaml")
    assert fault.path == "flows.chat.process[0].message"


def test_faults_before_a_syntax_error_are_reported_with_it() -> None:
    _, found = read_yaml("a: 1\na: 2\nb: [\n", "f.yaml")
    assert len(found) == 2


@pytest.mark.parametrize("text", ["a: [${X}]\n", "a: {b: ${X}}\n"])
def test_an_unquoted_placeholder_inside_brackets_is_said_to_be_quoted(text: str) -> None:
    _, (fault,) = read_yaml(text, "f.yaml")
    assert fault.way_out == "quote the '${…}': inside brackets YAML reads its '{' as a mapping"
