"""`flowrt validate`: every fault of a service, without starting anything."""

from __future__ import annotations

import json

from flowrt.cli.exits import DONE, WRONG, say
from flowrt.errors import ConfigError, Fault
from flowrt.service import Service


def validate_command(path: str, as_json: bool, env_file: str | None) -> int:
    """Print the faults: as text on standard error, or as a JSON list on standard output."""
    try:
        service = Service.load(path, storage="memory:", env_file=env_file)
    except ConfigError as error:
        faults = error.faults
    else:
        if as_json:
            print("[]")
        else:
            count = len(service.flows)
            print(f"{path}: fine, {count} flow{'s' if count != 1 else ''}")
        return DONE
    if as_json:
        print(json.dumps([_as_json(fault) for fault in faults], ensure_ascii=False, indent=1))
    else:
        say("\n".join(str(fault) for fault in faults))
    return WRONG


def _as_json(fault: Fault) -> dict[str, object]:
    position = fault.position
    return {
        "file": position.file if position else None,
        "line": position.line if position else None,
        "column": position.column if position else None,
        "path": fault.path,
        "found": fault.found,
        "rule": fault.rule,
        "wayOut": fault.way_out,
    }
