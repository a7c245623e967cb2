"""The settings of `mcp-router`: what a client may call, read and ask for."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from blocks.ai.ai_agent_settings import ToolName
from blocks.ai.fields import JsonObject, Words, refused, unique
from blocks.mcp.uri import UriPattern
from flowrt.engine.block import Settings
from flowrt.engine.fields import Blocks


class McpAnnotations(Settings):
    """Hints for the client; nothing here enforces them."""

    read_only_hint: bool | None = Field(default=None, description="It changes nothing.")
    destructive_hint: bool | None = Field(default=None, description="It may delete or overwrite.")
    idempotent_hint: bool | None = Field(
        default=None, description="Calling it again changes nothing more."
    )
    open_world_hint: bool | None = Field(
        default=None, description="It reaches systems outside of this service."
    )


class McpTool(Settings):
    """A tool: a chain that a client may call. Its body is the arguments."""

    name: ToolName = Field(description="The tool's name: letters, digits, `_` and `-`, up to 128.")
    description: Words = Field(description="Tells the model what the tool does and when to use it.")
    title: str | None = Field(default=None, description="Its name for people.")
    input_schema: JsonObject = Field(
        default_factory=lambda: {"type": "object"},
        description="JSON Schema of the arguments, as JSON text or native YAML.",
    )
    output_schema: JsonObject | None = Field(
        default=None,
        description="JSON Schema of the result, which is then given as a value as well.",
    )
    annotations: McpAnnotations | None = Field(default=None, description="Hints for the client.")
    process: Blocks = Field(description="The chain; its final body is the result.")

    @model_validator(mode="before")
    @classmethod
    def _no_gate(cls, values: Any) -> Any:
        if isinstance(values, dict) and "authorize" in values:
            raise refused(
                "mcp", "'authorize' belongs to the tools of an ai-agent: here nobody can answer"
            )
        return values


class McpResource(Settings):
    """A text that a client may read: a template, rendered for each reading."""

    uri: str | None = Field(default=None, min_length=1, description="Its address.")
    uri_template: str | None = Field(
        default=None,
        min_length=1,
        description="Addresses such as `order://{id}`; the template sees `body.id`.",
    )
    name: Words = Field(description="The resource's name.")
    description: str | None = Field(default=None, description="What it holds.")
    mime_type: str = Field(default="text/plain", description="The type of the text.")
    resource: Words = Field(description="A template resource, by alias or id.")

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if (self.uri is None) == (self.uri_template is None):
            raise refused("mcp", "a resource has a uri or a uriTemplate, one of the two")
        if self.uri_template is not None:
            try:
                UriPattern(self.uri_template)
            except ValueError as error:
                raise refused("mcp", str(error)) from error
        return self


class McpArgument(Settings):
    """An argument of a prompt."""

    name: Words = Field(description="The argument's name; the template sees `body.NAME`.")
    description: str | None = Field(default=None, description="What it is.")
    required: bool = Field(default=False, description="The prompt is not given without it.")


class McpPrompt(Settings):
    """A prompt that a client may ask for: a template, filled with its arguments."""

    name: Words = Field(description="The prompt's name.")
    description: str | None = Field(default=None, description="What it is for.")
    arguments: list[McpArgument] = Field(
        default_factory=list, description="What it is filled with."
    )
    resource: Words = Field(description="A template resource, by alias or id.")


class McpRouterSettings(Settings):
    """Settings of `mcp-router`."""

    server_name: str | None = Field(
        default=None, min_length=1, description="The server's name; else the block's, else flowrt."
    )
    tools: list[McpTool] = Field(default_factory=list, description="What clients may call.")
    resources: list[McpResource] = Field(default_factory=list, description="What they may read.")
    prompts: list[McpPrompt] = Field(default_factory=list, description="What they may ask for.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.tools or self.resources or self.prompts):
            raise refused("mcp", "mcp-router needs tools, resources or prompts")
        unique([tool.name for tool in self.tools], "tool")
        unique([prompt.name for prompt in self.prompts], "prompt")
        unique([each.uri or each.uri_template or "" for each in self.resources], "resource")
        return self
