"""Arguments into one call.

Owns the program ``bagwise``: it parses, calls one public function, and prints what came out. Refuses to
compute anything: a number that the program prints is one that the Python names return. Results go to
standard output, as one JSON object with ``--json``; progress, warnings and errors go to standard error. The
status is 0, 2 after the one message of a refusal, 1 when the reader of the output went away, and 130 after
Ctrl-C. Nothing heavy is imported before a command runs.
"""

import os
import sys
import warnings
from typing import Any

from bagwise.errors import BagwiseError, MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the program; whatever was refused becomes one message and status 2."""
    warnings.showwarning = _warned
    try:
        try:
            from bagwise.cli.app import app

            app(prog_name="bagwise")
        finally:
            sys.stdout.flush()  # here, where a reader that went away or a full disk can still be answered
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(_refused(MissingExtraError(error.name, "cli", "the command line")))
    except BagwiseError as error:
        sys.exit(_refused(error))
    except MemoryError as error:
        sys.exit(_refused(f"the work must fit into memory; {str(error) or 'there is no more'}. Take less at a time."))
    except OSError as error:
        _leave_output()
        if isinstance(error, BrokenPipeError):
            sys.exit(1)
        place = f"{error.filename}: " if error.filename else ""
        sys.exit(_refused(f"{place}{error.strerror or error}."))


def _refused(reason: Exception | str) -> int:
    print(f"Error: {reason}", file=sys.stderr)
    return 2


def _leave_output() -> None:
    """Let what is still to be printed go nowhere, or the interpreter would complain when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _warned(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"Warning: {message}", file=sys.stderr)
