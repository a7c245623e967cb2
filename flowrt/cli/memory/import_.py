"""`flowrt memory import`: an export is put into the persistent tier."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from flowrt.cli.exits import DONE
from flowrt.cli.memory.opened import Asked, Remembered, run_on
from flowrt.cli.memory.screen import counted, print_json, print_lines
from flowrt.errors import CallError
from flowrt.memory.archive import Archive, read_archive
from flowrt.memory.restoring import Restored, Restorer


def import_command(asked: Asked, folder: str, merge: bool) -> int:
    """Restore an archive and say how much was added. The whole of it is checked first."""
    archive = read_archive(Path(folder))
    done = run_on(asked, lambda memory: _import(memory, archive, merge))
    if asked.as_json:
        print_json(asdict(done))
        return DONE
    added = {key: count for key, count in asdict(done).items() if key != "kept"}
    told = ", ".join(counted(count, name[:-1]) for name, count in added.items())
    kept = f"; {done.kept} that the store had stayed as they are" if done.kept else ""
    print_lines([f"added {told}{kept}"])
    return DONE


async def _import(memory: Remembered, archive: Archive, merge: bool) -> Restored:
    restorer = Restorer(memory.record, memory.storage.space("user"), memory.service)
    if not merge and (taken := await restorer.taken(archive)):
        more = f" and {len(taken) - 3} more" if len(taken) > 3 else ""
        raise CallError(
            f"the store has {', '.join(taken[:3])}{more} already, and nothing was imported; "
            "--merge adds what is missing and leaves those as they are"
        )
    return await restorer.restore(archive)
