"""Results on paper: the files of each table.

Owns which files a folder of results gets. Refuses to run anything: a table is a function of the rows that are there.
"""

import csv
import io
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from bagwise.errors import MissingExtraError
from bagwise.lab.plots import write_plots
from bagwise.lab.results import Results, Row, require_folder
from bagwise.lab.summary import figures, summed
from bagwise.lab.tables import TABLES, Recipe, Table
from bagwise.lab.writers import as_csv, as_latex, as_markdown

__all__ = ["rows_as_csv", "tables_with_results", "write_tables"]


def tables_with_results(rows: Sequence[Row]) -> list[Table]:
    """The tables of which some place has a row, under each recipe that the rows were drawn by."""
    places = {(row.cell, row.learner) for row in rows}
    recipes = sorted({cell.recipe for cell, _ in places}, key=lambda recipe: recipe != Recipe())
    tables = [table if recipe == Recipe() else table.under(recipe) for recipe in recipes for table in TABLES.values()]
    return [table for table in tables if places & set(table.entries)]


def write_tables(folder: str | os.PathLike[str], tables: Iterable[Table]) -> list[Path]:
    """Markdown, LaTeX and CSV of each table beside the rows, plots where matplotlib is there; the files written."""
    folder = Path(folder)
    require_folder(folder)
    results = Results(folder)
    results.refresh()
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
            path = folder / f"{table.name}.{suffix}"
            path.write_text(text, encoding="utf-8")
            written.append(path)
        with suppress(MissingExtraError):
            written += write_plots(folder, table, panels)
    return written


def rows_as_csv(rows: Iterable[Row]) -> tuple[str, str]:
    """All rows as one table, and the environments (commit, versions, machine) that their last column numbers."""
    environments: dict[str, int] = {}
    keys = ("law", "offset", "flip", "d", "q", "k", "m")
    out, of_environments = io.StringIO(), io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    recipe = ("mean_scale", "cov_ridge", "offset_scale")
    writer.writerow([*keys, *recipe, "learner", "dataset", "accuracy", "error", "seconds", "note", "environment"])
    for row in rows:
        environment = json.dumps({"commit": row.commit, **row.versions, **row.machine}, ensure_ascii=False)
        number = environments.setdefault(environment, len(environments))
        writer.writerow(
            [getattr(row.cell, key) for key in keys]
            + [f"{getattr(row.cell.recipe, name):g}" for name in recipe]
            + [row.learner, row.dataset, row.accuracy, f"{row.error:.9g}", f"{row.seconds:.4g}", row.note, number]
        )
    lines = csv.writer(of_environments, lineterminator="\n")
    lines.writerow(["environment", "description"])
    lines.writerows((number, text) for text, number in environments.items())
    return out.getvalue(), of_environments.getvalue()
