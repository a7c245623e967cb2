"""The memory of a service as readable files.

``agents/<agent>/threads/<thread>/`` has `thread.json`, `turns.jsonl`, `working.json` and
`archived.jsonl`, ``agents/<agent>/users/<user>.json`` the facts, ``agents/<agent>/frames/`` what
requests have in common, and ``threads/<thread>/working.json`` the conversations of blocks without
`agentId`. ``volatile/`` has the same of the volatile tier. `memory.json` says what wrote it, and is
written last.

Ids are in the files. The names of folders are for people, and no id leads out of its folder.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, RootModel, ValidationError

from flowrt.errors import CallError

MANIFEST = "memory.json"

_VOLATILE = "volatile"

_LONGEST = 100
"""Characters of an id in a name: file systems take 255 bytes."""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


F = TypeVar("F", bound=BaseModel)


class Manifest(_File):
    """`memory.json`."""

    format: Literal[1] = 1
    service: str


class ThreadFile(_File):
    """`thread.json`. Times are seconds since 1970."""

    agent: str
    thread: str
    user: str
    title: str
    created: float
    active: float


class TurnLine(_File):
    """A line of `turns.jsonl`."""

    seq: int
    role: Literal["user", "assistant"]
    text: str
    tokens: int
    attrs: dict[str, Any]
    at: float


class ArchivedLine(RootModel[dict[str, Any]]):
    """A line of `archived.jsonl`: a message, notes about the user, or {base64}."""


class WorkingFile(_File):
    """`working.json`: the log's head, and its entries: messages, or {base64} for anything else."""

    agent: str | None
    thread: str
    head: Any
    messages: list[dict[str, Any]]

    @property
    def entries(self) -> list[bytes]:
        """The entries as the log has them."""
        return [stored(each) for each in self.messages]


class FactValue(_File):
    """A value of a fact, and the turn it came from."""

    value: str
    thread: str
    seq: int
    at: float


class FactFile(_File):
    """A fact: its values, oldest first, the last one the newest."""

    name: str
    values: list[FactValue]


class UserFile(_File):
    """`<user>.json`: the facts, the last changed first."""

    agent: str
    user: str
    facts: list[FactFile]


class FrameFile(_File):
    """`frames/<name>.json`: what requests of an agent have in common."""

    agent: str
    name: str
    frame: dict[str, Any]


@dataclass(slots=True)
class Conversation:
    """A thread's files. `thread` is None for one of a block without `agentId`.

    `archived` is what has left its working context.
    """

    thread: ThreadFile | None
    turns: list[TurnLine] = field(default_factory=list)
    working: WorkingFile | None = None
    archived: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Archive:
    """Everything in a folder; `volatile` is of the volatile tier, None where it was not reached."""

    conversations: list[Conversation]
    users: list[UserFile]
    frames: list[FrameFile]
    volatile: Archive | None = None


def readable(entry: bytes) -> dict[str, Any]:
    """An entry of a log as JSON where nothing of it is lost that way; else its bytes."""
    try:
        message = json.loads(entry)
    except ValueError:
        message = None
    if isinstance(message, dict) and _compact(message) == entry:
        return message
    return {"base64": base64.b64encode(entry).decode()}


def stored(told: dict[str, Any]) -> bytes:
    """An entry as a log has it, from what `readable` gives."""
    return base64.b64decode(told["base64"]) if set(told) == {"base64"} else _compact(told)


def _compact(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


class Names:
    """Names for ids in one folder: no two alike, also where the file system ignores case."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, id_: str) -> str:
        """A name for an id that none of those before has."""
        name = quote(id_, safe="")
        # `.` and `..` are folders already, and "" is none. A `%` alone comes from no id.
        if not name.strip("."):
            name = name.replace(".", "%2E") or "%"
        if len(name) > _LONGEST or name.casefold() in self._taken:
            name = f"{name[:_LONGEST]}%{hashlib.sha256(id_.encode()).hexdigest()[:16]}"
        self._taken.add(name.casefold())
        return name


class Writer:
    """Writes an archive. Every method raises `CallError`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[Path, Names] = {}
        self._agents: dict[str, Path] = {}

    @classmethod
    def into(cls, folder: Path) -> Writer:
        """One that writes into a folder, which must be new or empty."""
        _make(folder)
        try:
            taken = any(folder.iterdir())
        except OSError as error:
            raise CallError(f"cannot write to {str(folder)!r}: {error.strerror}") from error
        if taken:
            raise CallError(f"{str(folder)!r} is not empty; name a folder that is new or empty")
        return cls(folder)

    def volatile(self) -> Writer:
        """One for the volatile tier of the same archive."""
        folder = self._folder / _VOLATILE
        _make(folder)
        return Writer(folder)

    def conversation(self, conversation: Conversation) -> None:
        """Write a thread."""
        thread, working = conversation.thread, conversation.working
        if thread is not None:
            folder = self._child(self._agent(thread.agent) / "threads", thread.thread)
            _write(folder / "thread.json", _pretty(thread))
            _write(folder / "turns.jsonl", _lines(turn.model_dump() for turn in conversation.turns))
            if conversation.archived:
                _write(folder / "archived.jsonl", _lines(conversation.archived))
        elif working is not None:
            parent = self._folder if working.agent is None else self._agent(working.agent)
            folder = self._child(parent / "threads", working.thread)
        if working is not None:
            _write(folder / "working.json", _pretty(working))

    def user(self, user: UserFile) -> None:
        """Write what is known about a person."""
        path = self._child(self._agent(user.agent) / "users", user.user)
        _write(path.with_name(f"{path.name}.json"), _pretty(user))

    def frame(self, frame: FrameFile) -> None:
        """Write what requests have in common."""
        path = self._child(self._agent(frame.agent) / "frames", frame.name)
        _write(path.with_name(f"{path.name}.json"), _pretty(frame))

    def finish(self, service: str) -> None:
        """Say that the archive is whole."""
        _write(self._folder / MANIFEST, _pretty(Manifest(service=service)))

    def _agent(self, agent: str) -> Path:
        if agent not in self._agents:
            self._agents[agent] = self._child(self._folder / "agents", agent)
        return self._agents[agent]

    def _child(self, folder: Path, id_: str) -> Path:
        return folder / self._names.setdefault(folder, Names()).of(id_)


def _pretty(file: BaseModel) -> str:
    return json.dumps(file.model_dump(), ensure_ascii=False, indent=1) + "\n"


def _lines(told: Iterable[dict[str, Any]]) -> str:
    return "".join(f"{_compact(each).decode()}\n" for each in told)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CallError(f"cannot write {str(folder)!r}: {error.strerror}") from error


def _write(path: Path, text: str) -> None:
    _make(path.parent)
    try:
        # Somebody's conversations: for the owner's eyes, whatever the umask is.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
    except OSError as error:
        raise CallError(f"cannot write {str(path)!r}: {error.strerror}") from error


def read_archive(folder: Path) -> Archive:
    """Read and check a whole archive. Raises `CallError` naming the file and what is wrong."""
    if not (folder / MANIFEST).is_file():
        raise CallError(
            f"{str(folder)!r} has no {MANIFEST}: it is no export, or one that was not finished"
        )
    _parse(Manifest, folder / MANIFEST)
    archive = _read(folder)
    volatile = folder / _VOLATILE
    if volatile.is_dir():
        archive.volatile = _read(volatile)
    return archive


def _read(folder: Path) -> Archive:
    threads = [*folder.glob("threads/*/"), *folder.glob("agents/*/threads/*/")]
    users = [_parse(UserFile, path) for path in sorted(folder.glob("agents/*/users/*.json"))]
    frames = [_parse(FrameFile, path) for path in sorted(folder.glob("agents/*/frames/*.json"))]
    return Archive([_conversation(path) for path in sorted(threads)], users, frames)


def _conversation(folder: Path) -> Conversation:
    thread, working = folder / "thread.json", folder / "working.json"
    turns = list(_each(TurnLine, folder / "turns.jsonl"))
    for number, turn in enumerate(turns, 1):
        if turn.seq != number:
            raise CallError(
                f"{folder / 'turns.jsonl'}:{number}: seq must be {number}, found {turn.seq}"
            )
    if turns and not thread.exists():
        raise CallError(f"{thread}: the file is missing, and there are turns beside it")
    return Conversation(
        _parse(ThreadFile, thread) if thread.exists() else None,
        turns,
        _parse(WorkingFile, working) if working.exists() else None,
        [each.root for each in _each(ArchivedLine, folder / "archived.jsonl")],
    )


def _each(model: type[F], path: Path) -> Iterator[F]:
    """The lines of a file; none where there is no such file."""
    if path.exists():
        # Not splitlines: JSON leaves U+2028 and its like as they are.
        for number, line in enumerate(_text(path).split("\n"), 1):
            if line:
                yield _checked(model, line, f"{path}:{number}")


def _parse(model: type[F], path: Path) -> F:
    return _checked(model, _text(path), str(path))


def _checked(model: type[F], text: str, where: str) -> F:
    try:
        return model.model_validate(json.loads(text))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise CallError(f"{where}: {place}: {first['msg']}") from error
    except ValueError as error:
        raise CallError(f"{where}: not valid JSON: {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise CallError(f"cannot read {str(path)!r}: {error}") from error
