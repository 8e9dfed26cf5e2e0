"""Results as files: those of each table, the rows, and the page.

Owns which files there are and what goes into them. Refuses to run anything: a table is a function
of the rows that are there.
"""

import csv
import io
import json
import os
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from bagwise.data.io import whole_file
from bagwise.errors import InvalidInputError, MissingExtraError
from bagwise.lab.pages import as_page
from bagwise.lab.plots import write_plots
from bagwise.lab.results import Results, Row, require_folder
from bagwise.lab.summary import figures, summed
from bagwise.lab.tables import TABLES, Recipe, Table
from bagwise.lab.writers import as_csv, as_latex, as_markdown

__all__ = ["rows_as_csv", "tables_with_results", "write_page", "write_tables"]


def tables_with_results(rows: Sequence[Row]) -> list[Table]:
    """The tables of which some place has a row, under each recipe that the rows were drawn by."""
    places = {(row.cell, row.learner) for row in rows}
    recipes = sorted({cell.recipe for cell, _ in places}, key=lambda recipe: recipe != Recipe())
    tables = [table if recipe == Recipe() else table.under(recipe) for recipe in recipes for table in TABLES.values()]
    return [table for table in tables if places & set(table.entries)]


def write_tables(folder: str | os.PathLike[str], tables: Iterable[Table]) -> list[Path]:
    """Markdown, LaTeX and CSV of each table beside the rows, plots where matplotlib is there, and all rows as CSV with
    the environments that they name; the files written."""
    folder = Path(folder)
    results = _read(folder)
    known = figures(results.rows.values())
    written = []
    for table in tables:
        if not (panels := summed(table, known)):
            continue
        for suffix, text in (
            ("md", as_markdown(table, panels)),
            ("tex", as_latex(table, panels)),
            ("csv", as_csv(table, panels)),
        ):
            written.append(_write(folder / f"{table.name}.{suffix}", text))
        with suppress(MissingExtraError):
            written += write_plots(folder, table, panels)
    rows, environments = rows_as_csv(results.rows.values())
    return [*written, _write(folder / "rows.csv", rows), _write(folder / "environments.csv", environments)]


def write_page(folder: str | os.PathLike[str], output: str | os.PathLike[str], *, title: str) -> list[str]:
    """All tables that have results as one page for a browser; the names of the tables on it."""
    results = _read(Path(folder))
    rows = list(results.rows.values())
    known = figures(rows)
    shown = [(table, panels) for table in tables_with_results(rows) if (panels := summed(table, known))]
    if not shown:
        raise InvalidInputError(
            f"{folder} must hold rows of a table; the {len(rows)} there belong to none. "
            f"Make some: bagwise reproduce table1 -o {folder}"
        )
    _write(Path(output), as_page(shown, rows, results.failures.values(), title=title))
    return [table.name for table, _ in shown]


def _read(folder: Path) -> Results:
    require_folder(folder)
    results = Results(folder)
    results.refresh()
    if results.unreadable:
        warnings.warn(
            f"{results.path}: {results.unreadable} lines are no rows and are left out; a crash leaves a torn one, and "
            "its run is done again.",
            stacklevel=3,
        )
    return results


def _write(path: Path, text: str) -> Path:
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return path


def rows_as_csv(rows: Iterable[Row]) -> tuple[str, str]:
    """All rows as one table, and the environments (commit, versions, machine) that their last column numbers."""
    environments: dict[str, int] = {}
    keys = ("law", "offset", "flip", "d", "q", "k", "m")
    out, of_environments = io.StringIO(), io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    recipe = ("mean_scale", "cov_ridge", "offset_scale")
    writer.writerow(
        [*keys, *recipe, "learner", "dataset", "accuracy", "error", "seconds", "cpu", "note", "environment"]
    )
    for row in rows:
        environment = json.dumps({"commit": row.commit, **row.versions, **row.machine}, ensure_ascii=False)
        number = environments.setdefault(environment, len(environments))
        writer.writerow(
            [getattr(row.cell, key) for key in keys]
            + [f"{getattr(row.cell.recipe, name):g}" for name in recipe]
            + [row.learner, row.dataset, row.accuracy, f"{row.error:.9g}", f"{row.seconds:.4g}"]
            + ["" if row.cpu is None else f"{row.cpu:.4g}", row.note, number]
        )
    lines = csv.writer(of_environments, lineterminator="\n")
    lines.writerow(["environment", "description"])
    lines.writerows((number, text) for text, number in environments.items())
    return out.getvalue(), of_environments.getvalue()
