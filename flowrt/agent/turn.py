"""One call of a model, with its trace record: the way every call of an AI block goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowrt.engine.run import Run
from flowrt.errors import ModelError
from flowrt.llm.embedding import EmbeddingModel, Embeddings
from flowrt.llm.model import ChatModel, Delta, Reply, Request
from flowrt.message import Message


async def call_model(
    model: ChatModel,
    request: Request,
    run: Run,
    message: Message,
    *,
    block: str,
    iteration: int | None = None,
    on_delta: Callable[[Delta], None] | None = None,
) -> Reply:
    """Send a request and leave an `llm.turn` record, also of a failure.

    Retries are the model's own. Raises what `ChatModel.complete` raises.
    """
    if run.trace is None:
        return await model.complete(request, on_delta)
    attrs: dict[str, Any] = {"connector": model.name, "block": block, "provider": model.provider}
    if iteration is not None:
        attrs["iteration"] = iteration
    if request.purpose:
        attrs["purpose"] = request.purpose
    began = run.clock.monotonic()
    try:
        reply = await model.complete(request, on_delta)
    except ModelError as error:
        run.trace.write("llm.turn", message, flow=run.flow, error=error, attrs=attrs)
        raise
    attrs |= {
        "stopReason": reply.stop_reason,
        "toolCalls": len(reply.tool_calls),
        "model": reply.model,
    }
    if reply.usage is not None:
        attrs["usage"] = reply.usage.to_json()
    duration = int((run.clock.monotonic() - began) * 1e9)
    run.trace.write("llm.turn", message, flow=run.flow, duration=duration, attrs=attrs)
    return reply


async def call_embedding(
    model: EmbeddingModel,
    texts: Sequence[str],
    run: Run,
    message: Message,
    *,
    block: str,
    model_name: str | None = None,
    dimensions: int | None = None,
) -> Embeddings:
    """Embed texts and leave an `llm.embed` record, also of a failure.

    Raises what `EmbeddingModel.embed` raises.
    """
    if run.trace is None:
        return await model.embed(texts, model=model_name, dimensions=dimensions)
    attrs: dict[str, Any] = {
        "connector": model.name,
        "block": block,
        "provider": model.provider,
        "count": len(texts),
    }
    began = run.clock.monotonic()
    try:
        embedded = await model.embed(texts, model=model_name, dimensions=dimensions)
    except ModelError as error:
        run.trace.write("llm.embed", message, flow=run.flow, error=error, attrs=attrs)
        raise
    attrs["model"] = embedded.model
    if embedded.vectors:
        attrs["dimensions"] = len(embedded.vectors[0])
    if embedded.tokens is not None:
        attrs["tokens"] = embedded.tokens
    duration = int((run.clock.monotonic() - began) * 1e9)
    run.trace.write("llm.embed", message, flow=run.flow, duration=duration, attrs=attrs)
    return embedded
