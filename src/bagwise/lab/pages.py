"""Results as one page for a browser, with everything in it.

Owns what the page says; how it looks and behaves is in the folder ``page``. Refuses the network: style, code and data
are in the file, and the page's own policy forbids everything else. All text is escaped where it is put in, as a folder
of results may come from anywhere.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from importlib.metadata import version
from importlib.resources import files
from math import isnan
from typing import Any

from bagwise.errors import MissingExtraError
from bagwise.lab.learners import LEARNERS
from bagwise.lab.results import Row
from bagwise.lab.series import (
    COLOURS,
    MARKERS,
    Facet,
    Pair,
    against_ceiling,
    bag_kind,
    facets,
    runs_over_m,
)
from bagwise.lab.summary import Figure, Headline, Line, SummedPanel, headline
from bagwise.lab.tables import Cell, Recipe, Table
from bagwise.lab.writers import caption, columns_of, percent

__all__ = ["as_page"]

_DASHES = ("solid", "dash", "dot", "dashdot")
_MOST = 20  # failures and notes that are spelled out


def as_page(
    summed: Sequence[tuple[Table, Sequence[SummedPanel]]], rows: Sequence[Row], failures: Iterable[Row], *, title: str
) -> str:
    """The page of summed tables and of the rows behind them."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        package = "plotly" if "plotly" in str(error) else "jinja2"
        raise MissingExtraError(package, "report", "writing a page of results") from None

    room = files("bagwise.lab") / "page"
    parts = {name: (room / name).read_text("utf-8") for name in ("page.html.jinja", "page.css", "page.js")}
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(parts["page.html.jinja"])
    sections = [_section(table, panels, rows) for table, panels in summed]
    data = {
        "learners": {
            name: {"label": learner.label, "colour": COLOURS[name], "symbol": MARKERS[name][1]}
            for name, learner in LEARNERS.items()
        },
        "plots": [plot for section in sections for grid in section["grids"] for plot in grid["plots"]],
    }
    # "<" is escaped so that no text can end the script element; JSON reads the same.
    safe = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    shown = {figure.learner for _, panels in summed for figure in _figures(panels)}
    finished = sorted(row.finished[:10] for row in rows if row.finished)
    html: str = template.render(
        title=title,
        css=Markup(parts["page.css"]),
        script=Markup(parts["page.js"]),
        plotly=Markup(get_plotlyjs()),
        data=Markup(safe),
        sections=sections,
        tiles=_tiles(headline([panel for _, panels in summed for panel in panels])),
        filters=_filters(summed),
        n_runs=len(rows),
        n_cells=len({row.cell for row in rows}),
        when=" to ".join(dict.fromkeys([finished[0], finished[-1]])) if finished else "",
        learners=[learner for name, learner in LEARNERS.items() if name in shown],
        command=f"bagwise reproduce {' '.join(dict.fromkeys(table.name for table, _ in summed))} --datasets "
        f"{_datasets(rows)} -o results",
        recipes=", ".join(sorted({_recipe(row.cell.recipe) for row in rows} - {""})),
        failures=[{"name": f"{r.cell.name} {r.learner} data set {r.dataset}", "text": r.failure} for r in failures][
            :_MOST
        ],
        notes=_notes(rows),
        environments=_environments(rows),
        version=version("bagwise"),
    )
    return html


def _figures(panels: Sequence[SummedPanel]) -> list[Figure]:
    return [figure for summed in panels for line in summed.lines for figure in line.figures if figure is not None]


def _datasets(rows: Iterable[Row]) -> int:
    return max((row.dataset + 1 for row in rows), default=1)


def _recipe(recipe: Recipe) -> str:
    """The options that ask for a recipe, where it is not the usual one."""
    usual = Recipe()
    return " ".join(
        f"--{name.replace('_', '-')} {getattr(recipe, name):g}"
        for name in ("mean_scale", "cov_ridge", "offset_scale")
        if getattr(recipe, name) != getattr(usual, name)
    )


def _tiles(found: Headline) -> list[dict[str, str]]:
    """What the rows come to, in a few numbers; those that there are."""
    tiles = []
    if found.judged:
        where = "within 3√2 standard errors of what the paper printed"
        tiles.append({"number": f"{found.met} of {found.judged}", "text": f"means {where}"})
    if found.error_over_spectral is not None:
        less = 1 / found.error_over_spectral
        tiles.append({"number": f"{less:.3g} times", "text": "less error by likelihood (ML) than by A2 or A4, median"})
    if found.error_over_ceiling is not None:
        tiles.append(
            {
                "number": f"{found.error_over_ceiling:.2f} times",
                "text": "the error of training on all true labels is that of ML, median",
            }
        )
    return tiles


# ---------------------------------------------------------------------- tables


def _section(table: Table, panels: Sequence[SummedPanel], rows: Sequence[Row]) -> dict[str, Any]:
    recipe = _recipe(panels[0].lines[0].cell.recipe)
    name = table.name + (f"-{recipe.replace('--', '').replace(' ', '-')}" if recipe else "")
    dims = sorted({figure.cell.d for figure in _figures(panels)})
    datasets = _datasets(rows)
    return {
        "id": f"table-{name}",
        "name": name,
        "title": table.title,
        "place": table.place + (f"; drawn with {recipe}" if recipe else ""),
        "caption": caption(panels),
        "panels": [_panel(table, summed, datasets) for summed in panels],
        "learners": [
            {"id": c.learner, "label": LEARNERS[c.learner].label, "colour": COLOURS[c.learner]}
            for c in columns_of(panels)
        ],
        "dashes": [f"d = {d}: {dash} line" for d, dash in zip(dims, _DASHES, strict=False)] if len(dims) > 1 else [],
        "rings": any(summed.has_published(column) for summed in panels for column in summed.columns),
        "grids": _grids(name, panels, dims),
    }


def _panel(table: Table, summed: SummedPanel, datasets: int) -> dict[str, Any]:
    return {
        "title": summed.panel.title[:1].upper() + summed.panel.title[1:],
        "heads": ["flips" if key == "flip" else key for key in summed.panel.keys],
        "columns": [{"id": column.learner, "label": LEARNERS[column.learner].label} for column in summed.columns],
        "lines": [_line(table, summed, line, datasets) for line in summed.lines],
    }


def _line(table: Table, summed: SummedPanel, line: Line, datasets: int) -> dict[str, Any]:
    cell = line.cell
    options = _recipe(cell.recipe)
    command = f"bagwise reproduce {table.name} --only {_shared_name(summed, cell)} --datasets {datasets} -o again"
    return {
        "law": cell.law,
        "d": cell.d,
        "q": cell.q,
        "k": cell.k,
        "name": cell.name,
        "head": [f"{v:g}" if isinstance(v := getattr(cell, key), float) else str(v) for key in summed.panel.keys],
        "cells": [_cell(c.learner, f) for c, f in zip(summed.columns, line.figures, strict=True)],
        "command": f"{command} {options}".strip(),
    }


def _shared_name(summed: SummedPanel, cell: Cell) -> str:
    """What the cells of a line have in common: their name, without m where columns have their own."""
    if all(column.m is None for column in summed.columns):
        return cell.name
    return "/".join(part for part in cell.name.split("/") if not part.startswith("m="))


def _cell(learner: str, figure: Figure | None) -> dict[str, Any]:
    if figure is None:
        return {"id": learner, "figure": None}
    return {
        "id": learner,
        "figure": figure,
        "accuracy": percent(figure.accuracy),
        "accuracy_se": _bar(figure.accuracy_se, 2),
        "error": percent(figure.error, digits=3),
        "error_se": _bar(figure.error_se, 3),
        "seconds": f"{figure.seconds:.3f}",
        "published": "" if figure.published is None else f"{figure.published:.2f}",
        "difference": "" if figure.difference is None else f"{figure.difference:+.2f}",
        "deviates": figure.deviates,
    }


def _bar(se: float, digits: int) -> str:
    return "" if isnan(se) else f"± {se:.{digits}f}"


def _filters(summed: Sequence[tuple[Table, Sequence[SummedPanel]]]) -> list[dict[str, Any]]:
    cells = {line.cell for _, panels in summed for panel in panels for line in panel.lines}
    learners = {figure.learner for _, panels in summed for figure in _figures(panels)}
    options = {
        "table": ("table", [(table.name, table.name) for table, _ in summed]),
        "law": ("distribution", _options({cell.law for cell in cells})),
        "d": ("d", _options({cell.d for cell in cells})),
        "q": ("q", _options({cell.q for cell in cells})),
        "k": ("k", _options({cell.k for cell in cells})),
        "learner": ("learner", [(name, learner.label) for name, learner in LEARNERS.items() if name in learners]),
    }
    measures = [("accuracy", "accuracy"), ("error", "exact error in %"), ("seconds", "seconds")]
    found = [{"name": n, "label": label, "any": True, "options": given} for n, (label, given) in options.items()]
    return [*found, {"name": "measure", "label": "numbers", "any": False, "options": measures}]


def _options(values: Collection[Any]) -> list[tuple[str, str]]:
    """Numbers in their order, words after them."""
    return [(str(value), str(value)) for value in sorted(values, key=lambda v: (isinstance(v, str), v))]


# ---------------------------------------------------------------------- plots


def _grids(name: str, panels: Sequence[SummedPanel], dims: list[int]) -> list[dict[str, Any]]:
    over_m = runs_over_m(panels)
    drawn = [facet for row in facets(panels) for facet in row]
    plots = [_accuracy_plot(f"{name}-accuracy-{i}", facet, over_m, dims) for i, facet in enumerate(drawn)]
    grids = [{"wide": not over_m, "plots": plots}]
    if pairs := against_ceiling(panels):
        grids.append({"wide": True, "plots": [_ceiling_plot(f"{name}-ceiling", pairs)]})
    return grids


def _accuracy_plot(name: str, facet: Facet, over_m: bool, dims: list[int]) -> dict[str, Any]:
    title = facet.title.replace("\n", ", ")
    ticks = sorted({figure.cell.m for curve in facet.curves for figure in curve.figures})
    return {
        "id": name,
        "kind": "accuracy",
        "title": title,
        "label": f"Accuracy of each learner against the {'number' if over_m else 'kind'} of bags; {title}. "
        "The table above has the numbers.",
        "x_title": "bags" if over_m else "(q, k)",
        "y_title": "accuracy in %",
        "ticks": ticks if over_m else None,
        "curves": [
            {
                "learner": curve.learner,
                "d": curve.d,
                "dash": _DASHES[dims.index(curve.d) % len(_DASHES)],
                "points": [
                    _point(figure, figure.cell.m if over_m else bag_kind(figure.cell), figure.accuracy)
                    for figure in curve.figures
                ],
            }
            for curve in facet.curves
        ],
    }


def _ceiling_plot(name: str, pairs: dict[str, list[Pair]]) -> dict[str, Any]:
    ends = [pair.ceiling.error for group in pairs.values() for pair in group]
    return {
        "id": name,
        "kind": "ceiling",
        "title": "Exact error against that of training on the true labels",
        "label": "Exact error of each learner against the error of training on the true labels, on logarithmic axes. "
        "The table above has the numbers.",
        "x_title": "error in % with true labels",
        "y_title": "error in % from bags",
        "diagonal": [min(ends), max(ends)],
        "curves": [
            {
                "learner": learner,
                "points": [_point(pair.figure, pair.ceiling.error, pair.figure.error) for pair in group],
            }
            for learner, group in pairs.items()
        ],
    }


def _point(figure: Figure, x: Any, y: float) -> dict[str, Any]:
    cell = figure.cell
    text = f"<b>{LEARNERS[figure.learner].label}</b>  d = {cell.d}, ({cell.q}, {cell.k}), m = {cell.m}<br>"
    text += f"accuracy {percent(figure.accuracy, figure.accuracy_se)} %<br>"
    text += f"exact error {percent(figure.error, figure.error_se, digits=3)} %<br>"
    if figure.published is not None and figure.difference is not None:
        text += f"published {figure.published:.2f} ({figure.difference:+.2f})<br>"
    text += f"{figure.n} data sets, {figure.seconds:.3f} s a fit"
    se = figure.accuracy_se if figure.n > 1 else 0.0
    where = {"law": cell.law, "d": cell.d, "q": cell.q, "k": cell.k}
    return {"x": x, "y": y, "se": se, "text": text, "published": figure.published} | where


# ---------------------------------------------------------------------- provenance


def _notes(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """What learners warned of, the most frequent first; numbers in the text are left out of the comparison."""
    counts: Counter[tuple[str, str]] = Counter()
    example: dict[tuple[str, str], str] = {}
    for row in rows:
        if row.note:
            kind = (row.learner, "".join(c for c in row.note if not c.isdigit()))
            counts[kind] += 1
            example.setdefault(kind, row.note)
    return [{"count": count, "learner": kind[0], "text": example[kind]} for kind, count in counts.most_common(_MOST)]


def _environments(rows: Iterable[Row]) -> list[dict[str, Any]]:
    counts: Counter[tuple[tuple[str, str], ...]] = Counter()
    for row in rows:
        entries = {"commit": row.commit or "not from a clone", **row.versions, **row.machine}
        counts[tuple((str(name), str(value)) for name, value in entries.items())] += 1
    return [{"runs": count, "entries": entries} for entries, count in counts.most_common()]
