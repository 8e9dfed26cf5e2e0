"""The commands of the laboratory: run the published experiments, and show what came out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bagwise.cli.screen import AsJson, say

if TYPE_CHECKING:
    from bagwise.lab.results import Row
    from bagwise.lab.runner import Job

__all__ = ["report", "reproduce"]

Results = Annotated[Path, typer.Option("--output", "-o", help="Folder of results; what is there is not run again.")]


def reproduce(
    tables: Annotated[list[str] | None, typer.Argument(help="Names of tables, or all. Without: a list.")] = None,
    output: Results = Path("results"),
    datasets: Annotated[int, typer.Option(min=1, help="Data sets per cell.")] = 25,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    only: Annotated[str, typer.Option(help="Only cells whose name contains this, such as d=10/q=2.")] = "",
    mean_scale: Annotated[float, typer.Option(min=0.0, help="Means are so many times standard normal.")] = 1.0,
    cov_ridge: Annotated[float, typer.Option(min=0.0, help="Covariances are A A'/d + this times I.")] = 1.0,
    offset_scale: Annotated[float, typer.Option(min=0.0, help="Offsets are so many times standard normal.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Run the experiments of the paper, or say which there are and what they cost.

    Rows are safe on disk as they come; interrupted at any moment, the same command goes on where it was. Several
    programs may work on one folder.
    """
    from bagwise.lab.report import write_tables
    from bagwise.lab.runner import jobs_of, run_jobs, tables_named
    from bagwise.lab.tables import Recipe

    if not tables:
        _list(datasets, jobs, as_json)
        return
    recipe = Recipe(mean_scale, cov_ridge, offset_scale)
    chosen = [table.under(recipe) for table in tables_named(tables)]
    todo = jobs_of(chosen, datasets, only=only)
    if not todo:
        from bagwise.errors import InvalidInputError

        raise InvalidInputError(f"--only must be part of a cell's name; no cell of {', '.join(tables)} has {only!r}.")
    with _progress(todo, output) as on_row:
        outcome = run_jobs(todo, output, workers=jobs, on_row=on_row)
    written = write_tables(output, chosen)
    result = {
        "finished": outcome.finished,
        "failed": [{"cell": row.cell.name, "learner": row.learner, "failure": row.failure} for row in outcome.failed],
        "output": str(output),
        "files": [str(path) for path in written],
    }
    text = f"{outcome.finished} runs finished"
    text += f", {len(outcome.failed)} failed (the same command tries them again)" if outcome.failed else ""
    for row in outcome.failed[:5]:
        text += f"\n  {row.cell.name} {row.learner} data set {row.dataset}: {row.failure}"
    say(result, [text, *(f"Wrote {path}" for path in written)], as_json)


def report(
    results: Annotated[Path, typer.Argument(help="Folder that reproduce filled.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Experiments, reproduced",
    as_json: AsJson = False,
) -> None:
    """Show results as one page that needs no network: tables, plots, machine, how to repeat.

    Tables can be sorted and filtered, plots tell their numbers, and every line knows the command that repeats it.
    """
    from bagwise.data.io import refuse_unwritable
    from bagwise.lab.report import write_page

    refuse_unwritable(output)
    tables = write_page(results, output, title=title)
    size = output.stat().st_size
    text = f"Wrote {output} with {', '.join(tables)} ({size / 1e6:.1f} MB; open it in a browser)"
    say({"tables": tables, "bytes": size, "output": str(output)}, [text], as_json)


def _list(datasets: int, jobs: int, as_json: bool) -> None:
    """What there is and what it costs."""
    from bagwise.lab.runner import expected_seconds, jobs_of
    from bagwise.lab.tables import TABLES

    described = []
    for name, title, tables in [
        *((table.name, table.title, [table]) for table in TABLES.values()),
        ("all", "all of these; what tables share is run once", list(TABLES.values())),
    ]:
        todo = jobs_of(tables, datasets)
        described.append(
            {
                "table": name,
                "title": title,
                "cells": len({job.cell for job in todo}),
                "runs": sum(len(job.learners) for job in todo),
                "seconds": round(sum(expected_seconds(job.cell, x) for job in todo for x in job.learners) / jobs),
            }
        )
    text = f"Tables, with {datasets} data sets per cell on {jobs} {'process' if jobs == 1 else 'processes'}:\n\n"
    for line in described:
        cost = _duration(line["seconds"])
        text += f"  {line['table']:17} {line['cells']:4} cells {line['runs']:6} runs  {cost:>7}  {line['title']}\n"
    text += "\nExample: bagwise reproduce table1 --jobs 2 -o results"
    say({"tables": described}, [text], as_json)


def _duration(seconds: Any) -> str:
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


@contextmanager
def _progress(jobs: "list[Job]", folder: Path) -> "Iterator[Callable[[Row], None]]":
    """A display of cells done, rate and time left on standard error, where someone watches."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda row: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    from bagwise.lab.results import Results
    from bagwise.lab.runner import expected_seconds, missing

    before = Results(folder)
    before.refresh()
    left: dict[str, set[tuple[str, int]]] = {}
    cost = 0.0
    cells = len({job.cell for job in jobs})
    for job in missing(jobs, before):
        for learner in job.learners:
            left.setdefault(job.cell.name, set()).add((learner, job.dataset))
            cost += expected_seconds(job.cell, learner)
    columns = (
        TextColumn("{task.fields[cells]} cells"),
        BarColumn(),
        TextColumn("{task.fields[runs]} runs, {task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeLeft(),
    )
    with Progress(*columns, console=console, transient=True, speed_estimate_period=600) as progress:
        done = 0
        task = progress.add_task("", total=cost, cells=f"{cells - len(left)}/{cells}", runs=0, rate="")

        def on_row(row: "Row") -> None:
            nonlocal done
            mine = left.get(row.cell.name)
            if mine is None or (row.learner, row.dataset) not in mine:
                return
            mine.remove((row.learner, row.dataset))
            if not mine:
                del left[row.cell.name]
            done += 1
            seconds = progress.tasks[0].elapsed or 1.0
            progress.update(
                task,
                advance=expected_seconds(row.cell, row.learner),
                cells=f"{cells - len(left)}/{cells}",
                runs=done,
                rate=f"{done / seconds:.1f} per second",
            )

        yield on_row
