"""Trace records: what a run did, one JSON line each (dialect 7.6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from flowrt.clock import Clock
from flowrt.message import Message
from flowrt.observe.masking import mask

MAX_PAYLOAD = 32768
"""Bytes of JSON. A body over it is left out whole, of variables over it those that are largest; the
record says `truncated`."""


class Trace:
    """Writes records to a sink. A run has one only where somebody reads it."""

    def __init__(
        self, sink: Callable[[str], object], clock: Clock, *, max_payload: int = MAX_PAYLOAD
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._max_payload = max_payload
        self._seq = 0

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
        """Write one record. `duration` is in nanoseconds; `place` are flow, path, blockType."""
        self._seq += 1
        record: dict[str, Any] = {"seq": self._seq, "kind": kind}
        if message is not None:
            record |= _identity(message)
        record |= {key: value for key, value in place.items() if value}
        record["at"] = self._clock.now().isoformat()
        if duration is not None:
            record["durationNs"] = duration
        if error is not None:
            record["error"] = str(error) or type(error).__name__
        if dropped:
            record["dropped"] = True
        if message is not None and kind.startswith(("flow.", "block.")):
            self._add_payload(record, message)
        if attrs:
            record["attrs"] = attrs
        self._sink(json.dumps(mask(record), ensure_ascii=False, separators=(",", ":")))

    def _add_payload(self, record: dict[str, Any], message: Message) -> None:
        if _length(message.body) > self._max_payload:
            record["truncated"] = True
        else:
            record["body"] = message.body
        record["vars"] = self._fitting(message.vars)
        if len(record["vars"]) < len(message.vars):
            record["truncated"] = True

    def _fitting(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """The variables that fit, the smallest first: a picture must not hide all the others."""
        if _length(variables) <= self._max_payload:
            return dict(variables)
        sizes = sorted((_length({name: value}), name) for name, value in variables.items())
        room = self._max_payload
        kept: set[str] = set()
        for size, name in sizes:
            room -= size
            if room < 0:
                break
            kept.add(name)
        return {name: value for name, value in variables.items() if name in kept}


def _length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _identity(message: Message) -> dict[str, Any]:
    out = {"eventId": message.event_id}
    if message.trace_id:
        out = {"traceId": message.trace_id, **out}
    if message.correlation_id:
        out["correlationId"] = message.correlation_id
    return out
