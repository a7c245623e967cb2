"""A service from its files, through the front door."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flowrt.config.load import load_config
from flowrt.errors import ConfigError, Fault

if TYPE_CHECKING:
    from tests.config.conftest import Folder

FLOW = "flows:\n  - name: chat\n    process: []\n"


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
        ("flows:\n  -name: x\n", "2:3 flows: found a mapping; expected a list; a list item needs a "
         "space after the dash: `- name:`"),
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
        ("flows:\n  - name:chat\n",
         "2:5 flows[0]: found 'name:chat'; expected a mapping; put a space after the ':'"),
        ("flows:\n  - {name: a, process: [], buffer: true}\n",
         "2:36 flows.a.buffer: found true; expected a whole number"),
        ("processors:\n  - {name: p, type: log, ref: q}\n",
         "2:26 processors.p.ref: found a `ref`; a processor states its `type` and cannot refer to "
         "another one"),
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


def test_a_file_from_windows_loads(folder: Folder) -> None:
    path = folder.write("f.yaml", b"\xef\xbb\xbf" + FLOW.replace("\n", "\r\n").encode())
    assert [f.name for f in load_config(path, environ={}, cwd=folder.path).flows] == ["chat"]


def test_loading_twice_gives_configs_that_share_nothing(folder: Folder) -> None:
    text = "env: [{name: A}]\nservice: {name: 'x${A}'}\n"
    assert [folder.load(text, {"A": value}).name for value in "12"] == ["x1", "x2"]


def test_a_flow_without_a_name_never_takes_the_name_of_another(folder: Folder) -> None:
    config = folder.load(
        "flows:\n  - {name: flow-2, process: []}\n  - {source: {type: cron}, process: []}\n"
    )
    assert [flow.name for flow in config.flows] == ["flow-2", "flow-2-unnamed"]
