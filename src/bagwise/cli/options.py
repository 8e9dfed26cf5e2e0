"""Options that several commands share, each declared once."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["BagColumn", "Cluster", "CountColumn", "Model", "ProportionColumn", "Stream", "Workers"]

Model = Annotated[Path, typer.Argument(help="Model that fit wrote.")]
BagColumn = Annotated[str, typer.Option("--bag", help="Column that names each row's bag.")]
CountColumn = Annotated[
    str | None,
    typer.Option("--count", help="Column with the number of positives of each row's bag.  [default: positives]"),
]
ProportionColumn = Annotated[
    str | None, typer.Option("--proportion", help="Column with the share of positives of each row's bag, for --count.")
]
Stream = Annotated[bool, typer.Option("--stream", help="Read part by part: memory need not hold the rows.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Stream, by so many processes of Dask here.")]
Cluster = Annotated[
    str | None, typer.Option(help="Stream, by the workers of this Dask cluster, such as tcp://host:8786.")
]
