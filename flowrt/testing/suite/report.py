"""How suites went: as text, as JSON and as JUnit's XML."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any
from xml.etree import ElementTree

from flowrt.message import clean_text
from flowrt.observe.masking import mask, mask_text
from flowrt.testing.suite.case import CaseResult
from flowrt.testing.suite.reproduce import reproduce
from flowrt.testing.suite.runner import SuiteResult

_STATUSES = ("passed", "failed", "errored", "skipped", "notRun")
_WORDS = {"failed": "FAIL", "errored": "ERROR", "passed": "ok", "skipped": "skip"}
_MOST_LOGS = 20


def suite_text(result: SuiteResult, *, verbose: bool) -> str:
    """The lines for one suite: all that is wrong, and with `verbose` each case."""
    lines = [str(result.path)]
    if result.error:
        lines += [f"  ERROR {line}" for line in result.error.splitlines()]
    for case in result.cases:
        if case.status in ("failed", "errored"):
            lines += _bad(result, case, verbose=verbose)
        elif verbose and case.status in _WORDS:
            reason = f" ({case.error})" if case.error else f" {case.elapsed * 1000:.0f} ms"
            lines.append(f"  {_WORDS[case.status]:5} {case.name}{reason}")
    if len(lines) == 1 and not verbose:
        lines = [f"{result.path}  {_counts([result])}"]
    return mask_text("\n".join(lines))


def _bad(result: SuiteResult, case: CaseResult, *, verbose: bool) -> list[str]:
    lines = [f"  {_WORDS[case.status]:5} {case.name}"]
    if case.error:
        lines += [f"        {line}" for line in case.error.splitlines()]
    for failure in case.failures:
        lines.append(f"        {failure.summary}")
        lines += [f"          {line}" for line in failure.detail.splitlines()]
    logs = case.logs if verbose else case.logs[:_MOST_LOGS]
    for line in logs:
        fields = {key: value for key, value in line.items() if key not in ("level", "event")}
        lines.append(f"        log {line['level']}: {line['event']} {_compact(fields)}")
    if len(logs) < len(case.logs):
        lines.append(f"        log: {len(case.logs) - len(logs)} more lines; show them with -v")
    lines.append(f"        again: {_again(result, case)}")
    return lines


def _again(result: SuiteResult, case: CaseResult) -> str:
    assert result.file is not None
    suite = result.file.suite
    found = next(each for each in suite.cases if each.name == case.name)
    return reproduce(result.file, found, played=bool({**suite.models, **found.models}))


def totals_text(results: Sequence[SuiteResult], wall: float) -> str:
    """The last line."""
    return f"{_counts(results)} in {wall:.2f} s"


def _counts(results: Sequence[SuiteResult]) -> str:
    words = {"notRun": "not run"}
    counts = {name: sum(each.count(name) for each in results) for name in _STATUSES}
    told = [f"{count} {words.get(name, name)}" for name, count in counts.items() if count]
    return ", ".join(told) or "no cases"


def report_json(results: Sequence[SuiteResult], wall: float) -> dict[str, Any]:
    """The machine's report (dialect 7.5), secrets masked."""
    counts = {name: sum(each.count(name) for each in results) for name in _STATUSES}
    elapsed = sum(case.elapsed for each in results for case in each.cases)
    report: dict[str, Any] = mask(
        {
            "flowrt": version("flowrt"),
            "wallMs": round(wall * 1000),
            "totals": {
                "cases": sum(counts.values()),
                **counts,
                "elapsedMs": round(elapsed * 1000),
            },
            "suites": [_suite_json(result) for result in results],
        }
    )
    return report


def _suite_json(result: SuiteResult) -> dict[str, Any]:
    return {
        "path": str(result.path),
        "config": str(result.config) if result.config is not None else None,
        "flow": result.flow,
        "elapsedMs": round(result.elapsed * 1000),
        **({"error": result.error} if result.error else {}),
        "cases": [_case_json(result, case) for case in result.cases],
    }


def _case_json(result: SuiteResult, case: CaseResult) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": case.name,
        "status": case.status,
        "elapsedMs": round(case.elapsed * 1000, 1),
        "summary": case.summary,
        "failures": [each._asdict() for each in case.failures],
        "outcome": case.outcome,
    }
    if case.error:
        out["error"] = case.error
    if case.status in ("failed", "errored"):
        out["reproduce"] = _again(result, case)
    if case.logs:
        out["logs"] = case.logs
    return out


def junit_xml(results: Sequence[SuiteResult]) -> str:
    """JUnit's XML, as build servers read it."""
    root = ElementTree.Element("testsuites")
    for result in results:
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=str(result.path),
            tests=str(len(result.cases) + bool(result.error)),
            failures=str(result.count("failed")),
            errors=str(result.count("errored")),
            skipped=str(result.count("skipped") + result.count("notRun")),
            time=f"{result.elapsed:.3f}",
        )
        if result.error:
            unread = ElementTree.SubElement(
                suite, "testcase", classname=str(result.path), name="the suite", time="0"
            )
            _child(unread, "error", result.error)
        for case in result.cases:
            _junit_case(suite, result, case)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _junit_case(suite: ElementTree.Element, result: SuiteResult, case: CaseResult) -> None:
    element = ElementTree.SubElement(
        suite,
        "testcase",
        classname=str(result.path),
        name=_xml(case.name),
        time=f"{case.elapsed:.3f}",
    )
    if case.status == "failed":
        told = [f"{each.summary}\n{each.detail}" for each in case.failures]
        _child(element, "failure", "\n".join([*told, f"again: {_again(result, case)}"]))
    elif case.status == "errored":
        _child(element, "error", case.error)
    elif case.status in ("skipped", "notRun"):
        _child(element, "skipped", case.error or "a case before it failed")


def _child(element: ElementTree.Element, tag: str, text: str) -> None:
    text = _xml(mask_text(text))
    ElementTree.SubElement(element, tag, message=text.splitlines()[0]).text = text


def _xml(text: str) -> str:
    """Without the control characters that no XML can hold."""
    return "".join(
        char if char in "\n\t" or ord(char) >= 0x20 else "\ufffd" for char in clean_text(text)
    )


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
