"""Which recipe of mean and covariance comes nearest to the published column R, and which sign does it report?

Run: python benchmarks/recipe_nearest_to_published_r.py [data sets per cell, default 25]. The paper does not say how its
Gaussians are drawn; its learners hardly depend on that, its baseline R does. Prints for each recipe the root mean
square over cells of measured minus published R in standard errors of the difference, which would be about 1 for the
recipe of the authors: once for R as it is, and once for the better of R and its complement, also where bags are not
balanced. Bags of 50 rows are left out: they cost most and say the same. Takes some seconds a recipe.
"""

import sys
from collections.abc import Iterable
from dataclasses import replace
from math import sqrt

import numpy as np

from bagwise.lab.results import Row
from bagwise.lab.runner import run
from bagwise.lab.summary import figures
from bagwise.lab.tables import TABLES, Law, Recipe

# A homogeneous threshold does not see the scale of a centred covariance, so a ridge of 1000 stands for the identity.
RECIPES: dict[Law, list[Recipe]] = {
    "centred": [Recipe(cov_ridge=ridge) for ridge in (0.0, 0.1, 0.3, 1.0, 3.0, 1000.0)],
    "general": [
        *(Recipe(mean_scale=scale) for scale in (0.25, 0.5, 1.0, 2.0)),
        *(Recipe(cov_ridge=ridge) for ridge in (0.1, 0.3)),
    ],
}


def column_r(law: Law, recipe: Recipe, datasets: int) -> list[Row]:
    """The rows of R in a half of Table 1."""
    entries = TABLES["table1"].under(recipe).entries
    cells = [cell for cell, learner in entries if learner == "R" and cell.law == law and cell.q < 50]
    return [run(cell, "R", i) for cell in cells for i in range(datasets)]


def distance(rows: Iterable[Row]) -> float:
    """Root mean square of the differences, in their standard errors."""
    found = figures(rows).values()
    z = [(f.difference or 0.0) / (f.accuracy_se * sqrt(1 + f.n / 25)) for f in found]
    return float(np.sqrt(np.mean(np.square(z))))


def better(row: Row) -> Row:
    """The row of the threshold or of its complement, whichever is right more often."""
    assert row.accuracy is not None
    return replace(row, accuracy=max(row.accuracy, 1 - row.accuracy))


def main(datasets: int) -> None:
    print("law      mean_scale  cov_ridge   rms z   rms z of the better of two")
    for law, recipes in RECIPES.items():
        for recipe in recipes:
            rows = column_r(law, recipe, datasets)
            print(f"{law:8} {recipe.mean_scale:10g} {recipe.cov_ridge:10g}", end="")
            print(f"{distance(rows):8.2f}{distance(map(better, rows)):8.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 25)
