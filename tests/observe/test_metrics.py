"""Figures for Prometheus, from the records of traces."""

from __future__ import annotations

import json
from pathlib import Path

from flowrt.clock import SystemClock
from flowrt.observe.metrics import CountingTrace, Metrics
from flowrt.observe.trace import Trace
from flowrt.testing import FakeMessagesAPI
from tests.blocks.chains import payload
from tests.services import agent, flows, load, say


def value(metrics: Metrics, series: str) -> float:
    """The value of one series of the page."""
    (line,) = (line for line in metrics.text().decode().splitlines() if line.startswith(series))
    return float(line.removeprefix(series))


async def test_tokens_calls_and_compactions_are_counted(tmp_path: Path) -> None:
    metrics = Metrics(lambda: {"queue 'jobs'": 3})
    trace = CountingTrace(metrics, SystemClock())
    with FakeMessagesAPI(reply=lambda _: {"text": "x" * 400}) as api:
        document = agent(api.base_url, contextMaxTokens=1500, memoryCompaction="prune")
        async with load(tmp_path, document) as service:
            for _ in range(12):
                result = await service.invoke("chat", say("y" * 400), trace=trace)
                assert result.message is not None, result.error
    assert 12 == value(metrics, 'flowrt_runs_total{flow="chat",outcome="completed"}')
    assert 12 == value(metrics, 'flowrt_model_calls_total{connector="claude",outcome="answered"}')
    assert 0 < value(metrics, 'flowrt_model_tokens_total{connector="claude",kind="output"}')
    assert 0 < value(metrics, 'flowrt_compactions_total{flow="chat"}')
    assert 3 == value(metrics, "flowrt_waiting{where=\"queue 'jobs'\"}")


async def test_a_model_that_fails_is_counted(tmp_path: Path) -> None:
    metrics = Metrics(dict)
    with FakeMessagesAPI([{"error": 401}]) as api:
        async with load(tmp_path, agent(api.base_url)) as service:
            await service.invoke("chat", say("hi"), trace=CountingTrace(metrics, SystemClock()))
    assert 1 == value(metrics, 'flowrt_model_calls_total{connector="claude",outcome="failed"}')
    assert 1 == value(metrics, 'flowrt_runs_total{flow="chat",outcome="failed"}')


async def test_records_are_written_as_well_where_somebody_reads_them(tmp_path: Path) -> None:
    lines: list[str] = []
    trace = CountingTrace(Metrics(dict), SystemClock(), Trace(lines.append, SystemClock()))
    async with load(tmp_path, flows(main=[payload("1")])) as service:
        await service.invoke("main", trace=trace)
    kinds = [json.loads(line)["kind"] for line in lines]
    assert ["flow.started", "block.pre-invoke", "block.post-invoke", "flow.completed"] == kinds


async def test_messages_never_make_new_series(tmp_path: Path) -> None:
    metrics = Metrics(dict)
    trace = CountingTrace(metrics, SystemClock())
    async with load(tmp_path, flows(main=[payload("body")])) as service:
        metrics.know(service.flows)
        before = len(metrics.text().splitlines())
        for number in range(100):
            await service.invoke("main", {"n": number}, {"flow": str(number)}, trace=trace)
        assert before == len(metrics.text().splitlines())
