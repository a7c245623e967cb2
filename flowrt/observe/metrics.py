"""Figures of a running service for Prometheus. Needs the extra `metrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from flowrt.clock import Clock
from flowrt.message import Message
from flowrt.observe.trace import Trace

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_OUTCOMES = {"flow.completed": "completed", "flow.dropped": "dropped", "flow.failed": "failed"}
_TOKENS = {
    "inputTokens": "input",
    "cachedTokens": "cached",
    "cacheWriteTokens": "cache_write",
    "outputTokens": "output",
}


class Metrics:
    """Counts runs, model calls, tokens and compactions from the records of traces.

    Labels are names out of the service's own files (flows, connectors), never out of messages: how
    many series there are does not depend on the traffic.
    """

    def __init__(self, waiting: Callable[[], Mapping[str, int]]) -> None:
        self._registry = CollectorRegistry()
        registry = self._registry
        self._runs = Counter(
            "flowrt_runs",
            "Messages that went through a flow.",
            ("flow", "outcome"),
            registry=registry,
        )
        self._seconds = Histogram(
            "flowrt_run_seconds",
            "How long flows took that did not fail.",
            ("flow",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._calls = Counter(
            "flowrt_model_calls", "Calls of models.", ("connector", "outcome"), registry=registry
        )
        self._call_seconds = Histogram(
            "flowrt_model_call_seconds",
            "How long models took to answer.",
            ("connector",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._tokens = Counter(
            "flowrt_model_tokens",
            "Tokens as providers billed them.",
            ("connector", "kind"),
            registry=registry,
        )
        self._compactions = Counter(
            "flowrt_compactions", "Conversations that were shortened.", ("flow",), registry=registry
        )
        self._unsaved = Counter(
            "flowrt_save_failures",
            "Conversations that could not be saved.",
            ("flow",),
            registry=registry,
        )
        self._registry.register(_Waiting(waiting))

    def know(self, flows: Iterable[str]) -> None:
        """Show the counters of these flows from the start, at 0.

        An alert on errors is worth nothing while the counter comes into being with the first one.
        """
        for flow in flows:
            for outcome in _OUTCOMES.values():
                self._runs.labels(flow, outcome)
            self._seconds.labels(flow)

    def text(self) -> bytes:
        """The figures as Prometheus reads them."""
        return generate_latest(self._registry)

    def count(
        self, kind: str, flow: str, error: BaseException | None, duration: int | None, attrs: Any
    ) -> None:
        """Count what one trace record tells; most kinds tell nothing."""
        if (outcome := _OUTCOMES.get(kind)) is not None:
            self._runs.labels(flow, outcome).inc()
            if duration is not None:
                self._seconds.labels(flow).observe(duration / 1e9)
        elif kind in ("llm.turn", "llm.embed"):
            self._count_call(error, duration, attrs)
        elif kind == "agent.compaction":
            self._compactions.labels(flow).inc()
        elif kind == "agent.save-failed":
            self._unsaved.labels(flow).inc()

    def _count_call(
        self, error: BaseException | None, duration: int | None, attrs: dict[str, Any]
    ) -> None:
        connector = attrs["connector"]
        self._calls.labels(connector, "failed" if error is not None else "answered").inc()
        if duration is not None:
            self._call_seconds.labels(connector).observe(duration / 1e9)
        for name, kind in _TOKENS.items():
            if tokens := attrs.get("usage", {}).get(name):
                self._tokens.labels(connector, kind).inc(tokens)
        if tokens := attrs.get("tokens"):
            self._tokens.labels(connector, "embedded").inc(tokens)


class CountingTrace(Trace):
    """A trace whose records are counted, and written only where somebody reads them too."""

    def __init__(self, metrics: Metrics, clock: Clock, trace: Trace | None = None) -> None:
        super().__init__(lambda _: None, clock)
        self._metrics = metrics
        self._trace = trace

    def write(
        self,
        kind: str,
        message: Message | None = None,
        *,
        error: BaseException | None = None,
        duration: int | None = None,
        dropped: bool = False,
        attrs: dict[str, Any] | None = None,
        **place: Any,
    ) -> None:
        """Count the record, and hand it on."""
        self._metrics.count(kind, place.get("flow", ""), error, duration, attrs)
        if self._trace is not None:
            self._trace.write(
                kind,
                message,
                error=error,
                duration=duration,
                dropped=dropped,
                attrs=attrs,
                **place,
            )


class _Waiting(Collector):
    """How many messages wait, looked up when somebody asks."""

    def __init__(self, waiting: Callable[[], Mapping[str, int]]) -> None:
        self._waiting = waiting

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "flowrt_waiting", "Messages that wait to be worked on.", labels=("where",)
        )
        for where, number in self._waiting().items():
            family.add_metric((where,), number)
        yield family

    def describe(self) -> list[Metric]:
        return []
