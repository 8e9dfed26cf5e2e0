"""Which recipe of mean and covariance comes nearest to the published column R?

Run: python benchmarks/recipe_nearest_to_published_r.py [data sets per cell, default 25]. The paper does not say how its
Gaussians are drawn; its learners hardly depend on that, its baseline R does. Prints for each recipe the mean R over the
cells, beside the published one, and the root mean square of the differences in their standard errors, which would be
about 1 for the recipe of the authors. Bags of 50 rows are left out: they cost most and say the same. Takes some seconds
a recipe.
"""

import sys
from math import sqrt

import numpy as np

from bagwise.lab.runner import run
from bagwise.lab.summary import Figure, figures
from bagwise.lab.tables import TABLES, Law, Recipe

# A homogeneous threshold does not see the scale of a centred covariance, so a ridge of 1000 stands for the identity.
RECIPES: dict[Law, list[Recipe]] = {
    "centred": [Recipe(cov_ridge=ridge) for ridge in (0.0, 0.1, 0.3, 1.0, 3.0, 1000.0)],
    "general": [
        *(Recipe(mean_scale=scale) for scale in (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)),
        *(Recipe(cov_ridge=ridge) for ridge in (0.0, 0.1, 0.3)),
    ],
}


def column_r(law: Law, recipe: Recipe, datasets: int) -> list[Figure]:
    """The figures of R in a half of Table 1."""
    entries = TABLES["table1"].under(recipe).entries
    cells = [cell for cell, learner in entries if learner == "R" and cell.law == law and cell.q < 50]
    return list(figures(run(cell, "R", i) for cell in cells for i in range(datasets)).values())


def main(datasets: int) -> None:
    print("law      mean_scale  cov_ridge   R, d = 10 (paper)   R, d = 50 (paper)   rms z")
    for law, recipes in RECIPES.items():
        for recipe in recipes:
            found = column_r(law, recipe, datasets)
            print(f"{law:8} {recipe.mean_scale:10g} {recipe.cov_ridge:10g}", end="")
            for d in (10, 50):
                here = [f for f in found if f.cell.d == d]
                print(f"{np.mean([f.accuracy for f in here]):12.2f}", end="")
                print(f" ({np.mean([f.published or np.nan for f in here]):.2f})", end="")
            z = [(f.difference or 0.0) / (f.accuracy_se * sqrt(1 + f.n / 25)) for f in found]
            print(f"{np.sqrt(np.mean(np.square(z))):8.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 25)
