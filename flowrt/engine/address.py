"""Blocks found by address: `<flow>.<composite>[<branch>].<label>` (dialect 7.3)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flowrt.engine.chain import Chain, Step
from flowrt.errors import CallError

_SEGMENT = re.compile(r"([^.\[\]]+)(?:\[([^\]]*)\])?(?:\.|$)")


@dataclass(frozen=True, slots=True)
class Place:
    """A step of a built service: the chain that runs it and its index there."""

    chain: Chain
    index: int

    @property
    def step(self) -> Step:
        return self.chain.steps[self.index]


class AddressBook:
    """The blocks of one built service by address.

    A block answers to its label; where no other in the chain is called so, also to its type and to
    the processor it refers to. A branch that has a name answers to its number too.
    """

    def __init__(self, chains: Sequence[Chain]) -> None:
        self._places: dict[str, list[Place]] = {}
        self._numbers = {chain.name: str(chain.number) for chain in chains}
        for chain in chains:
            for index, step in enumerate(chain.steps):
                self._places.setdefault(step.address, []).append(Place(chain, index))

    def find(self, address: str) -> Place:
        """The block at `address`.

        Raises `CallError` where there is none, with those that are nearest, and where there are
        several of that name.
        """
        found = self._places.get(address) or self._by_other_names(address)
        if not found:
            raise CallError(f"there is no block {address!r}; {self._way_out(address)}")
        if len(found) > 1:
            raise CallError(
                f"{address!r} is ambiguous: {len(found)} blocks are called so; give each a `name:`"
            )
        return found[0]

    def _by_other_names(self, address: str) -> list[Place]:
        """Where a segment is no label, a block of that type or `ref` is meant."""
        wanted = _segments(address)
        ranked: dict[tuple[int, ...], list[Place]] = {}
        for known, places in self._places.items():
            rank = self._rank(wanted, known)
            if rank is not None:
                ranked.setdefault(rank, []).extend(places)
        return ranked[min(ranked)] if ranked else []

    def _rank(self, wanted: list[tuple[str, str]], known: str) -> tuple[int, ...] | None:
        """How directly an address names the block at `known`; None where it does not."""
        segments = _segments(known)
        if len(segments) != len(wanted) or not segments or segments[0] != wanted[0]:
            return None
        ranks = []
        prefix = _written(*segments[0])
        for (label, branch), (asked, asked_branch) in zip(segments[1:], wanted[1:], strict=True):
            prefix = f"{prefix}.{label}"
            if asked_branch not in (branch, self._numbers.get(_written(prefix, branch))):
                return None
            names = [
                (step.label, step.type, step.ref)
                for place in self._places.get(prefix, ())
                for step in (place.step,)
            ]
            rank = min((each.index(asked) for each in names if asked in each), default=None)
            if rank is None:
                return None
            ranks.append(rank)
            prefix = _written(prefix, branch)
        return tuple(ranks)

    def _way_out(self, address: str) -> str:
        flow = address.partition(".")[0].partition("[")[0]
        here = [known for known in self._places if known.startswith((f"{flow}.", f"{flow}["))]
        # The right name, but in another block: closer to what is meant than a name like it.
        inside = [known for known in here if known.endswith(f".{address.rpartition('.')[2]}")]
        close = inside[:3] or difflib.get_close_matches(address, self._places, n=3, cutoff=0.6)
        if close:
            return f"did you mean {' or '.join(map(repr, close))}?"
        return f"the blocks are {_listed(here or self._places)}"


def _segments(address: str) -> list[tuple[str, str]]:
    """The labels of an address with the branch that follows each, maybe empty."""
    return [(match[1], match[2] or "") for match in _SEGMENT.finditer(address)]


def _written(label: str, branch: str) -> str:
    return f"{label}[{branch}]" if branch else label


def _listed(addresses: Iterable[str]) -> str:
    outermost_first = sorted(addresses, key=lambda address: len(_segments(address)))
    shown = [repr(address) for address in outermost_first]
    return ", ".join(shown[:20]) + (" …" if len(shown) > 20 else "")
