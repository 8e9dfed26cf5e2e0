"""Claim: where a line is not enough, classifiers of scikit-learn learn from totals nearly what labels teach them.

Random bags of q rows; held-out rows judge. Of each table: the linear learner, `BagClassifier` from it, and the same
classifier on the true labels of the same rows. Usage: trees_learn_from_totals.py [--seeds N] [--adult WHEEL]
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import bagwise as bw
from bagwise.data.datasets import LabelledTable

FOREST = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
BOOSTED = HistGradientBoostingClassifier(max_iter=50, learning_rate=0.2, random_state=0)
KERNEL = make_pipeline(Nystroem(gamma=0.02, n_components=200, random_state=0), LogisticRegression(C=10.0, max_iter=500))


def tables(adult: str | None) -> dict[str, tuple[LabelledTable, dict[str, object]]]:
    X, y = make_moons(4000, noise=0.2, random_state=0)
    moons = LabelledTable(X, y.astype(np.int64), ("x", "y"), "made up", "none")
    found: dict[str, tuple[LabelledTable, dict[str, object]]] = {
        "moons": (moons, {"forest": FOREST}),
        "digits >= 5": (
            bw.datasets.load_digits().standardised(),
            {"forest": FOREST, "kernel": KERNEL},
        ),
    }
    if adult is not None:
        found["Adult"] = (bw.datasets.load_adult(adult).standardised(), {"boosted": BOOSTED})
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--adult", help="wheel, zip or folder with adult.data and adult.test")
    parser.add_argument("--sizes", type=int, nargs="*", default=[2, 4, 8, 16, 32])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = ("linear", "totals", "labels", "rounds", "seconds")
    print(f"{'table':12} {'classifier':10} {'q':>3} " + " ".join(f"{column:>7}" for column in columns))
    for name, (table, classifiers) in tables(options.adult).items():
        for size in options.sizes:
            for kind, classifier in classifiers.items():
                rows = [one(table, classifier, size, seed) for seed in range(options.seeds)]
                means = " ".join(f"{mean:7.3f}" for mean in np.mean(rows, axis=0))
                print(f"{name:12} {kind:10} {size:3} {means}", flush=True)


def one(table: LabelledTable, classifier: object, size: int, seed: int) -> tuple[float, ...]:
    """Accuracies on a third of the rows, kept apart; rounds, seconds of the fit."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(table.y))
    test, train = table.rows(order[: len(order) // 3]), table.rows(order[len(order) // 3 :])
    bags = train.random_bags(size, rng)
    accuracy = lambda model: float(np.mean(model.predict(test.X) == test.y))
    linear = bw.BagLogisticRegression(random_state=0).fit(bags)
    began = time.perf_counter()
    model = bw.BagClassifier(classifier, random_state=seed).fit(bags)
    seconds = time.perf_counter() - began
    told = clone(classifier).fit(train.X, train.y)
    return accuracy(linear), accuracy(model), accuracy(told), float(model.n_iter_), seconds


if __name__ == "__main__":
    main()
