"""`flowrt queue`: its commands and their options. What they do is imported late."""

from __future__ import annotations

from typing import Annotated

import typer

from flowrt.cli.options import AsJson, Config, Debug, EnvFile, StorageUrl, finish

queue_app = typer.Typer(
    help="Look at messages that nobody could work, and try them again.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="As `ls` shows them.")]
All = Annotated[bool, typer.Option("--all", help="Every parked message.")]


@queue_app.command("ls")
def queue_ls(
    config: Config,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the parked messages, the oldest first: id, where, when, why."""
    from flowrt.cli.queue.parked import ls_command

    finish(debug, lambda: ls_command(config, storage, env_file, as_json))


@queue_app.command("retry")
def queue_retry(
    config: Config,
    ids: Ids = None,
    all_: All = False,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    debug: Debug = False,
) -> None:
    """Put parked messages back in their queue, and print which."""
    from flowrt.cli.queue.parked import retry_command

    finish(debug, lambda: retry_command(config, storage, env_file, ids or [], all_))


@queue_app.command("drop")
def queue_drop(
    config: Config,
    ids: Ids = None,
    all_: All = False,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    debug: Debug = False,
) -> None:
    """Forget parked messages, and print which."""
    from flowrt.cli.queue.parked import drop_command

    finish(debug, lambda: drop_command(config, storage, env_file, ids or [], all_))
