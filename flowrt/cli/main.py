"""`flowrt`: the command line.

Only typer and the standard library are imported here: `flowrt --help` is what people run most.
Each command is a module of its own, imported when it runs.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Annotated

import typer

EXIT_CODES = """Exit codes: 0 done or dropped; 1 the flow failed; 2 the file or the call is wrong;
130 interrupted."""

app = typer.Typer(
    name="flowrt",
    help="Run declarative YAML flows whose agents remember.\n\n" + EXIT_CODES,
    epilog=EXIT_CODES,
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
memory_app = typer.Typer(
    help="Look at what agents remember, and forget it.", rich_markup_mode=None, no_args_is_help=True
)
app.add_typer(memory_app, name="memory")

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


@app.command()
def invoke(
    config: Config,
    flow: Flow = None,
    data: Annotated[
        str | None,
        typer.Option(help="The body: JSON, @FILE, or - for standard input. Piped input is read."),
    ] = None,
    variables: Annotated[str | None, typer.Option("--vars", help="A JSON object.")] = None,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    timeout: Annotated[str, typer.Option(help="Longest run: 30s, 5m; 0 for no limit.")] = "30s",
    message: Annotated[
        bool, typer.Option("--message", help="Print the whole message, not the body alone.")
    ] = False,
    events: Annotated[str | None, typer.Option(help="Write agent events to FILE.")] = None,
    traces: Annotated[str | None, typer.Option(help="Write trace records to FILE.")] = None,
    debug: Debug = False,
) -> None:
    """Send one message through a flow and print the body it ends with, as JSON."""
    from flowrt.cli.invoke import Invocation, invoke_command

    _finish(
        debug,
        lambda: invoke_command(
            Invocation(
                config, flow, data, variables, storage, env_file, timeout, message, events, traces
            )
        ),
    )


@app.command()
def chat(
    config: Config,
    flow: Flow = None,
    thread: Annotated[str, typer.Option(help="The threadId to talk on.")] = "chat",
    user: Annotated[str | None, typer.Option(help="A userId to send along.")] = None,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    debug: Debug = False,
) -> None:
    """Talk to a flow in the terminal: each line is sent as {threadId, message}."""
    from flowrt.cli.chat import chat_command

    _finish(debug, lambda: chat_command(config, flow, thread, user, storage, env_file))


@app.command()
def validate(
    path: Annotated[str, typer.Argument(help="A YAML file, or a directory of them.")],
    as_json: AsJson = False,
    env_file: EnvFile = None,
    debug: Debug = False,
) -> None:
    """Check a service: every fault with file, line and column. Exits 0 or 2."""
    from flowrt.cli.validate import validate_command

    _finish(debug, lambda: validate_command(path, as_json, env_file))


@app.command(name="eval")
def eval_(
    expr: Annotated[str, typer.Option("--expr", help="The CEL expression.")],
    data: Annotated[
        str | None,
        typer.Option(help="The body: JSON, @FILE, or - for standard input. Piped input is read."),
    ] = None,
    variables: Annotated[str | None, typer.Option("--vars", help="A JSON object.")] = None,
    environment: Annotated[
        str | None, typer.Option("--env", help="A JSON object of texts, seen as env.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Evaluate an expression and print {"ok", "result", "error"} as one line of JSON."""
    from flowrt.cli.eval import eval_command

    _finish(debug, lambda: eval_command(expr, data, variables, environment))


@app.command()
def schema(debug: Debug = False) -> None:
    """Print the JSON Schema of service files, for editors."""
    from flowrt.cli.schema import schema_command

    _finish(debug, schema_command)


@app.command()
def describe(
    type_: Annotated[str, typer.Argument(metavar="TYPE", help="A block or connector type.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Print what a block or connector does, and its settings."""
    from flowrt.cli.describe import describe_command

    _finish(debug, lambda: describe_command(type_, as_json))


@memory_app.command("show")
def memory_show(
    config: Config,
    thread: Annotated[str | None, typer.Option(help="A thread; without it, the list.")] = None,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the stored threads, or one thread's messages."""
    from flowrt.cli.memory import show_command

    _finish(debug, lambda: show_command(config, thread, storage, env_file, as_json))


@memory_app.command("clear")
def memory_clear(
    config: Config,
    thread: Annotated[str, typer.Option(help="The thread to forget.")],
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    debug: Debug = False,
) -> None:
    """Forget a thread, in both tiers."""
    from flowrt.cli.memory import clear_command

    _finish(debug, lambda: clear_command(config, thread, storage, env_file))


def _finish(debug: bool, command: Callable[[], int]) -> None:
    from flowrt.cli.exits import run_command

    raise typer.Exit(run_command(command, debug=debug))


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        # Text is UTF-8 whatever the locale says (FB-102).
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    app()


if __name__ == "__main__":
    main()
