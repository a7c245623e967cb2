"""How well what was said is found again: recall on the LoCoMo conversations, and milliseconds.

    python -m bench.retrieval PATH [--captions | --no-captions]

PATH is a `locomo10.json` (Maharana et al., ACL 2024), or a part of it. A turn of a dialogue is an
entry, with the caption of the picture it shows; a session is a thread; every question with evidence
is a query, and its recall is the share of its evidence among the first k. Categories: 1 several
turns, 2 times, 3 with world knowledge, 4 one turn, 5 questions that have no answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.measure import median, report
from flowrt.errors import ConnectorError
from flowrt.llm.local_embedding import LocalEmbedding
from flowrt.llm.local_minilm import LocalMiniLm
from flowrt.memory.search.meaning import Embedder
from flowrt.memory.search.recall import Recall
from flowrt.storage.agents.memory import MemoryAgentStore
from flowrt.storage.agents.protocol import NewTurn, Person, Place

DEPTHS = (5, 10, 25)
CATEGORIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Question:
    """A question, the turns that hold its answer, and its category."""

    text: str
    evidence: frozenset[str]
    category: int


@dataclass
class Results:
    """What was found for the questions so far, and how long it took."""

    recall: dict[int, dict[int, list[float]]] = field(
        default_factory=lambda: {depth: {c: [] for c in CATEGORIES} for depth in DEPTHS}
    )
    ranks: list[float] = field(default_factory=list)
    search_ms: list[float] = field(default_factory=list)
    search_cpu_ms: list[float] = field(default_factory=list)
    insert_ms: list[float] = field(default_factory=list)

    def add(self, question: Question, found: list[str]) -> None:
        """Count one question."""
        for depth in DEPTHS:
            share = len(question.evidence.intersection(found[:depth])) / len(question.evidence)
            self.recall[depth][question.category].append(share)
        first = next((n for n, turn in enumerate(found, 1) if turn in question.evidence), None)
        self.ranks.append(1 / first if first else 0.0)

    def figures(self) -> dict[str, Any]:
        """Percent of recall at each depth, over all, without category 5, and by category."""

        def mean(depth: int, *categories: int) -> float:
            shares = [s for c in categories for s in self.recall[depth][c]]
            return round(100 * sum(shares) / max(len(shares), 1), 1)

        def macro(depth: int) -> float:
            each = [mean(depth, c) for c in CATEGORIES if self.recall[depth][c]]
            return round(sum(each) / len(each), 1)

        by_category = {f"category_{c}": [mean(d, c) for d in DEPTHS] for c in CATEGORIES}
        return {
            "questions": len(self.ranks),
            "overall": [mean(depth, *CATEGORIES) for depth in DEPTHS],
            "without_5": [mean(depth, 1, 2, 3, 4) for depth in DEPTHS],
            "macro": [macro(depth) for depth in DEPTHS],
            **by_category,
            "mrr": round(100 * sum(self.ranks) / len(self.ranks), 1),
            "ms_a_query": median(self.search_ms),
            "cpu_ms_a_query": median(self.search_cpu_ms),
            "ms_a_query_p99": round(sorted(self.search_ms)[len(self.search_ms) * 99 // 100], 2),
            "ms_an_insert": median(self.insert_ms),
        }


def sessions(conversation: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The sessions of a conversation in their order."""
    names = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
    for name in sorted(names, key=lambda name: int(name.removeprefix("session_"))):
        yield name, conversation[name]


def entry(turn: dict[str, Any], first: str, captions: bool) -> NewTurn:
    """A turn of the dialogue as it would be recorded."""
    text = turn["text"]
    if captions and turn.get("blip_caption"):
        text += f" [shares a photo: {turn['blip_caption']}]"
    role = "user" if turn["speaker"] == first else "assistant"
    return NewTurn("user" if role == "user" else "assistant", text, attrs={"name": turn["speaker"]})


def questions(sample: dict[str, Any], known: set[str]) -> Iterator[Question]:
    """The questions whose evidence names turns that there are."""
    for asked in sample["qa"]:
        named = re.split(r"[;,\s]+", " ".join(asked.get("evidence", [])))
        if evidence := known.intersection(named):
            yield Question(asked["question"], frozenset(evidence), asked["category"])


async def measure(
    sample: dict[str, Any], embedder: Embedder | None, captions: bool, results: Results
) -> None:
    """Record one conversation and ask its questions."""
    store = MemoryAgentStore()
    recall = Recall(store, embedder)
    person = Person("locomo", "bench", sample["sample_id"])
    turns: dict[tuple[str, int], str] = {}
    conversation = sample["conversation"]
    for name, said in sessions(conversation):
        place = Place(*person[:2], name, person.user)
        began = time.perf_counter()
        new = [entry(turn, conversation["speaker_a"], captions) for turn in said]
        recorded = await store.append_turns(place, new)
        await recall.embed(person)
        await recall.search(person, "", limit=1)
        results.insert_ms.append(1000 * (time.perf_counter() - began) / len(said))
        turns |= {(name, t.seq): s["dia_id"] for t, s in zip(recorded, said, strict=True)}
    for question in questions(sample, set(turns.values())):
        began, worked = time.perf_counter(), time.process_time()
        found = await recall.search(person, question.text, limit=DEPTHS[-1])
        results.search_ms.append(1000 * (time.perf_counter() - began))
        results.search_cpu_ms.append(1000 * (time.process_time() - worked))
        results.add(question, [turns[hit.thread, hit.seq] for hit in found.hits])


def embedders() -> Iterator[tuple[str, Embedder | None]]:
    """Words alone, and with each model that is installed."""
    yield "words", None
    for model in (LocalEmbedding(name="wordllama"), LocalMiniLm(name="minilm")):
        try:
            model.check()
        except ConnectorError as error:
            report("retrieval", by=model.name, skipped=str(error))
        else:
            yield f"words and {model.name}", Embedder(model)


async def main() -> None:
    """Measure each way of ranking on all conversations of the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--captions", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    samples = json.loads(options.path.read_text(encoding="utf-8"))
    for by, embedder in embedders():
        results = Results()
        for sample in samples:
            await measure(sample, embedder, options.captions, results)
        report("retrieval", by=by, captions=options.captions, **results.figures())


if __name__ == "__main__":
    asyncio.run(main())
