"""Reaching what lives in another process of the service: a question, and whether one took it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Take = Callable[[dict[str, Any]], bool]
"""Takes a question of another process; whether it was for something that lives here."""


class Control(Protocol):
    """The other processes of the service. Questions are JSON."""

    async def ask(self, question: dict[str, Any]) -> bool:
        """Ask all others; whether one of them took it. A store that fails counts as nobody."""
        ...

    async def serve(self, take: Take) -> None:
        """Have the questions of others answered by `take` from now on."""
        ...

    async def close(self) -> None:
        """Answer nothing more. `serve` may follow, in another event loop."""
        ...


class Alone:
    """There are no others."""

    async def ask(self, question: dict[str, Any]) -> bool:
        return False

    async def serve(self, take: Take) -> None:
        """Nobody will ask."""

    async def close(self) -> None:
        """Nothing was begun."""
