"""A closed run of turns as stores keep it: its words, and what else is known of its turns.

The form is private to this module, and a part of another form is as if it were not there. Numbers
of threads and speakers are of the part; whoever reads one translates them.
"""

from __future__ import annotations

import json
import sys
import unicodedata
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from flowrt.memory.search.postings import ClosedRun

RULES = 1
"""To be raised with every change of what `terms` gives for a text, and of this form."""

_MARK = f"{RULES} {sys.byteorder} {unicodedata.unidata_version}\n".encode()


@dataclass(frozen=True, slots=True)
class RunOfTurns:
    """A run, and in its order what is known of each turn.

    `begins` says where a conversation begins anew. `last` is when the last turn of each thread was
    said.
    """

    words: ClosedRun
    ids: array[int]
    seqs: array[int]
    blank: bytes
    asks: bytes
    begins: bytes
    threads: array[int]
    speakers: array[int]
    thread_names: list[str]
    speaker_names: list[str]
    last: list[float]


def pack(run: RunOfTurns) -> bytes:
    """The run as bytes."""
    words = run.words
    columns = [run.ids, run.seqs, run.threads, run.speakers]
    columns += [words.keys, words.ends, words.numbers, words.codes]
    pieces = [column.tobytes() for column in columns] + [run.blank, run.asks, run.begins]
    known = {
        "sizes": [len(piece) for piece in pieces],
        "total": words.total,
        "threads": run.thread_names,
        "speakers": run.speaker_names,
        "last": run.last,
    }
    # In ASCII, as any text may be the name of a thread, also what is no Unicode.
    head = json.dumps(known, separators=(",", ":")).encode() + b"\n"
    return _MARK + zlib.compress(head + b"".join(pieces), 1)


def unpack(data: bytes) -> RunOfTurns | None:
    """What `pack` was given; None where other rules made it."""
    if not data.startswith(_MARK):
        return None
    unpacked = zlib.decompress(data[len(_MARK) :])
    end = unpacked.index(b"\n") + 1
    known = json.loads(unpacked[:end])
    pieces = _cut(unpacked, end, known["sizes"])
    ids, seqs, threads, speakers, *postings = (array(kind, next(pieces)) for kind in "qqHHQIHH")
    blank, asks, begins = pieces
    words = ClosedRun(len(ids), known["total"], *postings)
    return RunOfTurns(
        words=words,
        ids=ids,
        seqs=seqs,
        blank=blank,
        asks=asks,
        begins=begins,
        threads=threads,
        speakers=speakers,
        thread_names=known["threads"],
        speaker_names=known["speakers"],
        last=known["last"],
    )


def _cut(data: bytes, start: int, sizes: list[int]) -> Iterator[bytes]:
    for size in sizes:
        yield data[start : start + size]
        start += size
