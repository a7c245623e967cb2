"""`flowrt queue`: messages that were parked because nobody could work them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from flowrt.cli.exits import DONE
from flowrt.config.load import load_config
from flowrt.errors import CallError
from flowrt.observe.masking import mask_text
from flowrt.storage.mail.protocol import Mail, Parked, shown
from flowrt.storage.tiers import Storage


def ls_command(config: str, storage: str | None, env_file: str | None, as_json: bool) -> int:
    """Print the parked messages, the oldest first."""

    async def ls(mail: Mail) -> list[Parked]:
        return await mail.parked()

    for parked in _with_mail(config, storage, env_file, ls):
        print(json.dumps(_row(parked), ensure_ascii=False) if as_json else _line(parked))
    return DONE


def retry_command(
    config: str, storage: str | None, env_file: str | None, ids: list[str], all_: bool
) -> int:
    """Put parked messages back where they came from, and print which."""
    return _each(config, storage, env_file, ids, all_, lambda mail, id_: mail.retry(id_))


def drop_command(
    config: str, storage: str | None, env_file: str | None, ids: list[str], all_: bool
) -> int:
    """Forget parked messages, and print which."""
    return _each(config, storage, env_file, ids, all_, lambda mail, id_: mail.drop(id_))


def _each(
    config: str,
    storage: str | None,
    env_file: str | None,
    ids: list[str],
    all_: bool,
    do: Callable[[Mail, str], Awaitable[bool]],
) -> int:
    if bool(ids) is all_:
        raise CallError("give the ids that `flowrt queue ls` shows, or --all, and not both")

    async def each(mail: Mail) -> list[str]:
        known = [parked.id for parked in await mail.parked()]
        missing = [id_ for id_ in ids if id_ not in known]
        if missing:
            raise CallError(f"no message is parked as {', '.join(missing)}; nothing was done")
        # Somebody else may have been faster with some of them.
        return [id_ for id_ in ids or known if await do(mail, id_)]

    for id_ in _with_mail(config, storage, env_file, each):
        print(id_)
    return DONE


def _with_mail(
    config: str,
    storage: str | None,
    env_file: str | None,
    work: Callable[[Mail], Awaitable[Any]],
) -> Any:
    tiers = Storage.from_urls(load_config(config, env_file=env_file).name, storage)
    mail = tiers.mail()
    if mail is None:
        raise CallError(
            f"storage {tiers.url} carries no messages: they live in the process that sends them; "
            "name the redis://… that `flowrt run` has, with --storage or FLOWRT_STORAGE"
        )

    async def run() -> Any:
        try:
            return await work(mail)
        finally:
            await tiers.close()

    return asyncio.run(run())


def _row(parked: Parked) -> dict[str, Any]:
    return {
        "id": parked.id,
        "where": shown(parked.box),
        "tries": parked.tries,
        "error": mask_text(parked.error),
        "at": datetime.fromtimestamp(parked.at, UTC).isoformat(timespec="seconds"),
        "message": json.loads(parked.data),
    }


def _line(parked: Parked) -> str:
    row = _row(parked)
    return "\t".join(str(row[key]) for key in ("id", "where", "at", "error")).replace("\n", " ")
