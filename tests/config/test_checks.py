"""Names are unique, templates exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.config.conftest import Folder

# FB-93: two entries with one name


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


def test_an_entry_repeated_by_an_alias_is_defined_twice(folder: Folder) -> None:
    (fault,) = folder.faults("flows:\n  - &a {name: a, process: []}\n  - *a\n")
    assert fault.found == 'flow "a" is defined more than once'


@pytest.mark.parametrize(
    ("resource", "says"),
    [
        ("nope.txt", 'template resource "nope.txt" does not exist'),
        ("sub", 'template resource "sub" does not exist'),
        ("loop", 'template resource "loop" does not exist'),
        ("x" * 5000, "cannot be read: File name too long"),
    ],
)
def test_a_template_that_cannot_be_had_is_a_fault_at_its_resource(
    folder: Folder, resource: str, says: str
) -> None:
    (folder.path / "sub").mkdir()
    (folder.path / "loop").symlink_to("loop")
    (fault,) = folder.faults(f"resources:\n  templates:\n    - resource: {resource}\n")
    assert fault.path == "resources.templates[0].resource"
    assert says in fault.found
    assert len(fault.found) < 120
