"""Width of `assess`'s 95 % interval of the accuracy over that of the Cramer-Rao limit of the count model.

Bags of a Gaussian formed at random, where the joint model of rows and counts is exact. The limit is 2 · 1.96 times the
root of the inverse of Fisher's information on the probabilities by bin, the mean square score of 20,000 bags at the
true ones, plus the variance of the rows themselves.

    python benchmarks/interval_widths.py [--replications N]
"""

import argparse
from math import sqrt

import numpy as np
from scipy.stats import binom, chi2

import bagwise as bw
from bagwise.claims.answers import answers
from bagwise.claims.assessment import _Profile, _score_view
from bagwise.claims.figures import FIGURES
from bagwise.stats.binned_counts import LEAST, BinnedCounts

LEVEL = float(chi2.ppf(0.95, 1))
BAGS = {2: 800, 4: 400, 16: 200, 64: 120}


def limit(oracle: bw.BagOracle, model: bw.LTF, n_bags: int) -> float:
    """Least variance of an estimate of the accuracy from so many bags."""
    bags, labels = oracle.sample_labelled(20_000, np.random.default_rng(5))
    view, _, codes = _score_view(answers(model, bags), bags, 10, None)
    B = len(view.positive)
    r = np.clip(np.bincount(codes, labels, B) / np.bincount(codes, minlength=B), LEAST, 1 - LEAST)
    uncertain = (r > 1e-5) & (r < 1 - 1e-5)
    scores = BinnedCounts(view.data.rows, bags.counts).at(r).scores[:, uncertain]
    figure = FIGURES["accuracy"]
    slope = view.of(figure)(r)[1][uncertain]
    of_labels = float(slope @ np.linalg.solve(scores.T @ scores, slope))
    return (of_labels + view.of_rows(r, figure)[1]) * bags.n_bags / n_bags


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--replications", type=int, default=40)
    replications = parser.parse_args().replications
    for q, m in BAGS.items():
        law = binom.pmf(np.arange(q + 1), q, 0.5)
        oracle = bw.BagOracle(bw.LTF([1.0, 0.0, 0.0]), np.zeros(3), np.eye(3), size=q, count=law)
        model, widths = bw.LTF([np.cos(0.3), np.sin(0.3), 0.0]), []
        for i in range(replications):
            bags = oracle.sample(m, np.random.default_rng([i, 11]))
            view, _, _ = _score_view(answers(model, bags), bags, 10, None)
            fits = view.fits("monotone")
            found = _Profile(view, fits[:1], LEVEL).on(FIGURES["accuracy"], fits[0])
            widths.append(found.high - found.low)
        width, least = float(np.mean(widths)), 2 * sqrt(LEVEL * limit(oracle, model, m))
        print(f"q={q}, {m} bags: width {width:.4f}, {width / least:.2f} times the limit {least:.4f}", flush=True)


if __name__ == "__main__":
    main()
