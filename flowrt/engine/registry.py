"""Types by name: entry points of installed packages, flowrt's own among them."""

from __future__ import annotations

import difflib
from importlib import metadata
from typing import Any

BLOCKS = "flowrt.blocks"
CONNECTORS = "flowrt.connectors"
SOURCES = "flowrt.sources"


class UnknownType(LookupError):
    """No installed package registers this `name`. `nearest` is the closest one, or None."""

    def __init__(self, group: str, name: str, known: list[str]) -> None:
        self.name = name
        self.known = known
        close = difflib.get_close_matches(name, known, n=1)
        self.nearest = close[0] if close else None
        super().__init__(f"{group} has no {name!r}")


class Registry:
    """The classes registered under one entry point group, loaded on first use.

    flowrt's own entry points are looked at first: reading those of every installed package costs
    ten milliseconds, which a file that uses only built-in types does not pay.
    """

    def __init__(self, group: str) -> None:
        self.group = group
        self._loaded: dict[str, Any] = {}
        self._own: dict[str, metadata.EntryPoint] | None = None

    def get(self, name: str) -> Any:
        """The class registered as `name`. Raises `UnknownType`."""
        if name not in self._loaded:
            point = self._own_points().get(name) or self._all_points().get(name)
            if point is None:
                raise UnknownType(self.group, name, self.names())
            self._loaded[name] = point.load()
        return self._loaded[name]

    def add(self, name: str, kind: Any) -> None:
        """Register a class in this process, without a package: for tests and applications."""
        self._loaded[name] = kind

    def own_names(self) -> list[str]:
        """The names that flowrt itself brings, sorted."""
        return sorted(self._own_points())

    def names(self) -> list[str]:
        """Every registered name, sorted."""
        return sorted({*self._all_points(), *self._loaded})

    def _own_points(self) -> dict[str, metadata.EntryPoint]:
        if self._own is None:
            points = metadata.distribution("flowrt").entry_points
            self._own = {point.name: point for point in points if point.group == self.group}
        return self._own

    def _all_points(self) -> dict[str, metadata.EntryPoint]:
        every = {point.name: point for point in metadata.entry_points(group=self.group)}
        return every | self._own_points()


blocks = Registry(BLOCKS)
connectors = Registry(CONNECTORS)
sources = Registry(SOURCES)
