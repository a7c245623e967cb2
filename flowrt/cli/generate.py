"""The generated files: the schemas and the reference pages. For flowrt's own repository.

``python -m flowrt.cli.generate`` writes them, with ``--check`` it fails where they are out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from flowrt.cli.describe import page
from flowrt.cli.schema import schema_text, suite_schema_text
from flowrt.engine import registry


def generated() -> dict[Path, str]:
    """Every generated file of the repository and what it should hold."""
    files = {
        Path("schemas/service.schema.json"): schema_text(),
        Path("schemas/suite.schema.json"): suite_schema_text(),
    }
    for folder, types in (("blocks", registry.blocks), ("connectors", registry.connectors)):
        names = types.own_names()
        for name in names:
            files[Path(f"docs/reference/{folder}/{name}.md")] = page(name, types.get(name))
        listed = "\n".join(f"- [{name}]({name}.md)" for name in names)
        files[Path(f"docs/reference/{folder}/README.md")] = f"# {folder.capitalize()}\n\n{listed}\n"
    return files


def main(arguments: list[str]) -> int:
    """Write the files, or check them; the exit code."""
    stale = [
        path
        for path, text in generated().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" in arguments:
        for path in stale:
            print(f"{path} is out of date; run `make generate`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(generated()[path], encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
