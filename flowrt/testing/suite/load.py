"""Suite files: found beside their services, read and checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from flowrt.config.faults import faults_from, nearest
from flowrt.config.nodes import Items, Table
from flowrt.config.yaml import load_yaml
from flowrt.errors import CallError, ConfigError, Fault
from flowrt.testing.suite.model import Case, Suite

ENDINGS = ("_test.yaml", "_test.yml")


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """A suite with its place, and the config of the service it is for."""

    path: Path
    config: Path
    suite: Suite


def find_suites(paths: Iterable[str]) -> list[Path]:
    """The suite files that are named, and those in the folders that are, however deep.

    Hidden folders are passed over. Raises `CallError` for a path that is neither, and where there
    is no suite at all.
    """
    found: list[Path] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            found += sorted(_in_folder(path))
        elif path.is_file():
            if not path.name.endswith(ENDINGS):
                raise CallError(f"{given!r} is no suite: its name must end in _test.yaml")
            found.append(path)
        else:
            raise CallError(f"there is no suite file or folder at {given!r}")
    if not found:
        raise CallError(f"no *_test.yaml files in {', '.join(map(repr, paths))}")
    return list(dict.fromkeys(found))


def _in_folder(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.name.endswith(ENDINGS) and not hidden and path.is_file():
            yield path


def load_suite(path: Path, config: str | None = None) -> SuiteFile:
    """Read a suite. `x_test.yaml` is for `x.yaml` beside it, else for its whole folder.

    Raises `ConfigError` with every fault of the file, `CallError` where it cannot be read.
    """
    try:
        table = load_yaml(path.read_bytes(), str(path))
    except OSError as error:
        raise CallError(f"the suite {str(path)!r} cannot be read: {error.strerror}") from error
    try:
        suite = Suite.model_validate(table)
    except ValidationError as error:
        raise ConfigError(faults_from(error, table, Suite)) from error
    faults = list(_faults(suite, table))
    if faults:
        raise ConfigError(faults)
    return SuiteFile(path, Path(config) if config is not None else _config_of(path), suite)


def _config_of(path: Path) -> Path:
    for ending in (".yaml", ".yml"):
        beside = path.with_name(path.stem.removesuffix("_test") + ending)
        if beside.is_file():
            return beside
    return path.parent


def _faults(suite: Suite, table: Table) -> Iterator[Fault]:
    """What the cases of a file have to agree on among each other."""
    cases = table["cases"]
    assert isinstance(cases, Items)
    first: dict[str, Table] = {}
    for case, entry in zip(suite.cases, cases, strict=True):
        if case.name in first:
            other = first[case.name].value_positions["name"]
            found = f"two cases are called {case.name!r}"
            yield Fault(
                entry.value_positions["name"], entry.path_of("name"), found, f"first at {other}"
            )
        first.setdefault(case.name, entry)
        yield from _input_faults(suite, case, entry)
        for address in [each for each, mock in case.mocks.items() if mock is None]:
            if address not in suite.mocks:
                place = entry["mocks"]
                yield Fault(
                    place.key_positions[address],
                    place.path_of(address),
                    f"null lifts a mock of the suite, and the suite has none at {address!r}",
                    way_out=_meant(address, suite.mocks),
                )


def _input_faults(suite: Suite, case: Case, entry: Table) -> Iterator[Fault]:
    turns = entry["turns"] if case.turns else [entry]
    for turn, place in zip(case.messages(), turns, strict=True):
        if isinstance(turn.input, str) and turn.input not in suite.inputs:
            yield Fault(
                place.value_positions["input"],
                place.path_of("input"),
                f"there is no input {turn.input!r}",
                way_out=_meant(turn.input, suite.inputs),
            )


def _meant(name: str, known: Mapping[str, object]) -> str:
    close = nearest(name, known)
    if close is not None:
        return f"did you mean {close!r}?"
    return f"there are {', '.join(map(repr, known))}" if known else "there are none"
