"""What the plots of a table show, as values: curves of accuracy, and errors against the ceiling.

Owns the choice of panels, curves and colours, once for the printed plots and the page. Refuses drawing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bagwise.lab.learners import LEARNERS
from bagwise.lab.summary import Figure, SummedPanel
from bagwise.lab.tables import Cell

__all__ = ["COLOURS", "MARKERS", "Curve", "Facet", "Pair", "against_ceiling", "facets"]

# Okabe and Ito's colours, which colour-blind readers tell apart and which hold on white and on black; and a shape each.
COLOURS = {
    "ML": "#D55E00",
    "true": "#7F7F7F",
    "A2": "#0072B2",
    "A4": "#0072B2",
    "A3": "#009E73",
    "A3one": "#56B4E9",
    "R": "#CC79A7",
    "S": "#B08D00",
    "S+": "#8B5CF6",
    "MeanMap": "#009E73",
}
MARKERS = {
    "ML": ("o", "circle"),
    "true": ("_", "line-ew-open"),
    "A2": ("s", "square"),
    "A4": ("s", "square"),
    "A3": ("^", "triangle-up"),
    "A3one": ("v", "triangle-down"),
    "R": ("x", "x-thin-open"),
    "S": ("D", "diamond"),
    "S+": ("P", "cross"),
    "MeanMap": ("^", "triangle-up"),
}  # of matplotlib and of plotly


@dataclass(frozen=True, slots=True)
class Curve:
    """Figures of one learner at one number of features, in the order of the axis."""

    learner: str
    d: int
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Facet:
    """One small plot; its title may have two lines."""

    title: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure, and that of training on the true labels in the same cell."""

    figure: Figure
    ceiling: Figure


def runs_over_m(panels: Sequence[SummedPanel]) -> bool:
    """Whether the axis is the number of bags; otherwise it is the kind of bag."""
    return any("m" in summed.panel.keys for summed in panels)


def bag_kind(cell: Cell) -> str:
    """(q, k) as text.

    >>> bag_kind(Cell("centred", False, 0.0, 10, 3, 1, 50))
    '(3, 1)'
    """
    return f"({cell.q}, {cell.k})"


def facets(panels: Sequence[SummedPanel]) -> list[list[Facet]]:
    """Rows of small plots of accuracy: per law and flip rate a row, per (q, k) a plot with curves over m; for tables of
    one m a plot per law, with the kinds of bag along the axis."""
    over_m = runs_over_m(panels)
    rows = []
    for summed in panels:
        flips = sorted({line.cell.flip for line in summed.lines})
        for flip in flips:
            lines = [line for line in summed.lines if line.cell.flip == flip]
            kinds = list(dict.fromkeys(bag_kind(line.cell) for line in lines))
            title = summed.panel.title + (f", flips {flip:g}" if flip else "")
            groups = [[kind] for kind in kinds] if over_m else [kinds]
            row = []
            for group in groups:
                here = [line for line in lines if bag_kind(line.cell) in group]
                curves = []
                for i, column in enumerate(summed.columns):
                    for d in sorted({line.cell.d for line in here}):
                        points = [f for line in here if line.cell.d == d and (f := line.figures[i]) is not None]
                        if points:
                            curves.append(Curve(column.learner, d, tuple(points)))
                row.append(Facet(f"{group[0]}\n{title}" if over_m else title, tuple(curves)))
            rows.append(row)
    return rows


def against_ceiling(panels: Sequence[SummedPanel]) -> dict[str, list[Pair]]:
    """Per learner its figures where the ceiling of the same cell is known, both errors above zero."""
    known = {f.cell: f for summed in panels for line in summed.lines for f in line.figures if f and f.learner == "true"}
    pairs: dict[str, list[Pair]] = {}
    for summed in panels:
        for line in summed.lines:
            for figure in line.figures:
                if figure is None or figure.learner == "true" or figure.error <= 0:
                    continue
                ceiling = known.get(figure.cell)
                if ceiling is not None and ceiling.error > 0:
                    pairs.setdefault(figure.learner, []).append(Pair(figure, ceiling))
    return {learner: pairs[learner] for learner in LEARNERS if learner in pairs}
