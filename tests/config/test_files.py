"""Which files make a service, and how they become one document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flowrt.config.load import load_config
from flowrt.errors import CallError, ConfigError

if TYPE_CHECKING:
    from tests.config.conftest import Folder

FLOW = "flows:\n  - name: chat\n    process: []\n"


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


def test_a_file_that_cannot_be_read_is_refused_by_name(folder: Folder) -> None:
    (folder.path / "a.yaml").symlink_to("nowhere")
    with pytest.raises(
        CallError, match=r'the config file ".*a\.yaml" cannot be read: No such file'
    ):
        folder.load_all()


def test_an_empty_path_is_not_the_working_directory(folder: Folder) -> None:
    with pytest.raises(CallError, match="the config path is empty"):
        load_config("", environ={}, cwd=folder.path)


def test_what_editors_leave_behind_is_passed_over(folder: Folder) -> None:
    folder.write("a.yaml", FLOW)
    folder.write("._a.yaml", b"\x00\x05\x16\x07")
    (folder.path / ".#a.yaml").symlink_to("nobody@nowhere")
    (folder.path / "folder.yaml").mkdir()
    assert [file.name for file in folder.load_all().files] == ["a.yaml"]


def test_each_file_may_have_keys_of_its_own(folder: Folder) -> None:
    folder.write("a.yaml", "x-log: &log {level: warn}\nx-v: 1\n" + FLOW)
    folder.write(
        "b.yaml",
        "x-log: &log {level: info}\nx-v: [2]\n"
        "flows: [{name: b, process: [{<<: *log, type: log}]}]\n",
    )
    assert folder.load_all().flows[1].process == [{"type": "log", "level": "info"}]
