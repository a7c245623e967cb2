"""A service from its files, through the front door."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flowrt.config.load import Config, load_config
from flowrt.config.nodes import plain
from flowrt.errors import CallError, ConfigError, Fault, Position

FLOW = "flows:\n  - name: chat\n    process: []\n"


class Folder:
    """A folder of files, loaded without anything of the machine's environment."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def load(self, text: str, environ: Mapping[str, str] | None = None, **options: Any) -> Config:
        path = self.write("f.yaml", text)
        return load_config(path, environ=environ or {}, cwd=self.path, **options)

    def load_all(self, **options: Any) -> Config:
        return load_config(self.path, environ={}, cwd=self.path, **options)

    def faults(self, text: str, environ: Mapping[str, str] | None = None) -> list[Fault]:
        with pytest.raises(ConfigError) as caught:
            self.load(text, environ)
        return caught.value.faults


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def lines(faults: list[Fault]) -> list[int]:
    return [fault.position.line for fault in faults if fault.position]


# The whole


def test_a_service_is_read_with_everything_in_it(folder: Folder) -> None:
    folder.write("prompts/hello.txt", "hello")
    config = folder.load(
        "service: {name: shop, environment: test}\n"
        "resources: {templates: [{resource: prompts/hello.txt, as: hello}]}\n"
        "connectors: [{name: claude, type: llm-anthropic, settings: {apiKey: x}}]\n"
        "processors: [{name: say, type: log, settings: {message: a}}]\n"
        "flows:\n"
        "  - {name: chat, process: [{ref: say}], error: [{type: log}], workers: 2}\n"
        "  - {source: {type: cron, settings: {every: 1m}}, process: []}\n"
    )
    assert (config.name, config.environment) == ("shop", "test")
    assert [(t.name, t.resource) for t in config.templates] == [("hello", "prompts/hello.txt")]
    assert config.resources.read("prompts/hello.txt") == "hello"
    (connector,) = config.connectors
    assert (connector.name, connector.type) == ("claude", "llm-anthropic")
    assert connector.table["settings"] == {"apiKey": "x"}
    assert list(config.processors) == ["say"]
    chat, timed = config.flows
    assert (chat.name, chat.process, chat.error) == ("chat", [{"ref": "say"}], [{"type": "log"}])
    assert (chat.workers, chat.buffer, chat.pool, chat.source) == (2, 64, 8, None)
    assert (timed.name, timed.process, timed.error) == ("flow-2", [], None)
    assert timed.source == {"type": "cron", "settings": {"every": "1m"}}


def test_a_service_without_a_name_is_called_like_its_file_or_folder(folder: Folder) -> None:
    assert folder.load(FLOW).name == "f"
    assert folder.path.name == folder.load_all().name


def test_empty_sections_are_no_faults(folder: Folder) -> None:
    config = folder.load("service:\nenv:\nresources:\nconnectors:\nprocessors:\nflows:\n")
    assert (config.flows, config.connectors, config.processors) == ([], [], {})


def test_keys_of_the_authors_own_hold_anchors_to_merge_from(folder: Folder) -> None:
    text = "x-log: &log {type: log, level: warn}\nflows:\n  - name: a\n    process:\n"
    config = folder.load(text + "      - {<<: *log, message: m}\n")
    assert config.flows[0].process == [{"message": "m", "type": "log", "level": "warn"}]


# FB-99: the typo that does nothing


def test_every_fault_of_a_file_is_reported_in_file_order(folder: Folder) -> None:
    folder.write("here.txt", "x")
    found = folder.faults(
        "env:\n"
        "  - {name: A, required: true}\n"
        "  - {name: C, requird: true}\n"
        "resources: {templates: [{resource: ../x}, {resource: nope.txt}]}\n"
        "conectors: []\n"
        "connectors:\n"
        "  - {name: a, type: llm, settings: 3}\n"
        "  - {name: a, type: llm}\n"
        "processors: [{name: p}]\n"
        "flows:\n"
        "  - name: chat\n"
        "    workers: many\n"
        "    process:\n"
        "      - {type: log, x: 1, x: 2}\n"
        "      - 5\n"
        "      - {a: '${A} ${C} ${Z}'}\n"
        "  - process:\n"
        "  - -name: x\n"
    )
    assert lines(found) == [2, 3, 4, 4, 5, 7, 8, 9, 12, 14, 15, 16, 17, 18, 18]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flow:\n", "1:1 flow: unknown key 'flow'; known keys: service, env, resources, "
         "connectors, processors, flows; did you mean 'flows'?"),
        ("flows:\n  -name: x\n", "2:3 flows: found a mapping; expected a list"),
        ("flows:\n  - process: []\n", "2:5 flows[0]: flow without a source requires a name to be "
         "callable"),
        ("flows:\n  - {name: a, process: []}\n  - {name: a, process: []}\n",
         '3:12 flows.a: flow "a" is defined more than once; first at {file}:2:12; '
         "rename or remove one"),
        ("flows:\n  - {name: a, workers: 0, process: []}\n",
         "2:24 flows.a.workers: found 0; expected at least 1"),
        ("flows:\n  - {name: 12, process: []}\n", "2:12 flows[0].name: found 12; expected text; "
         "quote it"),
        ("flows:\n  - {name: a, source: {}, process: []}\n",
         "2:23 flows.a.source: a source requires a type or a connector"),
        ("connectors:\n  - {name: a}\n", "2:5 connectors.a: missing key 'type'"),
        ("processors:\n  - {name: p, type: log, k: 1, settings: {k: 2}}\n",
         '2:26 processors.p.k: block "p": "k" is given both at the top level and under settings; '
         "the other is on line 2; remove one of them"),
        ("service: {nmae: x}\n", "1:10 service: missing key 'name'"),
    ],
)  # fmt: skip
def test_a_mistake_is_shown_with_its_place_path_and_way_out(
    folder: Folder, text: str, expected: str
) -> None:
    file = folder.path / "f.yaml"
    shown = [str(fault) for fault in folder.faults(text)]
    assert f"{file}:{expected.format(file=file)}" in shown


def test_what_leaves_the_blocks_readable_can_be_collected(folder: Folder) -> None:
    noted: list[Fault] = []
    config = folder.load(
        "flows:\n"
        "  - {name: a, workrs: 1, process: [{type: log}, 5]}\n"
        "  - {name: b, process: no}\n"
        "  - {process: [{type: log}]}\n"
        "  - {name: d, process: [{x: 1, x: 2}]}\n",
        faults=noted,
    )
    assert lines(noted) == [2, 2, 3, 4, 5]
    assert [flow.name for flow in config.flows] == ["a", "b", "flow-3", "d"]
    assert [flow.process for flow in config.flows] == [
        [{"type": "log"}],
        [],
        [{"type": "log"}],
        [{"x": 1}],
    ]


@pytest.mark.parametrize("text", ["connectors: [{name: a}]\n", "flows: [{name: '${X}'}]\n", "a: 1"])
def test_what_others_would_be_blamed_for_is_raised_even_then(folder: Folder, text: str) -> None:
    with pytest.raises(ConfigError):
        folder.load(text, faults=[])


# FB-98: unset means empty

REQUIRED = (
    "env:\n"
    "  - {name: A, required: true}\n"
    "  - {name: B, required: true, default: x}\n"
    "  - name: C\n"
    "    required: true\n"
)


def test_all_missing_required_variables_are_reported_with_their_lines(folder: Folder) -> None:
    found = folder.faults(REQUIRED + "service: {name: '${A}'}\n")
    assert [(fault.position.line, fault.found) for fault in found if fault.position] == [
        (2, 'required environment variable "A" is not set'),
        (3, 'required environment variable "B" is not set'),
        (4, 'required environment variable "C" is not set'),
    ]
    assert found[1].rule == "a default does not count as set"
    assert found[2].path == "env.C"


def test_a_missing_variable_says_where_it_was_looked_for(folder: Folder) -> None:
    folder.write("there.env", "X=1")
    with pytest.raises(ConfigError) as caught:
        folder.load(REQUIRED, env_file="there.env")
    assert (
        caught.value.faults[0].way_out
        == "set it in the environment or in one of: there.env, .env (does not exist)"
    )


def test_an_empty_value_is_set(folder: Folder) -> None:
    config = folder.load(REQUIRED, {"A": "", "B": "", "C": ""})
    assert config.env.values == {"A": "", "B": "", "C": ""}


def test_an_empty_default_is_a_value_and_no_default_is_none(folder: Folder) -> None:
    config = folder.load("env: [{name: A, default: ''}, {name: B}, {name: C, default: }]\n")
    assert config.env.values == {"A": ""}
    assert {"B", "C"} == config.env.unset


def test_a_default_is_taken_as_it_is_written(folder: Folder) -> None:
    text = "env: [{name: A, default: '}:-${X}'}, {name: B, default: 1.10}, {name: C, default: true}"
    config = folder.load(text + ", {name: D, default: 8080}, {name: E, default: 0x1F}]\n")
    expected = {"A": "}:-${X}", "B": "1.10", "C": "true", "D": "8080", "E": "0x1F"}
    assert expected == config.env.values


def test_a_variable_without_a_value_is_a_fault_only_where_it_is_used(folder: Folder) -> None:
    (fault,) = folder.faults("env: [{name: A}, {name: B}]\nservice: {name: 'x${A}'}\n")
    assert fault.found == 'environment variable "A" is referenced but not set and has no default'
    assert (Position(str(folder.path / "f.yaml"), 2, 17), "service.name") == (
        fault.position,
        fault.path,
    )


def test_an_undeclared_variable_is_a_fault_with_the_nearest_declared_one(folder: Folder) -> None:
    (fault,) = folder.faults("env: [{name: API_URL, default: x}]\nservice: {name: '${API_ULR}'}\n")
    assert fault.found == 'references undeclared environment variable "API_ULR"'
    assert fault.way_out == "did you mean 'API_URL'?"


def test_an_undeclared_variable_is_a_fault_even_if_the_machine_has_it(folder: Folder) -> None:
    (fault,) = folder.faults("service: {name: '${HOME}'}\n", {"HOME": "/root"})
    assert fault.way_out == "declare it under `env:`"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{default: x}", "env[0]: missing key 'name'"),
        ("{name: 'a b'}", "env.a b.name: found 'a b'; it should match pattern"),
        ("{name: A, default: [x]}", "env.A.default: found a list; expected text or"),
        ("{name: A, required: maybe}", "env.A.required: found 'maybe'; expected true or false"),
        ("A", "env[0]: found 'A'; expected a mapping"),
    ],
)
def test_a_bad_declaration_is_shown(folder: Folder, entry: str, expected: str) -> None:
    (fault,) = folder.faults(f"env:\n  - {entry}\n")
    assert expected in str(fault)


# FB-93: two entries with one name


def test_a_variable_declared_twice_in_one_file_is_refused_with_both_lines(folder: Folder) -> None:
    (fault,) = folder.faults("env:\n  - {name: A, default: 1}\n  - {name: A, default: 2}\n")
    assert fault.found == 'environment variable "A" is defined more than once'
    assert f"first at {folder.path / 'f.yaml'}:2:12" == fault.rule


@pytest.mark.parametrize(
    ("section", "kind"), [("connectors", "connector"), ("processors", "processor")]
)
def test_two_entries_with_one_name_are_refused(folder: Folder, section: str, kind: str) -> None:
    (fault,) = folder.faults(f"{section}:\n  - {{name: a, type: x}}\n  - {{name: a, type: y}}\n")
    assert f'{kind} "a" is defined more than once' == fault.found


def test_two_templates_with_one_name_are_refused(folder: Folder) -> None:
    folder.write("a.txt", "a")
    folder.write("b.txt", "b")
    text = "resources:\n  templates:\n    - {resource: a.txt}\n    - {resource: b.txt, as: a.txt}\n"
    (fault,) = folder.faults(text)
    assert fault.found == 'template "a.txt" is defined more than once'


# FB-96: a password is not YAML

PASSWORDS = [
    "a: b", '"q"', "'q'", "#x", "!t", ">x", "*a", "{}", "[]", "- a", "$HOME", "${OTHER}", "${P}",
    "two\nlines", "yes", "0123", "  spaces  ", "\ttab", "@x", "`x`", "%x", "a #b", "\\n", "}", ":-",
]  # fmt: skip


@pytest.mark.parametrize("value", PASSWORDS)
@pytest.mark.parametrize(
    "written",
    ["${P}", "'${P}'", '"${P}"', "|-\n      ${P}", "['${P}']", "{k: '${P}'}"],
)
def test_a_value_arrives_exactly_as_it_is_set(folder: Folder, value: str, written: str) -> None:
    config = folder.load(
        "env: [{name: P}, {name: OTHER, default: wrong}]\n"
        f"connectors:\n  - name: c\n    type: t\n    settings:\n     p: {written}\n",
        {"P": value},
    )
    found = plain(config.connectors[0].table["settings"]["p"])
    while isinstance(found, list | dict):
        (found,) = found if isinstance(found, list) else found.values()
    assert value == found


@pytest.mark.parametrize(
    ("value", "expected"),
    [("8080", 8080), ("1.5", 1.5), ("true", True), ("null", None), ("", ""), ("1e999", "1e999")],
)
def test_a_bare_placeholder_is_json_data_of_the_type_its_value_reads_as(
    folder: Folder, value: str, expected: Any
) -> None:
    text = "env: [{name: P}]\nflows:\n  - name: a\n    process:\n"
    text += "      - v: '${P}'\n        w: ${P}\n"
    config = folder.load(text, {"P": value})
    block = plain(config.flows[0].process[0])
    assert value == block["v"]
    assert (expected, type(expected)) == (block["w"], type(block["w"]))


def test_a_bare_placeholder_keeps_its_exact_text_where_text_is_wanted(folder: Folder) -> None:
    text = "env: [{name: P}]\nservice:\n  name: ${P}\n"
    assert folder.load(text, {"P": "1.10"}).name == "1.10"


def test_a_placeholder_may_stand_where_a_number_is_wanted(folder: Folder) -> None:
    text = "env: [{name: P}]\nflows:\n  - name: a\n    workers: ${P}\n    process: []\n"
    assert folder.load(text, {"P": "7"}).flows[0].workers == 7


def test_placeholders_inside_a_text_are_replaced_once(folder: Folder) -> None:
    config = folder.load(
        "env: [{name: A}, {name: B}]\nservice: {name: 'x ${A}${B} ${ A } $A ${1} ${'}\n",
        {"A": "${B}", "B": "b"},
    )
    assert config.name == "x ${B}b ${ A } $A ${1} ${"


def test_placeholders_are_left_alone_in_env_and_resources(folder: Folder) -> None:
    folder.write("${A}.txt", "x")
    text = "env: [{name: A, default: '${B}'}]\nresources: {templates: [{resource: '${A}.txt'}]}\n"
    config = folder.load(text)
    assert (config.env.values, config.templates[0].resource) == ({"A": "${B}"}, "${A}.txt")


def test_a_secret_is_not_shown_in_the_fault_about_it(folder: Folder) -> None:
    text = "env: [{name: KEY}]\nflows:\n  - name: a\n    workers: ${KEY}\n    process: []\n"
    (fault,) = folder.faults(text, {"KEY": "hunter2"})
    assert "hunter2" not in str(fault)
    assert fault.found == "found the value of '${KEY}'"


# Where values come from


def test_the_environment_wins_over_env_files_and_later_files_over_earlier(folder: Folder) -> None:
    for name in (".env", "named.env", "given.env", "listed.env"):
        folder.write(name, "".join(f"{key}={name}\n" for key in "ABCDE"))
    folder.write("listed.env", "D=listed.env\n")
    folder.write("given.env", "D=given.env\nC=given.env\n")
    folder.write("named.env", "D=named.env\nC=named.env\nB=named.env\n")
    text = "resources: {env: [absent.env, listed.env]}\nenv:\n"
    text += "".join(f"  - {{name: {key}, default: default}}\n" for key in "ABCDEF")
    config = folder.load(
        text, {"FLOWRT_ENV_FILE": "named.env", "E": "environment"}, env_file="given.env"
    )
    assert config.env.values == {
        "A": ".env",
        "B": "named.env",
        "C": "given.env",
        "D": "listed.env",
        "E": "environment",
        "F": "default",
    }


def test_only_declared_variables_are_values(folder: Folder) -> None:
    folder.write(".env", "OTHER=1\n")
    assert folder.load("service: {name: x}\n", {"HOME": "/"}).env.values == {}


def test_octos_name_for_the_env_file_is_known(folder: Folder) -> None:
    folder.write("octo.env", "A=octo\n")
    config = folder.load("env: [{name: A}]\n", {"OCTO_ENV_FILE": "octo.env"})
    assert config.env.values == {"A": "octo"}


def test_an_env_file_that_was_asked_for_must_exist(folder: Folder) -> None:
    with pytest.raises(CallError, match=r"the env file 'nope\.env' does not exist"):
        folder.load("service: {name: x}\n", env_file="nope.env")


def test_an_unparsable_env_file_is_a_fault_in_that_file(folder: Folder) -> None:
    folder.write(".env", "A=1\nnonsense\n")
    (fault,) = folder.faults("service: {name: x}\n")
    assert Position(".env", 2, 1) == fault.position


def test_an_env_resource_that_climbs_out_is_a_fault(folder: Folder) -> None:
    (fault,) = folder.faults("resources:\n  env:\n    - ../x.env\n")
    assert (fault.position.line if fault.position else 0) == 3
    assert "climbs out" in fault.found


def test_secrets_are_known_by_declaration_and_by_name(folder: Folder) -> None:
    names = ["API_KEY", "SLACK_BOT_TOKEN", "DB_PASSWORD", "CLIENT_SECRET", "MONKEY", "PORT"]
    text = "".join(f"  - {{name: {name}, default: x}}\n" for name in names)
    text += "  - {name: PLAIN, default: x, secret: true}\n"
    text += "  - {name: PUBLIC_KEY, default: x, secret: false}\n"
    assert {*names[:4], "PLAIN"} == set(folder.load(f"env:\n{text}").env.secrets)


# Files


def test_a_folder_is_its_yaml_files_in_lexical_order(folder: Folder) -> None:
    folder.write("b.yml", "flows: [{name: b, process: []}]\nconnectors: [{name: c, type: t}]\n")
    folder.write("a.yaml", "service: {name: s}\nflows: [{name: a, process: []}]\n")
    folder.write("a_test.yaml", "flow: a\n")
    folder.write("b_test.yml", "flow: a\n")
    folder.write("sub/c.yaml", "flows: [{name: c, process: []}]\n")
    folder.write("notes.txt", "x")
    config = folder.load_all()
    assert [flow.name for flow in config.flows] == ["a", "b"]
    assert [file.name for file in config.files] == ["a.yaml", "b.yml"]
    assert str(folder.path / "b.yml") == config.flows[1].table.position.file
    assert folder.path == config.root


def test_lists_of_resources_are_joined_too(folder: Folder) -> None:
    folder.write("t.txt", "x")
    folder.write("a.env", "A=a\n")
    folder.write("b.env", "B=b\n")
    resources = "resources: {env: [%s.env], templates: [{resource: t.txt}]}\nenv: [{name: %s}]\n"
    folder.write("a.yaml", resources % ("a", "A"))
    folder.write("b.yaml", resources % ("b", "B"))
    assert folder.load_all().env.values == {"A": "a", "B": "b"}


def test_a_variable_may_be_declared_in_several_files_and_the_first_counts(folder: Folder) -> None:
    folder.write("a.yaml", "env: [{name: A, default: first}]\n")
    folder.write("b.yaml", "env: [{name: A, default: second}]\n")
    assert folder.load_all().env.values == {"A": "first"}


def test_names_are_unique_across_files(folder: Folder) -> None:
    folder.write("a.yaml", FLOW)
    folder.write("b.yaml", FLOW)
    with pytest.raises(ConfigError) as caught:
        folder.load_all()
    (fault,) = caught.value.faults
    assert fault.found == 'flow "chat" is defined more than once'
    assert f"first at {folder.path / 'a.yaml'}:2:11" == fault.rule


def test_a_service_is_named_in_one_file_only(folder: Folder) -> None:
    folder.write("a.yaml", "service: {name: a}\n")
    folder.write("b.yaml", "service: {name: b}\n")
    with pytest.raises(ConfigError) as caught:
        folder.load_all()
    (fault,) = caught.value.faults
    assert fault.found == "service identity declared in more than one config file"


def test_sections_that_cannot_be_joined_are_refused(folder: Folder) -> None:
    folder.write("a.yaml", FLOW)
    folder.write("b.yaml", "flows: {name: x}\n")
    with pytest.raises(ConfigError) as caught:
        folder.load_all()
    assert "'flows' cannot be joined" in str(caught.value)


def test_syntax_errors_of_all_files_are_reported_together(folder: Folder) -> None:
    folder.write("a.yaml", "a: [\n")
    folder.write("b.yaml", "b: {\n")
    with pytest.raises(ConfigError) as caught:
        folder.load_all()
    assert len(caught.value.faults) == 2


def test_a_folder_without_yaml_files_is_refused(folder: Folder) -> None:
    with pytest.raises(CallError, match=r'no \.yaml/\.yml config files in ".*"'):
        folder.load_all()


@pytest.mark.parametrize("name", ["nope.yaml", "a\0b", "x" * 5000])
def test_a_path_that_leads_nowhere_is_refused(folder: Folder, name: str) -> None:
    with pytest.raises(CallError, match="config"):
        load_config(folder.path / name, environ={}, cwd=folder.path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device without an end")
def test_a_file_without_an_end_is_refused(folder: Folder) -> None:
    with pytest.raises(ConfigError, match="the file is too long"):
        load_config("/dev/zero", environ={}, cwd=folder.path)


def test_a_file_that_may_not_be_read_is_refused_by_name(folder: Folder) -> None:
    (folder.path / ".env").mkdir()
    with pytest.raises(CallError, match=r"the env file '\.env' cannot be read: Is a directory"):
        folder.load(FLOW)


def test_a_file_from_windows_loads(folder: Folder) -> None:
    path = folder.write("f.yaml", b"\xef\xbb\xbf" + FLOW.replace("\n", "\r\n").encode())
    assert [f.name for f in load_config(path, environ={}, cwd=folder.path).flows] == ["chat"]


def test_loading_twice_gives_configs_that_share_nothing(folder: Folder) -> None:
    text = "env: [{name: A}]\nservice: {name: 'x${A}'}\n"
    assert [folder.load(text, {"A": value}).name for value in "12"] == ["x1", "x2"]
