"""Options that several commands have, and how a command ends. Only typer is imported here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

Config = Annotated[str, typer.Option("--config", help="A YAML file, or a directory of them.")]
Flow = Annotated[
    str | None, typer.Option("--flow", help="The flow; not needed where there is only one.")
]
StorageUrl = Annotated[
    str | None,
    typer.Option(
        "--storage",
        help="sqlite:PATH, redis://… or memory:. Else FLOWRT_STORAGE, else .flowrt/state.db.",
    ),
]
EnvFile = Annotated[str | None, typer.Option("--env-file", help="A file of KEY=VALUE lines.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def finish(debug: bool, command: Callable[[], int]) -> None:
    """Run a command and end with its exit code."""
    from flowrt.cli.exits import run_command

    raise typer.Exit(run_command(command, debug=debug))
