"""The settings of `ai-agent` that gate tool calls: what they need of each other."""

from __future__ import annotations

from blocks.ai.ai_agent_settings import AiAgentSettings
from flowrt.agent.agent import AGE_LIMIT
from flowrt.agent.gates import GateSpec
from flowrt.engine.site import Site

_EVENT = "tool_authorization"


def gate_spec(settings: AiAgentSettings, site: Site) -> GateSpec | None:
    """How the agent learns of answers. Raises `Refusal` for settings that cannot work."""
    asked = settings.authorize_id
    allow = settings.authorize_allow
    if asked is None and allow is not None:
        raise site.refuse(
            ("authorizeAllow",), "authorizeAllow needs authorizeId: it says which call is answered"
        )
    if asked is not None and allow is None:
        raise site.refuse(
            ("authorizeId",), "authorizeId needs authorizeAllow: it says what the answer is"
        )
    if asked is not None and settings.memory_thread_id is None:
        raise site.refuse(
            ("authorizeId",), "authorizeId needs memoryThreadId: an answer is for a thread's run"
        )
    if asked is None and "authorize_timeout" in settings.model_fields_set:
        raise site.refuse(("authorizeTimeout",), "authorizeTimeout needs authorizeId")
    _check_timeout(settings.authorize_timeout, site)
    for index, tool in enumerate(settings.tools):
        if tool.authorize is not None:
            _check_tool(("tools", index, "authorize"), settings, site)
    if asked is None or allow is None:
        return None
    return GateSpec(asked, allow, settings.authorize_timeout)


def _check_timeout(timeout: float, site: Site) -> None:
    if not 0 < timeout < AGE_LIMIT:
        raise site.refuse(
            ("authorizeTimeout",),
            f"authorizeTimeout must be more than 0 and less than {AGE_LIMIT / 60:.0f}m, "
            "when a run is ended",
        )


def _check_tool(place: tuple[str | int, ...], settings: AiAgentSettings, site: Site) -> None:
    if settings.authorize_id is None:
        raise site.refuse(
            place, "a tool's authorize needs authorizeId: nobody could answer its gated calls"
        )
    emit = settings.emit
    if settings.events is None or (emit is not None and _EVENT not in emit):
        raise site.refuse(
            place,
            f"a tool's authorize needs events that emit {_EVENT}: nobody would be asked",
            f"add {_EVENT} to emit" if settings.events is not None else "add events",
        )
