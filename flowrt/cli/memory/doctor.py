"""`flowrt memory doctor`: whether what is stored is whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from flowrt.cli.exits import DONE, FAILED
from flowrt.cli.memory.checks import check_tier
from flowrt.cli.memory.findings import Finding
from flowrt.cli.memory.opened import Asked, Remembered, run_on
from flowrt.cli.memory.screen import counted, inline, print_json, print_lines
from flowrt.errors import StoreError
from flowrt.storage.tiers import DEFAULT_URL

_NO_FILE = (
    "run this where the service runs, or name its store with --storage; "
    "the file is made when something is stored"
)


def doctor_command(asked: Asked) -> int:
    """Check the store; `FAILED` where there is a fault. A SQLite file is checked in a copy: opening
    the store itself would bring it to the newest schema."""
    url = asked.storage or os.environ.get("FLOWRT_STORAGE") or DEFAULT_URL
    findings: list[Finding] = []
    try:
        with _to_check(url, findings) as checked:
            if checked is not None:
                findings += run_on(replace(asked, storage=checked), _check)
    except StoreError as error:
        findings.append(
            Finding("fault", "the store", str(error), "see that it runs, and try again")
        )
    faults = sum(finding.level == "fault" for finding in findings)
    if asked.as_json:
        print_json({"faults": faults, "findings": [asdict(finding) for finding in findings]})
    else:
        print_lines(line for finding in findings for line in _lines(finding))
        notes = len(findings) - faults
        told = (
            f"{counted(faults, 'fault')}, {counted(notes, 'note')}" if findings else "all is well"
        )
        print_lines([told])
    return FAILED if faults else DONE


@contextmanager
def _to_check(url: str, findings: list[Finding]) -> Iterator[str | None]:
    """The URL to check in place of `url`; None where there is nothing that could be opened."""
    if not url.startswith("sqlite:"):
        yield url
        return
    from flowrt.storage.sqlite_inspect import copy_sqlite

    path = Path(url.removeprefix("sqlite:").removeprefix("//")).expanduser()
    if not path.is_file():
        findings.append(Finding("fault", "the store", f"there is no file {str(path)!r}", _NO_FILE))
        yield None
        return
    findings += _of_the_file(path)
    if any(finding.level == "fault" for finding in findings):
        yield None
        return
    # Readable by its owner only, as the file itself.
    with tempfile.TemporaryDirectory(prefix="flowrt-doctor-") as folder:
        copy = Path(folder) / "state.db"
        copy_sqlite(path, copy)
        yield f"sqlite:{copy}"


def _of_the_file(path: Path) -> list[Finding]:
    from flowrt.storage.sqlite_inspect import inspect_sqlite

    seen = inspect_sqlite(path)
    where = f"the file {str(path)!r}"
    if not seen.ours:
        return [Finding("fault", where, "it is a database of another program", "name another file")]
    if seen.damage:
        way_out = "restore a backup, or try `sqlite3 FILE .recover`"
        return [Finding("fault", where, f"it is damaged: {'; '.join(seen.damage)}", way_out)]
    if seen.schema > seen.newest:
        what = f"it has schema {seen.schema}, this flowrt knows those up to {seen.newest}"
        return [Finding("fault", where, what, "use a newer flowrt")]
    if seen.schema < seen.newest:
        what = f"it has schema {seen.schema}, the newest is {seen.newest}"
        return [Finding("note", where, what, "flowrt migrates it when it opens it next")]
    return []


async def _check(memory: Remembered) -> list[Finding]:
    # What cannot be opened is told as such, before a check trips over it.
    await memory.storage.open()
    return [each for tier in memory.tiers for each in await check_tier(tier, memory.service)]


def _lines(finding: Finding) -> Iterator[str]:
    yield f"{finding.level}: {inline(finding.where)}: {inline(finding.what)}"
    yield f"      {finding.way_out}"
