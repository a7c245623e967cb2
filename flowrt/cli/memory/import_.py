"""`flowrt memory import`: an export is put into the tiers it came from."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from flowrt.cli.exits import DONE, say
from flowrt.cli.memory.opened import Asked, Remembered, run_on
from flowrt.cli.memory.screen import counted, print_json, print_lines
from flowrt.errors import CallError
from flowrt.memory.archive import Archive, read_archive
from flowrt.memory.restoring import Restored, Restorer


def import_command(asked: Asked, folder: str, merge: bool) -> int:
    """Restore an archive and say how much was added. The whole of it is checked first."""
    archive = read_archive(Path(folder))
    done, left_out = run_on(asked, lambda memory: _import(memory, archive, merge))
    if asked.as_json:
        print_json({**asdict(done), "leftOut": left_out})
    else:
        added = {key: count for key, count in asdict(done).items() if key != "kept"}
        told = ", ".join(counted(count, name[:-1]) for name, count in added.items())
        kept = f"; {done.kept} that the store had stayed as they are" if done.kept else ""
        print_lines([f"added {told}{kept}"])
    if left_out:
        say(
            f"{counted(left_out, 'conversation')} of the volatile tier were left out: it would be "
            "in the memory of this command; FLOWRT_VOLATILE names one that stays"
        )
    return DONE


async def _import(memory: Remembered, archive: Archive, merge: bool) -> tuple[Restored, int]:
    """What was added, and how many conversations had nowhere to go."""
    restorers = [(Restorer(memory.record, memory.storage.space("user"), memory.service), archive)]
    left_out = 0
    if archive.volatile is not None:
        if memory.storage.volatile_is_shared:
            record = memory.storage.agents(volatile=True)
            space = memory.storage.space("user_volatile")
            restorers.append((Restorer(record, space, memory.service), archive.volatile))
        else:
            left_out = len(archive.volatile.conversations)
    taken = [name for restorer, of_tier in restorers for name in await restorer.taken(of_tier)]
    if not merge and taken:
        more = f" and {len(taken) - 3} more" if len(taken) > 3 else ""
        raise CallError(
            f"the store has {', '.join(taken[:3])}{more} already, and nothing was imported; "
            "--merge adds what is missing and leaves those as they are"
        )
    done = Restored()
    for restorer, of_tier in restorers:
        done += await restorer.restore(of_tier)
    return done, left_out
