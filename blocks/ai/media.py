"""The settings of AI blocks for files: what they need of each other."""

from __future__ import annotations

from typing import Protocol

from flowrt.agent.media import MediaSpec
from flowrt.engine.site import Site
from flowrt.expr import Expression
from flowrt.llm.connector import ModelConnector


class _Settings(Protocol):
    @property
    def connector(self) -> str: ...
    @property
    def input(self) -> Expression | None: ...
    @property
    def attachments(self) -> Expression | None: ...
    @property
    def response_media(self) -> str | None: ...


def media_spec(
    settings: _Settings, connector: ModelConnector, site: Site, *, keep: bool = False
) -> MediaSpec:
    """What a block does with files. Raises `Refusal` for settings that cannot work."""
    if settings.attachments is not None and settings.input is None:
        raise site.refuse(
            ("attachments",),
            "attachments needs input: without it, the model also gets the body with the files in "
            "it, as text",
        )
    if settings.attachments is not None and not connector.media:
        raise site.refuse(
            ("attachments",),
            f"attachments needs a connector that takes pictures and documents; "
            f"{settings.connector!r} takes text alone",
        )
    if keep and settings.attachments is None:
        raise site.refuse(("keepAttachments",), "keepAttachments needs attachments")
    return MediaSpec(settings.attachments, keep, settings.response_media)
