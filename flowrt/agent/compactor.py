"""Carries a compaction out: plans it, has the summary written, and says what was forgotten."""

from __future__ import annotations

from typing import Any

from flowrt.agent.events import AgentEvents
from flowrt.agent.spec import AgentSpec
from flowrt.agent.turn import call_model
from flowrt.engine.run import Run
from flowrt.errors import ModelError
from flowrt.memory.compaction import Budget, prune, split_for_summary
from flowrt.memory.entry import Entry, tokens_of
from flowrt.memory.meter import Meter
from flowrt.memory.summary import summary_entry, summary_requests, summary_text, usable
from flowrt.message import Message
from flowrt.observe.log import get_logger

_log = get_logger("flowrt.agent.memory")


class Compactor:
    """Compacts the working context of one run with the block's strategy.

    Every compaction leaves a pair of events, one trace record and one log line with the same
    figures; one that cannot cut anything leaves one log line a run that says why.
    """

    def __init__(self, spec: AgentSpec, message: Message, run: Run, events: AgentEvents) -> None:
        self._spec = spec
        self._message = message
        self._run = run
        self._events = events
        self._told_stuck = False

    async def compact(
        self, entries: list[Entry], meter: Meter, budget: Budget, iteration: int
    ) -> list[Entry]:
        """The entries that stay, oldest first, with a summary in front where there is one.

        The very list that was given where nothing can be cut.
        """
        pruned = prune(entries, meter, budget)
        if pruned == entries:
            self._cannot(entries, meter, budget)
            return entries
        figures: dict[str, Any] = {
            "strategy": self._spec.strategy,
            "before": len(entries),
            "contextTokens": meter.predict(tokens_of(entries)),
            "contextMaxTokens": budget.limit,
        }
        await self._events.emit("compaction_start", iteration, **figures)
        kept = await self._summarized_or(pruned, entries, meter, budget)
        alive = {id(entry) for entry in kept}
        figures |= {
            "after": len(kept),
            "dropped": sum(id(entry) not in alive for entry in entries),
            "contextTokens": meter.predict(tokens_of(kept)),
        }
        await self._events.emit("compaction_end", iteration, **figures)
        self._record(figures, iteration)
        if figures["contextTokens"] > budget.limit:
            self._cannot(kept, meter, budget)
        return kept

    async def _summarized_or(
        self, pruned: list[Entry], entries: list[Entry], meter: Meter, budget: Budget
    ) -> list[Entry]:
        if self._spec.strategy == "prune":
            return pruned
        shorter = await self._summarized(entries, meter, budget)
        if shorter is None:
            return pruned
        fits = meter.predict(tokens_of(shorter)) <= budget.limit
        return shorter if fits else prune(shorter, meter, budget)

    async def _summarized(
        self, entries: list[Entry], meter: Meter, budget: Budget
    ) -> list[Entry] | None:
        """The entries with their old part told in a summary, or None where that cannot help."""
        split = split_for_summary(entries, meter, budget)
        if split is None:
            _log.info("nothing worth a summary is old enough; pruning", block=self._spec.label)
            return None
        try:
            parts = [
                usable(await call_model(
                    self._spec.model, request, self._run, self._message, block=self._spec.address
                ))
                for request in summary_requests(
                    split.old, budget.limit, model=self._spec.model_name
                )
            ]  # fmt: skip
        except ModelError as error:
            # What is old is still there: it goes only once a usable summary exists (FB-30).
            _log.warning(
                "the summary failed; pruning instead", block=self._spec.label, error=str(error)
            )
            return None
        carried = [summary_text(entry) for entry in split.earlier]
        summary = summary_entry("\n\n".join([*carried, *parts]))
        if summary.tokens >= tokens_of([*split.earlier, *split.old]):
            _log.info("the summary is no shorter; pruning", block=self._spec.label)
            return None
        return [summary, *split.recent]

    def _record(self, figures: dict[str, Any], iteration: int) -> None:
        _log.info("compacted the conversation", block=self._spec.label, **figures)
        if self._run.trace is not None:
            self._run.trace.write(
                "agent.compaction",
                self._message,
                flow=self._run.flow,
                attrs={"block": self._spec.address, **figures, "iteration": iteration},
            )

    def _cannot(self, entries: list[Entry], meter: Meter, budget: Budget) -> None:
        if self._told_stuck:
            return
        self._told_stuck = True
        _log.warning(
            "the budget cannot hold the system prompt and the latest exchange; sending them anyway",
            block=self._spec.label,
            contextMaxTokens=budget.limit,
            systemAndTools=round(meter.overhead),
            latestExchange=meter.size(tokens_of(entries)),
        )
        if self._run.trace is not None:
            attrs = {
                "block": self._spec.address,
                "contextMaxTokens": budget.limit,
                "systemAndTools": round(meter.overhead),
                "latestExchange": meter.size(tokens_of(entries)),
            }
            self._run.trace.write(
                "agent.compaction-skipped", self._message, flow=self._run.flow, attrs=attrs
            )
