"""What a connector is: settings, and a connection that lives as long as the service runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from flowrt.engine.block import Settings

C = TypeVar("C", bound=Settings)


class Connector(Generic[C]):
    """An outside system that blocks use by the connector's name.

    Built at load, without touching the network. `start` and `stop` come in pairs, possibly several
    times in the life of the object, each time in another event loop. Register it under the entry
    point group `flowrt.connectors`, named as its YAML type.
    """

    Settings: ClassVar[type[Settings]]

    def __init__(self, name: str, settings: C) -> None:
        self.name = name
        self.settings = settings

    def inherit(self, before: Sequence[AnyConnector]) -> None:
        """Note what the connectors of a running service have that this one's is to take over.

        Called before `start` where a reload puts a new service in the place of that one.
        """

    async def start(self) -> None:
        """Get ready. Raise `ConnectorError` where that cannot work."""

    async def open(self) -> None:
        """Let work from outside in: every source that stands on it has started."""

    async def stop(self) -> None:
        """Let go of everything that `start` or a use has opened."""


AnyConnector = Connector[Any]
