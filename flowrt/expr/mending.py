"""Mends three reference counting faults of cel-expr-python 0.1.3, each only where it is found.

* Each null that the runtime hands to Python takes a reference from `None` that it never had. Before
  CPython 3.12, where `None` became immortal, some ten thousand nulls end the process.
* Calling a function of ours leaks the tuple of arguments, and with it every argument.
* The same call leaks what the function returns.

Measured (`tests/expr/test_mending.py`): a flow with `toJson(body)` over a 10 KB body loses 11 KB an
evaluation without this module. All three are gone in the runtime's sources since; `probe` asks the
installed version, so a repaired one is left alone.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

_ENOUGH = 1 << 40
"""References added to `None`: at 100,000 nulls a second, four months of nothing else."""


class Ledger(threading.local):
    """What calls of one thread took and gave, until `settle` returns the leaked references."""

    def __init__(self) -> None:
        self.running = 0
        self.arguments: list[tuple[Any, ...]] = []
        self.results: list[Any] = []


class Calls:
    """The functions of ours that the runtime calls, and the references those calls leak."""

    def __init__(self) -> None:
        self._ledger = Ledger()
        self._leaks_arguments = False
        self._leaks_results = False
        self._release = ctypes.pythonapi.Py_DecRef
        self._release.argtypes = [ctypes.py_object]
        self._release.restype = None

    def watched(self, implementation: Callable[..., Any], count: int) -> Any:
        """`implementation` of `count` arguments as a callable that records what it is given.

        Only C code can see the very tuple the runtime leaks. A foreign function hands it to its
        `errcheck`, whose result or exception then stands for the call; the function below it is
        any that takes no notice of its arguments.
        """
        prototype = ctypes.PYFUNCTYPE(None, *[ctypes.py_object] * count)
        function = prototype(("Py_IsInitialized", ctypes.pythonapi))
        ledger = self._ledger

        def check(_result: None, _function: Any, arguments: tuple[Any, ...]) -> Any:
            ledger.running += 1
            try:
                value = implementation(*arguments)
            finally:
                ledger.running -= 1
                ledger.arguments.append(arguments)
            ledger.results.append(value)
            return value

        function.errcheck = check  # type: ignore[assignment]  # the stubs want a ctypes result
        return function

    def settle(self) -> None:
        """Give back the references that the calls since the last `settle` leaked.

        Not inside a call: the evaluation around it may still be using what it took and gave.
        """
        ledger = self._ledger
        if ledger.running or not ledger.arguments:
            return
        if self._leaks_arguments:
            for arguments in ledger.arguments:
                self._release(arguments)
        if self._leaks_results:
            for result in ledger.results:
                self._release(result)
        ledger.arguments.clear()
        ledger.results.clear()

    def measure(self, call: Callable[[], None]) -> None:
        """Find out what a call leaks; `call` makes one that takes a string and returns another."""
        call()
        arguments, result = self._ledger.arguments.pop(), self._ledger.results.pop()
        # One reference is this frame's, one getrefcount's own.
        self._leaks_arguments = sys.getrefcount(arguments) > 2
        self._leaks_results = sys.getrefcount(result) > 2


def keep_none(read_null: Callable[[], object]) -> None:
    """Give `None` references to lose where reading a null from the runtime costs it one."""
    rounds = 100
    before = sys.getrefcount(None)
    for _ in range(rounds):
        read_null()
    if sys.getrefcount(None) > before - rounds // 2:
        return
    count = ctypes.c_ssize_t.from_address(id(None))
    if abs(count.value - sys.getrefcount(None)) > rounds:
        raise RuntimeError(
            "this build of Python keeps reference counts in an unknown place, and cel-expr-python "
            "would end the process; use Python 3.12 or later"
        )
    count.value += _ENOUGH
