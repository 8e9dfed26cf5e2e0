"""The published experiments as data: which cells there are, which learners meet in them, what was printed.

Owns the tables and the 56 numbers that are published. Refuses to draw, to fit and to format: a table here is a frozen
value, and everything else is a function of it.

Vocabulary: a *law* is what rows are drawn from: "standard" is N(0, I), "centred" N(0, cov), "general" N(mean, cov). A
*recipe* says how mean, cov and offset are drawn, which the paper leaves open. A *cell* is one place of an experiment:
law, offset, flips, d features, bags of q rows with k positives, m bags. A *panel* is a block of a table: lines, which
are cells, times columns, which are learners; a column may have its own m, as the semidefinite learners have.
"""

import csv
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

__all__ = ["TABLES", "Cell", "Column", "Law", "Panel", "Recipe", "Table", "published"]

Law = Literal["standard", "centred", "general"]

_FEATURES = (10, 50)
_BAGS = ((2, 1), (3, 1), (10, 5), (10, 8), (50, 25), (50, 35))
_UNBALANCED = ((3, 1), (10, 8), (50, 35))
_TINY = ((2, 1), (3, 1))
_MANY = (100, 500, 2000)
_FEW = (50, 100, 200)
_FLIPS = (0.1, 0.25, 0.5)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a problem is drawn where the paper does not say.

    cov = A A^T / d + cov_ridge I, mean = mean_scale g, offset = offset_scale h, for A, g and h standard normal. Of the
    recipes tried, the defaults come nearest to the published column R; the columns of the learners hardly depend
    on them.
    """

    mean_scale: float = 1.0
    cov_ridge: float = 1.0
    offset_scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of an experiment; data sets are drawn from its name."""

    law: Law
    offset: bool
    flip: float
    d: int
    q: int
    k: int | Literal["any"]  # "any": each bag draws its k uniformly from 0..q
    m: int
    recipe: Recipe = Recipe()

    @property
    def name(self) -> str:
        """All that distinguishes it, as text; a recipe is named where it is not the usual one.

        >>> Cell("general", True, 0.0, 10, 3, 1, 500, Recipe(mean_scale=2.0)).name
        'general/offset/d=10/q=3/k=1/m=500/mean_scale=2'
        """
        parts = [self.law, *["offset"] * self.offset, *[f"flip={self.flip:g}"] * (self.flip > 0)]
        parts += [f"{letter}={getattr(self, letter)}" for letter in "dqkm"]
        usual = asdict(Recipe())
        parts += [f"{what}={value:g}" for what, value in asdict(self.recipe).items() if value != usual[what]]
        return "/".join(parts)

    @property
    def balanced(self) -> bool:
        """Whether k = q / 2, so that no learner can know which side is positive."""
        return self.k != "any" and 2 * self.k == self.q

    @property
    def n_rows(self) -> int:
        """Rows of a data set."""
        return self.m * self.q

    @property
    def spec(self) -> dict[str, Any]:
        """The fields as plain values, for a row of results."""
        return asdict(self)

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> "Cell":
        """The cell of a row of results; what newer versions have added is ignored, what is no cell is a ValueError."""
        known = {field.name for field in fields(cls)} - {"recipe"}
        recipe = {field.name: float(spec.get("recipe", {}).get(field.name, field.default)) for field in fields(Recipe)}
        cell = cls(**{name: spec[name] for name in known}, recipe=Recipe(**recipe))
        whole = [cell.d, cell.q, cell.m] + [cell.k] * (cell.k != "any")
        if cell.law not in get_args(Law) or not all(type(number) is int for number in whole):
            raise ValueError(f"not a cell: {spec}")
        return replace(cell, offset=bool(cell.offset), flip=float(cell.flip))


@dataclass(frozen=True, slots=True)
class Column:
    """A learner, by its short name; ``m`` where it has another number of bags than its line says."""

    learner: str
    m: int | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """A block of a table."""

    title: str
    keys: tuple[str, ...]  # fields of the cell that head a line
    cells: tuple[Cell, ...]
    columns: tuple[Column, ...]

    def entry(self, cell: Cell, column: Column) -> tuple[Cell, str] | None:
        """Cell and learner whose mean stands there; None where the learner does not take such bags."""
        if not _takes(column.learner, cell):
            return None
        return (cell if column.m is None else replace(cell, m=column.m)), column.learner

    @property
    def entries(self) -> Iterator[tuple[Cell, str]]:
        """All places that hold a number."""
        for cell in self.cells:
            for column in self.columns:
                if entry := self.entry(cell, column):
                    yield entry


@dataclass(frozen=True, slots=True)
class Table:
    """A published table: its short name, its place in the paper, and its panels."""

    name: str
    title: str
    place: str
    panels: tuple[Panel, ...]

    @property
    def entries(self) -> tuple[tuple[Cell, str], ...]:
        """All places that hold a number, each once."""
        return tuple(dict.fromkeys(entry for panel in self.panels for entry in panel.entries))

    def under(self, recipe: Recipe) -> "Table":
        """The same table with all cells drawn by another recipe."""
        moved = (replace(p, cells=tuple(replace(cell, recipe=recipe) for cell in p.cells)) for p in self.panels)
        return replace(self, panels=tuple(moved))


def _takes(learner: str, cell: Cell) -> bool:
    """Whether the learner takes the bags of the cell: S at most three rows, A3 unbalanced, MeanMap several k."""
    if learner in ("S", "S+"):
        return cell.q <= 3 and cell.flip == 0
    if learner in ("A3", "A3one"):
        return not cell.balanced
    return learner != "MeanMap" or cell.k == "any"


def published(cell: Cell, learner: str) -> float | None:
    """The printed mean accuracy in percent of 25 data sets, where there is one.

    >>> published(Cell("centred", False, 0.0, 10, 10, 8, 2000), "A2")
    97.87
    """
    if cell.offset or cell.flip:
        return None
    return _published().get((cell.law, str(cell.d), str(cell.q), str(cell.k), str(cell.m), learner))


@cache
def _published() -> dict[tuple[str, ...], float]:
    text = files("bagwise.lab").joinpath("published.csv").read_text("utf-8")
    lines = csv.reader(line for line in text.splitlines() if not line.startswith("#"))
    next(lines)
    return {tuple(key): float(value) for *key, value in lines}


# ---------------------------------------------------------------------- the tables


def _cells(
    law: Law,
    bags: tuple[tuple[int, int], ...],
    numbers: tuple[int, ...],
    *,
    offset: bool = False,
    flips: tuple[float, ...] = (0.0,),
) -> tuple[Cell, ...]:
    return tuple(
        Cell(law, offset, flip, d, q, k, m) for d in _FEATURES for q, k in bags for flip in flips for m in numbers
    )


def _columns(*learners: str, S: int | None = None) -> tuple[Column, ...]:
    return tuple(Column(name, S if name == "S" else None) for name in learners)


# Beside the paper's columns: the likelihood learner, and logistic regression that was told every true label.
_OURS = ("ML", "true")
_SUBTITLES: dict[Law, str] = {
    "standard": "standard Gaussian, N(0, I)",
    "centred": "centred Gaussian, N(0, Σ)",
    "general": "general Gaussian, N(μ, Σ)",
}
_WIDE, _BY_M, _BY_FLIP = ("d", "q", "k"), ("d", "q", "k", "m"), ("d", "q", "k", "flip", "m")


def _panel(law: Law, keys: tuple[str, ...], cells: tuple[Cell, ...], columns: tuple[Column, ...]) -> Panel:
    return Panel(_SUBTITLES[law], keys, cells, columns)


_BOTH: tuple[Law, Law] = ("centred", "general")

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table(
            "table1",
            "Thresholds without offset, 2000 bags (S: 200)",
            "Table 1",
            tuple(
                _panel(law, _WIDE, _cells(law, _BAGS, (2000,)), _columns("A2", "R", "S", *_OURS, S=200))
                for law in _BOTH
            ),
        ),
        Table(
            "standard",
            "Standard Gaussian, by number of bags",
            "Appendix, standard Gaussian",
            (
                _panel(
                    "standard",
                    _BY_M,
                    _cells("standard", _UNBALANCED, _MANY),
                    _columns("A3one", "A3", "A2", "R", *_OURS),
                ),
            ),
        ),
        Table(
            "standard-sdp",
            "Semidefinite learner on the standard Gaussian",
            "Appendix, standard Gaussian, S",
            (_panel("standard", _BY_M, _cells("standard", ((3, 1),), _FEW), _columns("S", "S+", "A3", "A2", *_OURS)),),
        ),
        Table(
            "standard-concise",
            "Standard Gaussian, 2000 bags (S: 200)",
            "Appendix, standard Gaussian, concise",
            (
                _panel(
                    "standard",
                    _WIDE,
                    _cells("standard", _UNBALANCED, (2000,)),
                    _columns("A3one", "A3", "A2", "R", "S", *_OURS, S=200),
                ),
            ),
        ),
        Table(
            "homogeneous",
            "Thresholds without offset, by number of bags",
            "Appendix, A2 against R",
            tuple(_panel(law, _BY_M, _cells(law, _BAGS, _MANY), _columns("A2", "R", *_OURS)) for law in _BOTH),
        ),
        Table(
            "homogeneous-sdp",
            "Semidefinite learner without offset",
            "Appendix, S without offset",
            tuple(_panel(law, _BY_M, _cells(law, _TINY, _FEW), _columns("S", "S+", "A2", *_OURS)) for law in _BOTH),
        ),
        Table(
            "offset",
            "Thresholds with offset, by number of bags",
            "Appendix, A4 against R",
            tuple(
                _panel(law, _BY_M, _cells(law, _BAGS, _MANY, offset=True), _columns("A4", "R", *_OURS)) for law in _BOTH
            ),
        ),
        Table(
            "offset-sdp",
            "Semidefinite learner with offset",
            "Appendix, S with offset",
            tuple(
                _panel(law, _BY_M, _cells(law, _TINY, _FEW, offset=True), _columns("S", "S+", "A4", *_OURS))
                for law in _BOTH
            ),
        ),
        Table(
            "offset-concise",
            "Thresholds with offset, 2000 bags (S: 200)",
            "Appendix, with offset, concise",
            tuple(
                _panel(law, _WIDE, _cells(law, _BAGS, (2000,), offset=True), _columns("A4", "R", "S", *_OURS, S=200))
                for law in _BOTH
            ),
        ),
        *(
            Table(
                f"flips-{law}",
                f"Flipped labels, {_SUBTITLES[law]}",
                f"Appendix, label noise, {law}",
                (_panel(law, _BY_FLIP, _cells(law, _BAGS, _MANY, flips=_FLIPS), _columns("A2", "R", *_OURS)),),
            )
            for law in _BOTH
        ),
        Table(
            "any-count",
            "Ours: bags of 10 rows with any number of positives, with offset",
            "not in the paper",
            tuple(
                Panel(
                    _SUBTITLES[law],
                    ("d", "q", "m"),
                    tuple(Cell(law, True, 0.0, d, 10, "any", m) for d in _FEATURES for m in _MANY),
                    _columns("A4", "R", "MeanMap", *_OURS),
                )
                for law in _BOTH
            ),
        ),
    )
}
