"""Environment values: what is declared, where values come from, and putting them in (dialect 1.3).

Values are put into scalars that are already parsed, once: whatever a value contains, it stays the
text of that scalar (FB-96).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flowrt.config.dotenv import parse_dotenv
from flowrt.config.faults import nearest
from flowrt.config.nodes import Items, Scalar, Table, Text
from flowrt.config.resources import Resources
from flowrt.config.scalars import NotJson, read_scalar
from flowrt.errors import CallError, Fault, Position
from flowrt.message import clean_text

_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NOT_SUBSTITUTED = ("env", "resources")
_SECRET_NAME = re.compile(
    r"(?i)(?:^|_)(?:(?:api|access|private|signing)?_?keys?|tokens?|secrets?|passw(?:or)?d|passphrase"
    r"|pwd|credentials?|dsn)(?:_|$)|(?:apikey|token|secret|password)$"
)


@dataclass(frozen=True, slots=True)
class Declaration:
    """One entry of `env:` that is fit to be used."""

    name: str
    default: str | None
    required: bool
    secret: bool
    position: Position
    path: str


@dataclass(frozen=True, slots=True)
class EnvValues:
    """The declared variables that have a value.

    `secrets` are those of them whose value must not be shown: declared `secret: true`, or named
    like a secret and not declared `secret: false`. `unset` are the declared ones without a value.
    """

    values: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()


def looks_secret(name: str) -> bool:
    """Whether a variable of this name holds a secret, going by the name."""
    return _SECRET_NAME.search(name) is not None


@dataclass(frozen=True, slots=True)
class EnvFiles:
    """The values of the env files, and which of the files were there."""

    values: dict[str, str]
    found: list[str]
    absent: list[str]


def read_env_files(
    *,
    cwd: Path,
    environ: Mapping[str, str],
    env_file: str | os.PathLike[str] | None,
    entries: Iterable[Text],
    resources: Resources,
    faults: list[Fault],
) -> EnvFiles:
    """Read the chain of env files, later over earlier.

    The order: ``.env`` in `cwd`, the file named by ``FLOWRT_ENV_FILE`` (else ``OCTO_ENV_FILE``),
    `env_file`, then the `resources.env` entries. One that does not exist is passed over, except
    `env_file`, which somebody asked for just now: that raises `CallError`.
    """
    files = EnvFiles({}, [], [])
    _overlay(files, cwd / ".env", ".env", faults)
    if named := environ.get("FLOWRT_ENV_FILE") or environ.get("OCTO_ENV_FILE"):
        _overlay(files, cwd / named, named, faults)
    if env_file is not None:
        _overlay(files, cwd / env_file, os.fspath(env_file), faults)
        if os.fspath(env_file) in files.absent:
            raise CallError(f"the env file {os.fspath(env_file)!r} does not exist")
    for entry in entries:
        try:
            _overlay(files, resources.locate(entry), str(entry), faults)
        except ValueError as error:
            faults.append(Fault(entry.position, "resources.env", str(error)))
    return files


def _overlay(files: EnvFiles, path: Path, shown: str, faults: list[Fault]) -> None:
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        files.absent.append(shown)
        return
    except OSError as error:
        raise CallError(f"the env file {shown!r} cannot be read: {error.strerror}") from error
    values, found = parse_dotenv(data, shown)
    files.values.update(values)
    files.found.append(shown)
    faults += found


def resolve(
    declarations: Iterable[Declaration],
    environ: Mapping[str, str],
    files: EnvFiles,
    faults: list[Fault],
) -> EnvValues:
    """The value of each declared variable: from `environ`, else the env files, else its default.

    `required` asks for a value from outside; an empty one is a value (FB-98).
    """
    values: dict[str, str] = {}
    secrets: dict[str, str] = {}
    unset = set()
    for declared in declarations:
        name = declared.name
        outside = environ.get(name, files.values.get(name))
        if outside is None and declared.required:
            faults.append(_not_set(declared, files))
        value = declared.default if outside is None else clean_text(outside)
        if value is None:
            unset.add(name)
            continue
        values[name] = value
        if declared.secret:
            secrets[name] = value
    return EnvValues(values, secrets, frozenset(unset))


def _not_set(declared: Declaration, files: EnvFiles) -> Fault:
    rule = "a default does not count as set" if declared.default is not None else ""
    looked = [*files.found, *(f"{name} (does not exist)" for name in files.absent)]
    return Fault(
        declared.position,
        declared.path,
        f'required environment variable "{declared.name}" is not set',
        rule,
        f"set it in the environment or in one of: {', '.join(looked)}",
    )


class Substitution:
    """Puts environment values into a document, in place."""

    def __init__(self, env: EnvValues, reported: Iterable[str], faults: list[Fault]) -> None:
        self._values = env.values
        self._unset = env.unset
        # Required variables that are missing were reported where they are declared.
        self._reported = frozenset(reported)
        self._faults = faults

    def document(self, document: Table) -> None:
        """Everything of a document but what declares values and names files."""
        for key, value in document.items():
            if key not in _NOT_SUBSTITUTED:
                document[key] = self._node(value, document.path_of(key))

    def _node(self, node: Any, path: str) -> Any:
        if isinstance(node, Text):
            return self._text(node, path) if "${" in node else node
        if isinstance(node, Table):
            for key, value in node.items():
                if isinstance(value, Text):
                    if "${" in value:
                        node[key] = self._text(value, node.path_of(key))
                elif isinstance(value, dict | list):
                    self._node(value, "")
        elif isinstance(node, Items):
            for index, value in enumerate(node):
                node[index] = self._node(value, f"{node.path}[{index}]")
        return node

    def _text(self, text: Text, path: str) -> Text:
        names = _PLACEHOLDER.findall(text)
        if not names:
            return text
        missing = [name for name in dict.fromkeys(names) if name not in self._values]
        for name in missing:
            self._report(name, text.position, path)
        if missing:
            return text
        resolved = _PLACEHOLDER.sub(lambda match: self._values[match[1]], text)
        new = Text(resolved, text.position, text.literal, origin=str(text))
        if not text.literal and _PLACEHOLDER.fullmatch(text):
            new.scalar = _typed(resolved)
        return new

    def _report(self, name: str, position: Position, path: str) -> None:
        if name in self._reported:
            return
        if name in self._unset:
            found = f'environment variable "{name}" is referenced but not set and has no default'
            way_out = "set it, or give it a default"
        else:
            found = f'references undeclared environment variable "{name}"'
            close = nearest(name, [*self._values, *self._unset])
            way_out = f"did you mean {close!r}?" if close else "declare it under `env:`"
        self._faults.append(Fault(position, path, found, way_out=way_out))


def _typed(text: str) -> Scalar:
    """The scalar a value reads as; empty stays empty text, a list or mapping stays text."""
    try:
        return read_scalar(text) if text else text
    except NotJson:
        return text
