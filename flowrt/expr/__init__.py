"""Expressions: CEL behind one seam. Nothing outside this package imports the runtime."""

from flowrt.expr.expression import DEFAULT, Expression, Scope
from flowrt.expr.rendering import Templates
from flowrt.expr.template import Template

__all__ = ["DEFAULT", "Expression", "Scope", "Template", "Templates"]
