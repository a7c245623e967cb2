"""The CEL runtime (cel-expr-python), configured once per process and imported on first use.

Its habits, all handled in this package: an evaluation error is a returned value; a function needs
one overload per type, because a parameter of type DYN never matches; optionals cannot be read back
directly; strings are cut at NUL, which is why text is cleaned where it enters (`flowrt.message`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from flowrt.expr.macros import NOW

NAMES = ("body", "vars", "eventID", "correlationID", "env")
"""What every expression can see; `now` besides, which `flowrt.expr.macros` rewrites."""


@cache
def cel() -> Any:
    """The runtime's module."""
    from cel_expr_python import cel as module

    return module


@cache
def environment(extra: tuple[str, ...] = ()) -> Any:
    """The environment whose expressions see `NAMES` and `extra`."""
    module = cel()
    from cel_expr_python.ext import (
        ext_bindings,
        ext_encoders,
        ext_math,
        ext_optional,
        ext_strings,
    )

    dyn = module.Type.DYN
    return module.NewEnv(
        variables=dict.fromkeys((*NAMES, NOW, *extra), dyn),
        extensions=[
            ext_strings.ExtStrings(),
            ext_math.ExtMath(),
            ext_optional.ExtOptional(),
            ext_bindings.ExtBindings(),
            ext_encoders.ExtEncoders(),
        ],
        functions=_functions(),
    )


@cache
def _functions() -> list[Any]:
    from flowrt.expr import functions as f
    from flowrt.expr import patterns as p

    kind = cel().Type
    text, octets, whole, bit = kind.STRING, kind.BYTES, kind.INT, kind.BOOL
    items, table = kind.List(kind.DYN), kind.Map(kind.DYN, kind.DYN)
    scalars = [bit, whole, kind.UINT, kind.DOUBLE, text, octets, kind.TIMESTAMP, kind.DURATION]
    anything = [*scalars, kind.NULL, items, table]
    either = [text, octets]
    pairs = [[one, other] for one in either for other in either]
    one_of = [[each] for each in anything]
    return [
        _declare("toJson", one_of, text, f.to_json),
        _declare("fromJson", [[text]], kind.DYN, f.from_json),
        _declare("toFormData", [[table]], text, f.to_form_data),
        _declare("fromFormData", [[text]], table, f.from_form_data),
        _declare("toYaml", one_of, text, f.to_yaml),
        _declare("fromYaml", [[text]], kind.DYN, f.from_yaml),
        _declare("toEnv", [[table]], text, f.to_env),
        _declare("fromEnv", [[text]], table, f.from_env),
        _declare("hmacSha256", pairs, octets, f.hmac_sha256),
        _declare("hmacSha1", pairs, octets, f.hmac_sha1),
        _declare("secureCompare", pairs, bit, f.secure_compare),
        _declare("hexEncode", [[octets]], text, f.hex_encode),
        _declare("uuid", [[]], text, f.new_uuid),
        _declare("flowrt_string", one_of, text, f.string_of),
        _declare("flowrt_keys", [[items], [table]], items, f.keys_of),
        _declare("flowrt_zip", [[items, items]], table, f.zip_map),
        _declare("flowrt_merge", [[items]], table, f.merge_maps),
        _declare("flowrt_sort_by", [[items, items]], items, f.sort_by),
        _declare("sort", [[items]], items, f.sort, member=True),
        _declare("distinct", [[items]], items, f.distinct, member=True),
        _declare("flatten", [[items], [items, whole]], items, f.flatten, member=True),
        _declare("slice", [[items, whole, whole]], items, f.slice_list, member=True),
        _declare("flowrt_reverse", [[items], [text]], kind.DYN, f.reverse),
        _declare("lists.range", [[whole]], kind.List(whole), f.list_range),
        _declare("sets.contains", [[items, items]], bit, f.sets_contains),
        _declare("sets.equivalent", [[items, items]], bit, f.sets_equivalent),
        _declare("sets.intersects", [[items, items]], bit, f.sets_intersects),
        _declare("flowrt_extract", [[text, text]], kind.List(text), p.extract),
        _declare("regex.extractAll", [[text, text]], kind.List(text), p.extract_all),
        _declare("regex.replace", [[text] * 3, [text] * 3 + [whole]], text, p.replace),
    ]


def _declare(
    name: str,
    parameters: Sequence[Sequence[Any]],
    returns: Any,
    implementation: Callable[..., Any],
    *,
    member: bool = False,
) -> Any:
    module = cel()
    stem = name.replace(".", "_")
    return module.FunctionDecl(
        name,
        [
            module.Overload(
                id=f"flowrt_{stem}_{index}",
                return_type=returns,
                parameters=list(each),
                is_member=member,
                impl=implementation,
            )
            for index, each in enumerate(parameters)
        ],
    )
