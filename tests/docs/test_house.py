"""The rules of the house that a machine can check."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MODULES = sorted(path for folder in ("flowrt", "blocks") for path in (ROOT / folder).rglob("*.py"))


def test_no_module_is_over_400_lines() -> None:
    every = [*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
    long = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in every}
    assert {} == {path: lines for path, lines in long.items() if lines > 400}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_public_name_has_a_docstring(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    missing = [] if ast.get_docstring(tree) or not tree.body else ["the module"]
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("_"):
                continue
            if not ast.get_docstring(node):
                missing.append(node.name)
    assert [] == missing
