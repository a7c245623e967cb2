"""The shape of a service document; what is in a block is the block's own business."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

Name = Annotated[str, Field(min_length=1)]

EXTENSION = "x-"
"""Top-level keys that start so are the author's own, for anchors to merge from."""


def _mapping(value: Any) -> Any:
    if not isinstance(value, dict):
        raise PydanticCustomError("dict_type", "expected a mapping")
    return value


def _no_boolean(value: Any) -> Any:
    # pydantic would read `true` as 1.
    if isinstance(value, bool):
        raise PydanticCustomError("int_type", "expected a whole number")
    return value


Count = Annotated[int, BeforeValidator(_no_boolean), Field(ge=1)]

# Kept as they are, places and all: pydantic would build new ones.
Raw = Annotated[Any, BeforeValidator(_mapping, json_schema_input_type=dict[str, Any])]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ServiceInfo(_Model):
    """Who the service is, for logs and for the keys of what it stores."""

    name: Name = Field(description="The service's name.")
    environment: str = Field("", description="Where it runs, such as `production`.")


class EnvVariable(_Model):
    """A variable the document may use as `${NAME}` and expressions as `env.NAME`."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="The variable's name.")
    default: str | int | float | bool | None = Field(
        None, description="Its value where none is set from outside; empty is a value."
    )
    required: bool = Field(
        False, description="Refuse to load unless it is set from outside; a default is not enough."
    )
    secret: bool | None = Field(
        None,
        description="Mask its value in logs, traces and errors; unset, its name decides.",
    )


class TemplateResource(_Model):
    """A text file with `{{ expression }}` spans."""

    resource: Name = Field(description="The file, as a path below the config's folder.")
    as_: Name | None = Field(
        None, alias="as", description="The name it is used by; unset, its path is its name."
    )


class ResourceLists(_Model):
    """The files beside the config that the service uses."""

    env: list[Name] = Field([], description="Env files, later over earlier.")
    templates: list[TemplateResource] = Field([], description="Templates, compiled at load.")


class ConnectorEntry(_Model):
    """A named connector to an outside system."""

    name: Name = Field(description="The name blocks use it by.")
    type: Name = Field(description="The connector's type.")
    settings: Raw | None = Field(None, description="The settings of that type.")


class ProcessorEntry(_Model):
    """A block to be used by `ref`. Its settings may stand under `settings` or beside it."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: Name = Field(description="The name `ref` uses it by.")
    type: Name = Field(description="The block's type.")
    settings: Raw | None = Field(None, description="The settings of that type.")


class Source(_Model):
    """What sends a flow its messages."""

    connector: Name | None = Field(None, description="The connector it listens on.")
    type: Name | None = Field(None, description="The kind of source.")
    settings: Raw | None = Field(None, description="The settings of that kind.")

    @model_validator(mode="after")
    def _needs_one(self) -> Self:
        if self.connector is None and self.type is None:
            raise PydanticCustomError("source", "a source requires a type or a connector")
        return self


class FlowEntry(_Model):
    """A chain of blocks that messages are sent through."""

    name: Name | None = Field(
        None, description="The name it is called by; required without a source."
    )
    source: Source | None = Field(None, description="What sends it messages; unset, callers do.")
    process: list[Raw] = Field(description="Its blocks, in order.")
    error: list[Raw] | None = Field(None, description="Blocks that run when it failed.")
    workers: Count | None = Field(None, description="Messages worked on at the same time.")
    buffer: Count = Field(64, description="Messages that may wait.")
    pool: Count = Field(8, description="Branches of one message worked on at the same time.")

    @model_validator(mode="after")
    def _callable(self) -> Self:
        if self.name is None and self.source is None:
            raise PydanticCustomError(
                "name", "flow without a source requires a name to be callable"
            )
        return self


class Document(_Model):
    """A service: its environment, its connectors and its flows."""

    service: ServiceInfo | None = Field(
        None, description="Who the service is; unset, it is called like its file."
    )
    env: list[EnvVariable] = Field([], description="The variables the document may use.")
    resources: ResourceLists | None = Field(
        None, description="The files beside the config it uses."
    )
    connectors: list[ConnectorEntry] = Field([], description="Connections to outside systems.")
    processors: list[ProcessorEntry] = Field([], description="Blocks to be used by `ref`.")
    flows: list[FlowEntry] = Field([], description="The flows.")
