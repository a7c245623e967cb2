"""`templateResource`: a declared template inside an expression, over what the expression sees.

A function of the runtime is handed its arguments and nothing of the evaluation it stands in. So a
program that renders says before it runs which templates there are and over which message.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from flowrt.errors import ExpressionError
from flowrt.expr.nearest import nearest
from flowrt.message import Message, clean_text

if TYPE_CHECKING:
    from flowrt.expr.program import Program
    from flowrt.expr.template import Template

MOST_NESTED = 8
"""Templates inside each other."""

MOST_RENDERED = 10_000
"""Templates of one evaluation: eight that each use the next ten times would never end."""


class Templates:
    """The declared templates of a service, by alias and by id.

    The names come first, so that an expression which asks for another is refused when it is
    compiled; the templates follow, for their own spans may ask for each other. Without `names`
    nothing is known yet, and every name is looked for when it is asked for.
    """

    __slots__ = ("_compiled", "_names")

    def __init__(self, names: Iterable[str] | None = None) -> None:
        self._names = None if names is None else frozenset(names)
        self._compiled: dict[str, Template] = {}

    def add(self, name: str, template: Template) -> None:
        """The template that `name` stands for."""
        self._compiled[name] = template

    def get(self, name: str) -> Template | None:
        """The template, or None where none of that name is declared or it does not compile."""
        return self._compiled.get(name)

    def missing(self, name: str) -> str:
        """What is wrong with a name that is not declared; nothing where it is, or may be."""
        if self._names is None or name in self._names:
            return ""
        close = nearest(name, sorted(self._names))
        way_out = f"did you mean {close!r}?" if close else "declare it under resources.templates"
        return f"template resource {name!r} is not declared; {way_out}"


class _Running(NamedTuple):
    """An evaluation that renders."""

    templates: Templates
    message: Message
    extra: Mapping[str, Any] | None


class _Thread(threading.local):
    """The evaluations of one thread, the innermost last, and the templates they are in."""

    def __init__(self) -> None:
        self.running: list[_Running] = []
        self.rendered = 0
        self.chain: list[tuple[str, Template]] = []


_thread = _Thread()


class Rendering:
    """A program whose source renders templates, in one service."""

    __slots__ = ("_program", "_templates")

    def __init__(self, program: Program, templates: Templates) -> None:
        self._program = program
        self._templates = templates

    def value(
        self, message: Message, env: Mapping[str, str], extra: Mapping[str, Any] | None
    ) -> Any:
        """The program's value over `message`."""
        if not _thread.running:
            _thread.rendered = 0
        _thread.running.append(_Running(self._templates, message, extra))
        try:
            return self._program.value(message, env, extra)
        finally:
            _thread.running.pop()


def template_resource(name: str) -> str:
    """The template's text over the message of the evaluation that asks for it.

    Raises `ValueError` for a name that is not declared, a span that fails, a template inside
    itself, and beyond `MOST_NESTED` and `MOST_RENDERED`.
    """
    templates, message, extra = _thread.running[-1]
    template = templates.get(name)
    if template is None:
        raise ValueError(templates.missing(name) or f"there is no template resource {name!r} here")
    chain = _thread.chain
    names = " -> ".join([*(each for each, _ in chain), name])
    if any(template is each for _, each in chain):
        raise ValueError(f"templateResource: the templates go round in a circle: {names}")
    if len(chain) >= MOST_NESTED:
        raise ValueError(f"templateResource: more than {MOST_NESTED} templates deep: {names}")
    _thread.rendered += 1
    if _thread.rendered > MOST_RENDERED:
        raise ValueError(f"templateResource: more than {MOST_RENDERED:,} templates in one value")
    chain.append((name, template))
    try:
        return clean_text(template.render(message, extra))
    except ExpressionError as error:
        raise ValueError(f"template {name!r}: {error}") from error
    finally:
        chain.pop()
