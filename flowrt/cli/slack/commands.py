"""`flowrt slack`: its commands and their options. Each is a module of its own, imported late."""

from __future__ import annotations

from typing import Annotated

import typer

from flowrt.cli.options import Debug, finish

slack_app = typer.Typer(
    help="Try a Slack bot without Slack.", rich_markup_mode=None, no_args_is_help=True
)


@slack_app.callback()
def _group() -> None:
    """Try a Slack bot without Slack."""


@slack_app.command()
def replay(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Events, one JSON object a line, or a list.")
    ],
    url: Annotated[
        str, typer.Option("--url", help="Where the bot takes events.")
    ] = "http://127.0.0.1:8080/slack/events",
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help="Move all posts to now: a bot answers no post twice, recorded ones too."
        ),
    ] = False,
    debug: Debug = False,
) -> None:
    """Send recorded events to a running bot, signed with SLACK_SIGNING_SECRET."""
    from flowrt.cli.slack.replay import replay_command

    finish(debug, lambda: replay_command(file, url, fresh=fresh))
