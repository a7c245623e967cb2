"""`flowrt`: the command line.

Only typer and the standard library are imported here: `flowrt --help` is what people run most.
Each command is a module of its own, imported when it runs.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from flowrt.cli.memory.commands import memory_app
from flowrt.cli.options import AsJson, Config, Debug, EnvFile, Flow, StorageUrl, finish
from flowrt.cli.queue.commands import queue_app
from flowrt.cli.slack.commands import slack_app

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
app.add_typer(memory_app, name="memory")
app.add_typer(slack_app, name="slack")
app.add_typer(queue_app, name="queue")


@app.command()
def invoke(
    config: Config,
    flow: Flow = None,
    data: Annotated[
        str | None,
        typer.Option(help="The body: JSON, @FILE, or - for standard input. Piped input is read."),
    ] = None,
    variables: Annotated[str | None, typer.Option("--vars", help="A JSON object.")] = None,
    content_type: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="Send --data as raw text of this type, not as JSON."),
    ] = None,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    timeout: Annotated[str, typer.Option(help="Longest run: 30s, 5m; 0 for no limit.")] = "30s",
    message: Annotated[
        bool, typer.Option("--message", help="Print the whole message, not the body alone.")
    ] = False,
    events: Annotated[str | None, typer.Option(help="Write agent events to FILE.")] = None,
    traces: Annotated[str | None, typer.Option(help="Write trace records to FILE.")] = None,
    break_at: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Stop behind a block; show the message."),
    ] = None,
    spies: Annotated[
        str | None, typer.Option(metavar="ADDRESS,…", help="Record what passes these blocks.")
    ] = None,
    mocks: Annotated[
        str | None, typer.Option(metavar="JSON", help="Stand-ins for blocks, by address.")
    ] = None,
    run_debug_config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="input, breakAt, spies and mocks as YAML or JSON."),
    ] = None,
    envelope: Annotated[
        bool, typer.Option("--envelope", help="Print {result|dropped|error, …}; exit 0 either way.")
    ] = False,
    envelope_out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the envelope to FILE.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Send one message through a flow and print the body it ends with, as JSON."""
    from flowrt.cli.invoke import Invocation, invoke_command

    finish(
        debug,
        lambda: invoke_command(
            Invocation(
                config=config,
                flow=flow,
                data=data,
                variables=variables,
                content_type=content_type,
                storage=storage,
                env_file=env_file,
                timeout=timeout,
                message=message,
                events=events,
                traces=traces,
                break_at=break_at,
                spies=spies,
                mocks=mocks,
                debug_config=run_debug_config,
                envelope=envelope,
                envelope_out=envelope_out,
            )
        ),
    )


@app.command()
def run(
    config: Config,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    admin: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Where /healthz, /readyz and /metrics are; or off."),
    ] = "127.0.0.1:39999",
    watch: Annotated[
        bool, typer.Option("--watch", help="Load anew when a file of the service changes.")
    ] = False,
    grace: Annotated[
        str, typer.Option(help="How long running messages may take at the end.")
    ] = "30s",
    traces: Annotated[str | None, typer.Option(help="Write trace records to FILE.")] = None,
    debug: Debug = False,
) -> None:
    """Serve: start the sources of a service and stay up, until SIGTERM or Ctrl-C."""
    from flowrt.cli.run import RunOptions, run_command

    options = RunOptions(config, storage, env_file, admin, watch, grace, traces)
    finish(debug, lambda: run_command(options))


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

    finish(debug, lambda: chat_command(config, flow, thread, user, storage, env_file))


@app.command()
def test(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="*_test.yaml files, or folders of them.")
    ],
    config: Annotated[
        str | None, typer.Option(help="The service; without it, the file beside each suite.")
    ] = None,
    env_file: EnvFile = None,
    traces_dir: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Write trace records of each case.")
    ] = None,
    junit: Annotated[str | None, typer.Option(metavar="FILE", help="Write JUnit's XML.")] = None,
    report_json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a report as JSON; - for stdout.")
    ] = None,
    parallel: Annotated[
        int | None, typer.Option(min=1, help="Cases at once; without it, one for each core.")
    ] = None,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Stop at the first case that does not pass.")
    ] = False,
    case: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this case; may be repeated.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Let suites reach real model providers.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Ask real providers once and keep what they answer.")
    ] = False,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="Run each case in a process of its own.")
    ] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show every case.")] = False,
    debug: Debug = False,
) -> None:
    """Run suites of cases, offline. Exits 0; 1 where a case failed, 2 where one could not run."""
    from flowrt.cli.test import TestRun, test_command

    run = TestRun(
        paths=paths,
        config=config,
        env_file=env_file,
        traces_dir=traces_dir,
        junit=junit,
        report_json=report_json,
        parallel=parallel,
        fail_fast=fail_fast,
        cases=case or [],
        live=live,
        record=record,
        isolated=isolated,
        verbose=verbose,
    )
    finish(debug, lambda: test_command(run))


@app.command()
def validate(
    path: Annotated[str, typer.Argument(help="A YAML file, or a directory of them.")],
    as_json: AsJson = False,
    env_file: EnvFile = None,
    debug: Debug = False,
) -> None:
    """Check a service: every fault with file, line and column. Exits 0 or 2."""
    from flowrt.cli.validate import validate_command

    finish(debug, lambda: validate_command(path, as_json, env_file))


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

    finish(debug, lambda: eval_command(expr, data, variables, environment))


@app.command()
def schema(
    suite: Annotated[bool, typer.Option("--suite", help="Of *_test.yaml files instead.")] = False,
    debug: Debug = False,
) -> None:
    """Print the JSON Schema of service files, or of suites, for editors."""
    from flowrt.cli.schema import schema_command

    finish(debug, lambda: schema_command(suite))


@app.command()
def describe(
    type_: Annotated[
        str, typer.Argument(metavar="TYPE", help="A block, connector or source type.")
    ],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Print what a block, connector or source does, and its settings."""
    from flowrt.cli.describe import describe_command

    finish(debug, lambda: describe_command(type_, as_json))


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        # Text is UTF-8 whatever the locale says (FB-102).
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    app()


if __name__ == "__main__":
    main()
