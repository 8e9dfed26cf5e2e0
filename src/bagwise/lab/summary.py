"""Rows into numbers: the mean of each place of a table, its standard error, and how far it is from what was printed.

Owns what counts as the accuracy of a run where the sign cannot be known, and when a difference is marked. Refuses
layout, which is the writers'. Accuracies and errors are in percent from here on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np

from bagwise.lab.learners import LEARNERS
from bagwise.lab.results import Row
from bagwise.lab.tables import Cell, Column, Panel, Table, published

__all__ = ["Figure", "Headline", "Line", "SummedPanel", "figures", "headline", "sees_better_of_two", "summed"]

_PUBLISHED_DATASETS = 25
_MARK = 3.0  # standard errors of a difference
_FEW = 10  # data sets; with less, the standard error is too rough to judge by


def sees_better_of_two(cell: Cell, learner: str) -> bool:
    """Whether the better of a threshold and its complement is reported.

    In balanced bags nobody can know which is which, so every learner from bags is treated so. With flipped labels the
    paper reports its own columns so throughout; ours are then held to the sign they chose.
    """
    if learner == "true":
        return False
    return cell.balanced or (cell.flip > 0 and LEARNERS[learner].published)


@dataclass(frozen=True, slots=True)
class Figure:
    """What the runs of a learner in a cell come to; percent and seconds."""

    cell: Cell
    learner: str
    n: int
    accuracy: float
    accuracy_se: float
    error: float
    error_se: float
    seconds: float

    @property
    def published(self) -> float | None:
        """The printed accuracy."""
        return published(self.cell, self.learner)

    @property
    def difference(self) -> float | None:
        """Measured minus printed accuracy."""
        printed = self.published
        return None if printed is None else self.accuracy - printed

    @property
    def deviates(self) -> bool:
        """Whether the difference exceeds three standard errors of itself.

        Both sides have noise, and theirs is not printed: taken as ours, scaled to their 25 data sets. With 25 of our
        own this is 3 sqrt(2) standard errors.
        """
        difference = self.difference
        if difference is None or self.n < _FEW:
            return False
        return abs(difference) > _MARK * self.accuracy_se * sqrt(1 + self.n / _PUBLISHED_DATASETS)


def figures(rows: Iterable[Row]) -> dict[tuple[Cell, str], Figure]:
    """The figure of each cell and learner that has rows."""
    grouped: dict[tuple[Cell, str], list[Row]] = {}
    for row in rows:
        if row.accuracy is not None and row.error is not None and row.learner in LEARNERS:
            grouped.setdefault((row.cell, row.learner), []).append(row)
    return {place: _figure(*place, group) for place, group in grouped.items()}


def _figure(cell: Cell, learner: str, rows: list[Row]) -> Figure:
    accuracies = 100 * np.array([row.accuracy for row in rows])
    errors = 100 * np.array([row.error for row in rows])
    if sees_better_of_two(cell, learner):
        accuracies, errors = np.maximum(accuracies, 100 - accuracies), np.minimum(errors, 100 - errors)
    n = len(rows)
    se = [float(values.std(ddof=1) / sqrt(n)) if n > 1 else nan for values in (accuracies, errors)]
    seconds = float(np.mean([row.seconds for row in rows]))
    return Figure(cell, learner, n, float(accuracies.mean()), se[0], float(errors.mean()), se[1], seconds)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a panel: its cell, and a figure per column."""

    cell: Cell
    figures: tuple[Figure | None, ...]


@dataclass(frozen=True, slots=True)
class SummedPanel:
    """A panel with its numbers; columns that no line has a number for are left out."""

    panel: Panel
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]

    def has_published(self, column: Column) -> bool:
        """Whether any number of the column was printed."""
        at = self.columns.index(column)
        return any(f is not None and f.published is not None for f in (line.figures[at] for line in self.lines))


def summed(table: Table, known: Mapping[tuple[Cell, str], Figure]) -> list[SummedPanel]:
    """The panels of a table with the figures there are; lines and columns without any are left out."""
    panels = []
    for panel in table.panels:
        lines = [(cell, [_at(panel, cell, column, known) for column in panel.columns]) for cell in panel.cells]
        filled = [i for i in range(len(panel.columns)) if any(found[i] for _, found in lines)]
        if filled:
            kept = tuple(Line(cell, tuple(found[i] for i in filled)) for cell, found in lines if any(found))
            panels.append(SummedPanel(panel, tuple(panel.columns[i] for i in filled), kept))
    return panels


@dataclass(frozen=True, slots=True)
class Headline:
    """What many figures come to: published means that were judged and those met, and medians over cells of the ratio of
    the likelihood's exact error to others; None where no cell has both."""

    judged: int
    met: int
    error_over_spectral: float | None
    error_over_ceiling: float | None


def headline(panels: Iterable[SummedPanel]) -> Headline:
    """The headline of the figures in all panels, each counted once."""
    every = {(f.cell, f.learner): f for panel in panels for line in panel.lines for f in line.figures if f is not None}
    judged = [f for f in every.values() if f.published is not None and f.n >= _FEW]
    return Headline(
        judged=len(judged),
        met=sum(not f.deviates for f in judged),
        error_over_spectral=_median_ratio(every, "A2", "A4"),
        error_over_ceiling=_median_ratio(every, "true"),
    )


def _median_ratio(every: Mapping[tuple[Cell, str], Figure], *others: str) -> float | None:
    """Error of the likelihood over that of another learner in the same cell, where labels are not flipped."""
    ratios = [
        every[cell, "ML"].error / other.error
        for (cell, learner), other in every.items()
        if learner in others and (cell, "ML") in every and other.error > 0 and not cell.flip
    ]
    return float(np.median(ratios)) if ratios else None


def _at(panel: Panel, cell: Cell, column: Column, known: Mapping[tuple[Cell, str], Figure]) -> Figure | None:
    entry = panel.entry(cell, column)
    return None if entry is None else known.get(entry)
