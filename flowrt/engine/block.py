"""What a block is: a settings class, a constructor that binds, and `run`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationInfo
from pydantic.alias_generators import to_camel

from flowrt.message import Message

if TYPE_CHECKING:
    from flowrt.engine.run import Run
    from flowrt.engine.site import Site


class Settings(BaseModel):
    """The base of every settings class: frozen, unknown keys refused, keys in camelCase.

    A field is a setting: its type validates and compiles, its description is the reference page,
    the JSON Schema and `flowrt describe`.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        arbitrary_types_allowed=True,
        protected_namespaces=(),
    )


def environ_of(info: ValidationInfo) -> Mapping[str, str]:
    """The environment that the file is loaded in, for what a library would look up there.

    That of the process where settings are made without a file.
    """
    environ: Mapping[str, str] = os.environ if info.context is None else info.context.config.environ
    return environ


S = TypeVar("S", bound=Settings)


class Block(Generic[S]):
    """One step of a chain. A subclass names its settings class and implements `run`.

    A block is built once and runs many messages, several at a time: nothing of a run is kept on
    it. Register it under the entry point group `flowrt.blocks`, named as its YAML type.
    """

    Settings: ClassVar[type[Settings]]

    def __init__(self, settings: S, site: Site) -> None:
        self.settings = settings

    async def run(self, message: Message, run: Run) -> Message | None:
        """Work on the message and return it, another one, or None to drop it.

        Raise any exception to fail: the chain wraps it with the block's label.
        """
        raise NotImplementedError


AnyBlock = Block[Any]
