"""Environment values: what is declared, and where the values come from (dialect 1.3)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from flowrt.config.dotenv import parse_dotenv
from flowrt.config.nodes import Text
from flowrt.config.resources import Resources
from flowrt.config.source import read_file
from flowrt.errors import CallError, Fault, Position
from flowrt.message import clean_text

# The last word decides: TOKEN_LIMIT and MAX_TOKENS are no secrets, API_TOKEN_2 is.
_SECRET_NAME = re.compile(
    r"(?i)(?:(?:^|_)(?<!public_)(?:keys?|token|secrets?|password|passwd|passphrase|pass|pwd"
    r"|credentials?|dsn)|apikey|password|secret)(?:_?\d+)?$"
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
        data = read_file(path)
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
