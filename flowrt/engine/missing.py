"""Names that authors know from the Octo dialect or its docs, and flowrt has not: what to do."""

from __future__ import annotations

from flowrt.engine.registry import UnknownType

_OTHER_NAMES = {
    "database": "sql",
    "http": "rest",
    "stop": "validate",
    "transform": "multi-transform",
    "try": "handle-errors",
}
"""Blocks that the dialect's docs show and nothing registers, and the ones that are meant."""

_OVER_HTTP = "it is an HTTP API: call it with `rest`, over an `http-client` connector"
_BRING_IT = "a package can bring it (docs/architecture.md, a block of your own)"
_FAMILIES = {
    "mongodb": _BRING_IT,
    "notion": _OVER_HTTP,
    "parallel": _OVER_HTTP,
    "pinecone": f"{_OVER_HTTP}; `ai-embed` makes the vectors",
    "tavily": _OVER_HTTP,
}
_SINGLE = {
    "cli-run": _BRING_IT,
    "jwt-validate": "have tokens checked in front of the service, or a package can bring it "
    "(docs/architecture.md, a block of your own)",
}


def refusal(what: str, unknown: UnknownType) -> tuple[str, str]:
    """What is wrong with the type of a `what` (block, connector or source), and the way out."""
    name = unknown.name
    if what == "block" and name in _OTHER_NAMES:
        return f"unknown block type {name!r}", f"did you mean {_OTHER_NAMES[name]!r}?"
    known = _SINGLE.get(name) or _FAMILIES.get(name.partition("-")[0])
    if known is not None:
        return f"{name!r} is a {what} of the Octo dialect that flowrt does not have", known
    close = unknown.nearest
    return f"unknown {what} type {name!r}", f"did you mean {close!r}?" if close else ""
