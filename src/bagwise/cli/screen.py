"""What the program shows, and where.

Owns the two streams: the result goes to standard output, as text or as one JSON object and nothing else; what is
going on, warnings and refusals go to standard error. Refuses to print a number that JSON has no word for.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

__all__ = ["AsJson", "say", "table", "working"]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def say(result: Mapping[str, Any], parts: Iterable[Any], as_json: bool) -> None:
    """The result of a command: the object for programs, or the parts (text and tables) for people."""
    if as_json:
        print(json.dumps(result, allow_nan=False))
        return
    from rich.console import Console

    # Text is printed as it is, so that a path with brackets is no markup and a long line stays one line.
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for part in parts:
        console.print(part)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> Any:
    """A table for `say`: the first column is text, the others are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for i, name in enumerate(columns):
        shown.add_column(name, justify="right" if i else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown


@contextmanager
def working(what: str) -> Iterator[None]:
    """A moving line on standard error while something takes its time, if someone watches."""
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(what)):
        yield
