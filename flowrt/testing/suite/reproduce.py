"""The line that runs a case again, to be pasted into a shell."""

from __future__ import annotations

import json
import shlex
from typing import Any

from flowrt.engine.debug import MockOutcome, MockSettings
from flowrt.testing.suite.load import SuiteFile
from flowrt.testing.suite.model import Case, Input


def reproduce(file: SuiteFile, case: Case, *, played: bool) -> str:
    """A `flowrt invoke` of the case's message; of a conversation, a `flowrt test` of the case.

    `played` says that models were stood in for, which `invoke` cannot do.
    """
    suite = file.suite
    alone = not (case.turns or case.meanwhile)
    if not alone or played or suite.now or case.now or suite.sources or case.sources:
        return shlex.join(["flowrt", "test", str(file.path), "--case", case.name, "-v"])
    given = suite.inputs[case.input] if isinstance(case.input, str) else case.input
    env = {**suite.env, **case.env}
    settings = [f"{name}={shlex.quote(value)}" for name, value in env.items()]
    command = ["flowrt", "invoke", "--config", str(file.config)]
    command += ["--flow", case.flow or suite.flow, *_message(given), "--storage", "memory:"]
    mocks = {**suite.mocks, **case.mocks}
    kept = {address: _mock(mock) for address, mock in mocks.items() if mock is not None}
    if kept:
        command += ["--mocks", _json(kept)]
    if case.spies:
        command += ["--spies", ",".join(case.spies)]
    else:
        command += ["--message"]
    return " ".join([*settings, shlex.join(command)])


def _message(given: Input) -> list[str]:
    if given.content_type is None:
        arguments = ["--data", _json(given.data)]
    else:
        arguments = ["--content-type", given.content_type, "--data", given.data]
    return [*arguments, "--vars", _json(given.vars)] if given.vars else arguments


def _mock(mock: MockSettings) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if mock.cases:
        out["cases"] = [{"when": case.when.source, **_outcome(case)} for case in mock.cases]
    if mock.default is not None:
        out["default"] = _outcome(mock.default)
    return out


def _outcome(outcome: MockOutcome) -> dict[str, Any]:
    names = outcome.model_fields_set & {"body", "vars", "error", "drop"}
    return {name: getattr(outcome, name) for name in sorted(names)}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
