"""The strict YAML reader: values, places, and everything it refuses."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import flowrt.config.yaml as reader
from flowrt.config.nodes import Items, Table, Text, plain
from flowrt.config.yaml import DEEPEST, MOST_FAULTS, load_yaml, read_yaml
from flowrt.errors import ConfigError, Fault, Position


@pytest.fixture(params=["C", "Python"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with libyaml and with the parser that stands in where it is missing."""
    chosen = yaml.CSafeLoader if request.param == "C" else yaml.SafeLoader
    monkeypatch.setattr(reader, "_Parser", chosen)


def load(text: str | bytes) -> Any:
    return plain(load_yaml(text, "f.yaml"))


def faults(text: str | bytes) -> list[Fault]:
    with pytest.raises(ConfigError) as caught:
        load_yaml(text, "f.yaml")
    return caught.value.faults


def only_fault(text: str | bytes) -> Fault:
    (fault,) = faults(text)
    return fault


def at(line: int, column: int) -> Position:
    return Position("f.yaml", line, column)


# FB-91: Norway


@pytest.mark.parametrize("word", ["no", "No", "NO", "yes", "on", "off", "y", "n", "Y", "N"])
def test_a_word_that_yaml_1_1_reads_as_a_boolean_is_text(word: str) -> None:
    assert {"country": word, word: "push"} == load(f"country: {word}\n{word}: push\n")


@pytest.mark.parametrize("text", ["02142", "00", "-012", "012.5", "1:30", "190:20:30", "1_000"])
def test_what_only_looks_like_a_number_is_text(text: str) -> None:
    assert {"a": text} == load(f"a: {text}\n")


def test_a_date_is_text() -> None:
    assert load("a: 2024-01-02\nb: 2024-01-02 10:00:00\n") == {
        "a": "2024-01-02",
        "b": "2024-01-02 10:00:00",
    }


def test_scalars_read_as_yaml_1_2_says() -> None:
    text = "[1, -7, +3, 0x1F, 0o17, 1.5, .5, 2., 1e3, true, FALSE, null, ~, Null, '1', \"true\"]"
    expected = [1, -7, 3, 31, 15, 1.5, 0.5, 2.0, 1000.0]
    assert [*expected, True, False, None, None, None, "1", "true"] == load(f"a: {text}")["a"]


def test_an_empty_value_is_null_and_an_empty_text_is_text() -> None:
    assert load("a:\nb: ''\nc: \"\"\n") == {"a": None, "b": "", "c": ""}


def test_an_integer_beyond_64_bits_keeps_every_digit() -> None:
    assert load("a: 123456789012345678901234567890") == {"a": 123456789012345678901234567890}


@pytest.mark.parametrize("number", [".inf", "-.inf", ".nan", "1e999", "9" * 5000])
def test_a_number_json_cannot_hold_is_refused(number: str) -> None:
    fault = only_fault(f"a:\n  b: {number}\n")
    assert (at(2, 6), "a.b") == (fault.position, fault.path)
    assert fault.way_out == "quote it to have it as text"


@pytest.mark.parametrize(
    ("key", "kind"), [("8080", "a number"), ("true", "true or false"), ("~", "nothing")]
)
def test_a_key_that_does_not_read_as_text_is_refused_and_said_to_be_quoted(
    key: str, kind: str
) -> None:
    fault = only_fault(f"a:\n  {key}: x\n")
    assert f"f.yaml:2:3 a: the key '{key}' reads as {kind}; keys are text; quote it" == str(fault)


def test_a_key_that_is_a_mapping_is_refused() -> None:
    fault = only_fault("a: {{ body.x }}\n")
    assert (at(1, 5), "a mapping stands as a key") == (fault.position, fault.found)


def test_core_tags_say_what_a_scalar_is() -> None:
    assert load("a: !!str 12\nb: ! 12\nc: !!int '12'\nd: !!float 3\n") == {
        "a": "12",
        "b": "12",
        "c": 12,
        "d": 3,
    }


@pytest.mark.parametrize(
    "value",
    ["!x y", "!!binary aGk=", "!!set {a}", "!!python/object/apply:os.system [id]", "!!int x"],
)
def test_any_other_tag_is_refused_by_name(value: str) -> None:
    fault = only_fault(f"a:\n  - {value}\n")
    assert (at(2, 5), "a[0]") == (fault.position, fault.path)
    assert value.split()[0] in fault.found


# FB-93: the same key twice


def test_a_key_given_twice_is_refused_with_both_lines() -> None:
    text = (
        "flows:\n  - name: chat\n    process:\n      - prompt: a\n        x: 1\n        prompt: b\n"
    )
    fault = only_fault(text)
    assert (at(6, 9), "flows.chat.process[0].prompt") == (fault.position, fault.path)
    assert (fault.found, fault.rule) == ("the key 'prompt' is given twice", "first on line 4")


def test_a_path_names_what_is_named_only_below_the_fault() -> None:
    fault = only_fault("flows:\n  - process: [{a: 1, a: 2}]\n    name: chat\n")
    assert fault.path == "flows.chat.process[0].a"


def test_a_duplicate_behind_a_merge_key_is_refused() -> None:
    fault = only_fault("a: &x {p: 1}\nb:\n  <<: *x\n  q: 3\n  q: 4\n")
    assert (at(5, 3), "b.q") == (fault.position, fault.path)


def test_a_second_merge_key_is_a_duplicate() -> None:
    assert (
        only_fault("a: &x {p: 1}\nb:\n  <<: *x\n  <<: *x\n").found == "the key '<<' is given twice"
    )


def test_a_key_next_to_a_merge_overrides_it_and_the_first_merged_mapping_wins() -> None:
    text = "a: &a {p: 1, q: 1}\nb: &b {q: 2, r: 2}\nc:\n  <<: [*a, *b]\n  r: 3\n"
    assert load(text)["c"] == {"p": 1, "q": 1, "r": 3}


def test_a_quoted_merge_key_is_an_ordinary_key() -> None:
    assert load("a:\n  '<<': 1\n") == {"a": {"<<": 1}}


def test_merging_what_is_no_mapping_is_refused() -> None:
    assert at(2, 7) == only_fault("a:\n  <<: 3\n").position


def test_merged_entries_keep_the_place_where_they_are_written() -> None:
    table = load_yaml("a: &x\n  p: {d: 1}\nb:\n  <<: *x\n", "f.yaml")["b"]
    assert (at(2, 3), at(2, 6)) == (table.key_positions["p"], table.value_positions["p"])
    assert (table.path_of("p"), table["p"].path) == ("b.p", "b.p")


def test_all_faults_of_a_file_are_reported_at_once() -> None:
    found = faults("a: 1\na: 2\nb: .nan\nc: !x 1\n8: 1\n")
    assert [fault.position.line for fault in found if fault.position] == [2, 3, 4, 5]


def test_a_file_of_nothing_but_faults_stops_at_some() -> None:
    assert len(faults("a: 1\n" * 40_000)) == MOST_FAULTS + 1


# FB-94: a 300-byte file that eats the machine

LAUGH = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
)
MERGES = (
    "a: &a {"
    + ",".join(f"k{i}: 1" for i in range(1000))
    + "}\n"
    + "".join(f"b{i}: {{<<: [{','.join(['*a'] * 12)}]}}\n" for i in range(9))
)


@pytest.mark.parametrize(
    ("bomb", "says"),
    [
        (LAUGH, "aliases written out"),
        (MERGES, "aliases written out"),
        ("a: " + "[" * 10_000 + "]" * 10_000, "nested"),
        ("a: " + "{a: " * 10_000, "nested"),
        ("- " * 50_000, "nested"),
        ("? " * 50_000, "nested"),
    ],
)
def test_a_small_file_that_grows_is_refused_at_once(bomb: str, says: str) -> None:
    start = time.process_time()
    fault = only_fault(bomb)
    assert says in fault.found
    assert time.process_time() - start < 2


@pytest.mark.parametrize("text", ["a: &x [*x]\n", "a: &x\n  b: *x\n"])
def test_a_value_that_contains_itself_is_refused(text: str) -> None:
    assert only_fault(text).found == "the alias '*x' stands inside its own anchor"


def test_an_alias_without_an_anchor_is_refused_with_the_way_out() -> None:
    fault = only_fault("a: *txt\n")
    assert (at(1, 4), "the alias '*txt' has no anchor before it") == (fault.position, fault.found)


def test_a_document_may_be_nested_as_deep_as_the_limit() -> None:
    inner = DEEPEST - 1
    assert load("a: " + "[" * inner + "]" * inner)
    assert "nested" in only_fault("a: " + "[" * DEEPEST + "]" * DEEPEST).found


def test_a_file_of_more_than_four_mebibytes_is_refused() -> None:
    assert only_fault(b"a: " + b"x" * (4 << 20)).rule == "at most 4194304 bytes are read"


def test_an_alias_repeats_a_value_with_a_path_of_its_own() -> None:
    document = load_yaml("a: &x {b: [1]}\nc: *x\n", "f.yaml")
    assert document["a"] == document["c"]
    assert (document["a"]["b"].path, document["c"]["b"].path) == ("a.b", "c.b")


# FB-99: the typo that does nothing


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "\ufeff"])
def test_an_empty_file_is_refused(text: str) -> None:
    assert only_fault(text).found == "the file is empty"


def test_a_second_document_is_refused_at_its_dashes() -> None:
    fault = only_fault("a: 1\n---\nb: 2\n")
    assert (at(2, 1), "a second document starts here") == (fault.position, fault.found)


@pytest.mark.parametrize(("text", "kind"), [("- a\n", "a list"), ("hello\n", "a single value")])
def test_a_file_that_is_no_mapping_is_refused(text: str, kind: str) -> None:
    assert f"the file holds {kind}" == only_fault(text).found


def test_a_document_marker_at_the_start_and_the_end_is_fine() -> None:
    assert load("%YAML 1.2\n---\na: 1\n...\n") == {"a": 1}


# FB-102: files from Windows


def test_a_byte_order_mark_and_windows_line_ends_are_accepted() -> None:
    table = load_yaml(b"\xef\xbb\xbfa: 1\r\nb: |\r\n  x\r\n  y\r\n", "f.yaml")
    assert table == {"a": 1, "b": "x\ny\n"}
    assert (at(1, 1), at(2, 1)) == (table.key_positions["a"], table.key_positions["b"])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_refused_by_name(encoding: str) -> None:
    fault = only_fault("a: 1\n".encode(encoding))
    assert "UTF-16" in fault.found
    assert fault.way_out == "save it as UTF-8"


def test_bytes_that_are_not_utf_8_are_refused_with_their_place() -> None:
    fault = only_fault("a: 1\nb: ü".encode() + "ü".encode("latin-1") + b"\n")
    assert (at(2, 5), "the byte 0xfc is not UTF-8") == (fault.position, fault.found)


@pytest.mark.parametrize("character", ["\0", "\x07", "\x7f", "\ufeff", "\ud800"])
def test_a_character_nobody_can_see_is_refused_with_its_place(character: str) -> None:
    assert at(2, 5) == only_fault(f"a: 1\nb: x{character}y\n").position


@pytest.mark.parametrize("escape", ["\\0", "\\x00", "\\ud83d"])
def test_an_escape_for_what_text_cannot_hold_is_refused(escape: str) -> None:
    fault = only_fault(f'a: "x{escape}y"\n')
    assert fault.position is not None
    assert (fault.position.line, fault.path) == (1, "a")


def test_line_separators_of_yaml_1_1_are_ordinary_characters() -> None:
    table = load_yaml('a: x\u2028y\u0085z\nb: "p\u2029q"\nc: 1\n', "f.yaml")
    assert table == {"a": "x\u2028y\u0085z", "b": "p\u2029q", "c": 1}
    assert at(3, 1) == table.key_positions["c"]


# Places


def test_the_place_of_a_key_and_a_value_is_their_first_character() -> None:
    text = "flows:\n  - name: chat\n    'ünï': \"x\"\n    list: [a, {b: 1}]\n"
    document = load_yaml(text, "f.yaml")
    flow = document["flows"][0]
    assert at(2, 5) == flow.position
    assert (at(3, 5), at(3, 12)) == (flow.key_positions["ünï"], flow.value_positions["ünï"])
    assert [at(4, 12), at(4, 15)] == flow["list"].item_positions
    assert at(4, 12) == flow["list"][0].position


def test_a_text_knows_whether_it_was_quoted() -> None:
    document = load_yaml("a: x\nb: 'x'\nc: \"x\"\nd: |\n  x\ne: >-\n  x\n", "f.yaml")
    assert [value.literal for value in document.values()] == [False, True, True, True, True]


def test_top_level_lists_are_known_by_name_and_others_by_number() -> None:
    document = load_yaml(
        "flows:\n  - name: chat\n    process: [{tools: [{name: t}]}]\n  - x: {}\n"
        "connectors: [{name: claude, settings: {}}]\n",
        "f.yaml",
    )
    tool = document["flows"][0]["process"][0]["tools"][0]
    assert tool.path == "flows.chat.process[0].tools[0]"
    assert document["flows"][1]["x"].path == "flows[1].x"
    assert document["connectors"][0]["settings"].path == "connectors.claude.settings"


def test_how_a_number_was_written_is_kept_where_it_would_be_lost() -> None:
    document = load_yaml("a: 1.10\nb: 1.5\nc: 0x1F\nd: true\n", "f.yaml")
    assert document.sources == {"a": "1.10", "c": "0x1F", "d": "true"}


# Anything that is JSON comes back

clean_texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | clean_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(clean_texts, inner, max_size=4),
    max_leaves=20,
)


def dumped(value: Any, *, flow: bool, unicode: bool) -> str:
    class Quoting(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def quote(dumper: Any, text: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')

    Quoting.add_representer(str, quote)
    return yaml.dump(
        value, Dumper=Quoting, default_flow_style=flow, allow_unicode=unicode, width=10**6
    )


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(clean_texts, json_values, min_size=1, max_size=5), st.booleans())
def test_any_json_value_written_as_yaml_comes_back_equal(value: Any, flow: bool) -> None:
    assert value == load(dumped(value, flow=flow, unicode=False))


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("a:-[]{}&*!|>'\"%@`#,? \n\t\\<=0\u2028é"), max_size=40))
def test_any_text_loads_or_is_refused_with_a_place(text: str) -> None:
    document, found = read_yaml(text, "f.yaml")
    assert (document is not None) or found
    assert all(fault.position is not None and fault.found for fault in found)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_load_or_are_refused_with_a_place(data: bytes) -> None:
    document, found = read_yaml(data, "f.yaml")
    assert (document is not None) or found
    assert all(fault.position is not None for fault in found)


def test_nodes_are_what_their_plain_counterparts_are() -> None:
    document = load_yaml("a: [x, {b: y}]\n", "f.yaml")
    assert (Table, Items, Text) == (type(document), type(document["a"]), type(document["a"][0]))
    assert document == {"a": ["x", {"b": "y"}]}
    assert str is type(plain(document)["a"][0])
