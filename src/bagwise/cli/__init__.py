"""Arguments into one call.

Owns the program ``bagwise``: it parses, calls one public function, and prints what came out. Refuses to
compute anything: a number that the program prints is one that the Python names return. Results go to
standard output, as one JSON object with ``--json``; progress, warnings and errors go to standard error. The
status is 0, or 2 after one message. Nothing heavy is imported before a command runs.
"""

import sys
import warnings
from typing import Any

from bagwise.errors import BagwiseError, MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the program; whatever was refused becomes one message and status 2."""
    try:
        from bagwise.cli.app import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit(_refused(MissingExtraError("typer", "cli", "the command line")))
    warnings.showwarning = _warned
    try:
        app(prog_name="bagwise")
    except (BagwiseError, OSError) as error:
        sys.exit(_refused(error))


def _refused(error: Exception) -> int:
    print(f"Error: {error}", file=sys.stderr)
    return 2


def _warned(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"Warning: {message}", file=sys.stderr)
