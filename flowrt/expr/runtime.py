"""The CEL runtime (cel-expr-python), set up once per process and imported on first use.

Its habits, all handled in this package: an evaluation error is a returned value; a function needs
one overload per type, because a parameter of type DYN never matches, and one for types ends the
process; optionals cannot be read back; memory of an evaluation is held by its activation; strings
are cut at NUL, which is why text is cleaned where it enters (`flowrt.message`); what a function
gives as `bytes` is cut at the first zero, as a `bytearray` it is not; and what
`flowrt.expr.mending` mends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from flowrt.expr import functions as ours
from flowrt.expr import multipart, rendering, sealing
from flowrt.expr.mending import Calls, keep_none

NAMES = ("body", "vars", "eventID", "correlationID", "env")
"""The variables every expression sees, `now` besides, which `flowrt.expr.rewrite` binds."""

# By name in a configuration: half of them have no Python module of their own.
_EXTENSIONS = (
    "bindings",
    "encoders",
    "lists",
    "math",
    "optional",
    "regex",
    "sets",
    "strings",
    "two-var-comprehensions",
)
calls = Calls()


@cache
def cel() -> Any:
    """The runtime's module."""
    from cel_expr_python import cel as module

    return module


@cache
def environment(names: tuple[str, ...] = ()) -> Any:
    """The environment whose expressions see `NAMES`, `now` and `names`."""
    module = cel()
    made = module.NewEnv(
        config=_configuration(),
        variables=dict.fromkeys((*NAMES, "now", *names), module.Type.DYN),
        functions=_functions(),
    )
    _mend(made)
    return made


@cache
def _configuration() -> Any:
    lines = "".join(f"  - name: {name}\n" for name in _EXTENSIONS)
    return cel().NewEnvConfigFromYaml(f"name: flowrt\nextensions:\n{lines}")


_mended: set[str] = set()


def _mend(made: Any) -> None:
    """Measure the runtime's faults once per process, before the first evaluation."""
    if _mended:
        return
    _mended.add("done")
    nothing = made.Activation({})
    null = made.compile("null")
    keep_none(lambda: null.eval(nothing).plain_value())
    call = made.compile("_probe_('a' + 'b')")
    calls.measure(lambda: call.eval(made.Activation({})).type())


@cache
def _functions() -> list[Any]:
    kind = cel().Type
    text, octets, whole, bit = kind.STRING, kind.BYTES, kind.INT, kind.BOOL
    items, table = kind.List(kind.DYN), kind.Map(kind.DYN, kind.DYN)
    scalars = [bit, whole, kind.UINT, kind.DOUBLE, text, octets, kind.TIMESTAMP, kind.DURATION]
    anything = [[each] for each in (*scalars, kind.NULL, items, table)]
    pairs = [[one, other] for one in (text, octets) for other in (text, octets)]
    return [
        _declare("toJson", anything, text, ours.to_json),
        _declare("fromJson", [[text]], kind.DYN, ours.from_json),
        _declare("toFormData", [[table]], text, ours.to_form_data),
        _declare("fromFormData", [[text]], table, ours.from_form_data),
        _declare("toYaml", anything, text, ours.to_yaml),
        _declare("fromYaml", [[text]], kind.DYN, ours.from_yaml),
        _declare("toEnv", [[table]], text, ours.to_env),
        _declare("fromEnv", [[text]], table, ours.from_env),
        _declare("hmacSha256", pairs, octets, ours.hmac_sha256),
        _declare("hmacSha1", pairs, octets, ours.hmac_sha1),
        _declare("secureCompare", pairs, bit, ours.secure_compare),
        _declare("hexEncode", [[octets]], text, ours.hex_encode),
        _declare("uuid", [[]], text, ours.new_uuid),
        _declare("multipart", [[]], table, multipart.no_parts),
        _declare(
            "addPart",
            [[table, text, *value] for value in anything],
            table,
            multipart.add_part,
            member=True,
        ),
        _declare(
            "fromMultipart",
            [[table], [text, text], [octets, text]],
            table,
            multipart.from_multipart,
        ),
        _declare("toMultipart", [[table], [table, text]], text, multipart.to_multipart),
        _declare("templateResource", [[text]], text, rendering.template_resource),
        _declare("toAes", pairs, octets, sealing.to_aes),
        _declare("fromAes", pairs, octets, sealing.from_aes),
        _declare("toChacha", pairs, octets, sealing.to_chacha),
        _declare("fromChacha", pairs, octets, sealing.from_chacha),
        _declare("_text_", anything, text, ours.string_of),
        _declare("_now_", [[]], kind.TIMESTAMP, ours.now),
        _declare("_range_", [[whole]], kind.List(whole), ours.numbers),
        _declare("_pairs", [[items]], table, ours.pairs_of, member=True),
        _declare("_merged", [[items]], table, ours.merged, member=True),
        _declare("_sorted", [[items, items]], items, ours.sorted_by, member=True),
        _declare("_entries", [[items], [table]], items, ours.entries, member=True),
        _declare("_pieces", [[items], [table]], items, ours.pieces, member=True),
        _declare("_probe_", [[text]], text, lambda given: given * 2),
    ]


def _declare(
    name: str,
    overloads: Sequence[Sequence[Any]],
    returns: Any,
    implementation: Callable[..., Any],
    *,
    member: bool = False,
) -> Any:
    module = cel()
    return module.FunctionDecl(
        name,
        [
            module.Overload(
                id=f"flowrt_{name}_{index}",
                return_type=returns,
                parameters=list(parameters),
                is_member=member,
                impl=calls.watched(implementation, len(parameters)),
            )
            for index, parameters in enumerate(overloads)
        ],
    )
