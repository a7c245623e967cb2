"""`template-resource`: render a template file."""

from __future__ import annotations

from pydantic import Field

from flowrt.engine.block import Block, Settings
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.message import Message


class TemplateResourceSettings(Settings):
    """Settings of `template-resource`."""

    id: str = Field(
        min_length=1, description="The template, by the `as` or the id it is declared with."
    )
    target: str = Field(
        default="", description="A variable for the text; without it, the text is the body."
    )
    raw_body: bool = Field(
        default=False, description="Make the body raw content, sent as it is; needs no `target`."
    )
    content_type: str = Field(
        default="text/plain", description="The content type of a raw body; needs `rawBody`."
    )


class TemplateResource(Block[TemplateResourceSettings]):
    """Renders a template of `resources.templates`: its `{{ }}` spans are expressions.

    Spans see what the block's own expressions see. The text becomes the body, or a variable.

    ```yaml
    - type: template-resource
      id: welcome
      target: greeting
    ```
    """

    Settings = TemplateResourceSettings

    def __init__(self, settings: TemplateResourceSettings, site: Site) -> None:
        super().__init__(settings, site)
        if settings.raw_body and settings.target:
            raise site.refuse(
                ("rawBody",), "rawBody is about the body", "leave target out, or rawBody"
            )
        if "content_type" in settings.model_fields_set and not settings.raw_body:
            raise site.refuse(("contentType",), "contentType needs rawBody: true")
        self._template = site.template(settings.id, ("id",))

    async def run(self, message: Message, run: Run) -> Message:
        text = self._template.render(message)
        if self.settings.target:
            message.set(self.settings.target, text)
            return message
        raw = self.settings.raw_body
        kind = self.settings.content_type
        message.body = {"contentType": kind, "rawData": text} if raw else text
        message.raw = raw
        return message
