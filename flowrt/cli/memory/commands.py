"""`flowrt memory`: its commands and their options. Each is a module of its own, imported late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from flowrt.cli.options import AsJson, Config, Debug, EnvFile, StorageUrl, finish

if TYPE_CHECKING:
    from flowrt.cli.memory.opened import Asked

memory_app = typer.Typer(
    help="Look at what agents remember, and forget it. Secrets are masked on the screen.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Agent = Annotated[str | None, typer.Option("--agent", help="Only this agentId.")]
User = Annotated[str, typer.Option("--user", help="The userId.")]
Thread = Annotated[str, typer.Option("--thread", help="The thread's id.")]


def _asked(config: str, storage: str | None, env_file: str | None, as_json: bool) -> Asked:
    from flowrt.cli.memory.opened import Asked

    return Asked(config, storage, env_file, as_json)


@memory_app.command()
def threads(
    config: Config,
    agent: Agent = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Only this user's; \"\" for nobody's.")
    ] = None,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the conversations that are stored, in both tiers."""
    from flowrt.cli.memory.threads import threads_command

    asked = _asked(config, storage, env_file, as_json)
    finish(debug, lambda: threads_command(asked, agent, user))


@memory_app.command()
def show(
    config: Config,
    thread: Annotated[
        str | None, typer.Option("--thread", help="The thread's id; without it, the list.")
    ] = None,
    agent: Agent = None,
    at: Annotated[
        int | None,
        typer.Option(
            "--at", metavar="SEQ", min=1, help="The request that the model saw at this turn."
        ),
    ] = None,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show a conversation: its record, what the model is still shown of it, and the facts."""
    from flowrt.cli.memory.show import show_command
    from flowrt.cli.memory.threads import threads_command

    asked = _asked(config, storage, env_file, as_json)
    if thread is None:
        finish(debug, lambda: threads_command(asked, agent, None))
    else:
        finish(debug, lambda: show_command(asked, thread, agent, at))


@memory_app.command()
def facts(
    config: Config,
    user: User,
    agent: Agent = None,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List what agents know about a user, the last changed first."""
    from flowrt.cli.memory.facts import facts_command

    asked = _asked(config, storage, env_file, as_json)
    finish(debug, lambda: facts_command(asked, user, agent))


@memory_app.command()
def why(
    config: Config,
    fact: Annotated[str, typer.Argument(metavar="FACT", help="The fact's name.")],
    user: User,
    agent: Agent = None,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show where a fact comes from: what was said, and the values before. Exits 1 without one."""
    from flowrt.cli.memory.facts import why_command

    asked = _asked(config, storage, env_file, as_json)
    finish(debug, lambda: why_command(asked, fact, user, agent))


@memory_app.command()
def search(
    config: Config,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question, or a few words.")],
    user: User,
    agent: Agent = None,
    limit: Annotated[int, typer.Option(min=1, help="The most that is shown of an agent.")] = 10,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Search a user's turns and facts as search_memory does, and say why each was found."""
    from flowrt.cli.memory.search import search_command

    asked = _asked(config, storage, env_file, as_json)
    finish(debug, lambda: search_command(asked, query, user, agent, limit))


@memory_app.command()
def clear(
    config: Config,
    thread: Thread,
    agent: Agent = None,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Remove a conversation, in both tiers; the facts that came from it stay."""
    from flowrt.cli.memory.clear import clear_command

    asked = _asked(config, storage, env_file, True)
    finish(debug, lambda: clear_command(asked, thread, agent))


@memory_app.command()
def forget(
    config: Config,
    user: User,
    agent: Agent = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be removed; remove nothing.")
    ] = False,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Remove everything of a user: facts, threads, turns, contexts, vectors, in both tiers.

    Conversations of blocks without agentId have no user: remove those with clear. What a running
    service keeps in its own memory goes with it; what it writes afterwards is not covered.
    """
    from flowrt.cli.memory.forget import forget_command

    asked = _asked(config, storage, env_file, as_json)
    finish(debug, lambda: forget_command(asked, user, agent, dry_run))


@memory_app.command()
def export(
    config: Config,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A folder that is new or empty.")],
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write the memory of both tiers as readable files, exactly as it is.

    Nothing is masked: a secret that somebody said is in the files. They are readable by their owner
    only. Vectors are left out; they are made again from the text.
    """
    from flowrt.cli.memory.export import export_command

    asked = _asked(config, storage, env_file, as_json)
    finish(debug, lambda: export_command(asked, folder))


@memory_app.command("import")
def import_(
    config: Config,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="What export has written.")],
    merge: Annotated[
        bool,
        typer.Option("--merge", help="Add what is missing; whatever is stored already stays."),
    ] = False,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Read an export into the tiers it came from, of any kind of store."""
    from flowrt.cli.memory.import_ import import_command

    asked = _asked(config, storage, env_file, as_json)
    finish(debug, lambda: import_command(asked, folder, merge))


@memory_app.command()
def doctor(
    config: Config,
    storage: StorageUrl = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check what is stored and change nothing. Exits 1 where something is wrong."""
    from flowrt.cli.memory.doctor import doctor_command

    asked = _asked(config, storage, env_file, as_json)
    finish(debug, lambda: doctor_command(asked))
