"""From an outcome to an exit code and one line on standard error."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

from flowrt.errors import CallError, ConfigError, FlowrtError
from flowrt.observe.masking import mask_text

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130
"""The exit codes: done or dropped; the flow failed; the file or call is wrong; interrupted."""


def run_command(command: Callable[[], int], *, debug: bool) -> int:
    """Run a command and give the exit code for how it ended; tracebacks only with `debug`."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has left, which is its right: `flowrt … | head -1`. What is still buffered
        # would raise again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except (ConfigError, CallError) as error:
        _report(error, debug)
        return WRONG
    except FlowrtError as error:
        _report(error, debug)
        return FAILED


def _report(error: FlowrtError, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
    else:
        say(str(error))


def say(text: str) -> None:
    """A text for the reader, on standard error, without secrets."""
    print(mask_text(text), file=sys.stderr)
