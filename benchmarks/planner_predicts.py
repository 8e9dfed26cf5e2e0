"""The bags that `plan` predicts give the wanted error: the mean error of fresh data sets at those bags over it.

    python benchmarks/planner_predicts.py [--learner spectral|logistic] [--datasets N] [--save FILE.jsonl]

Grid: d in {10, 50}, six (q, k), three errors. Cells whose data would exceed 2e7 numbers per data set are named and left
out. Each ratio has a standard error, from the spread over data sets.
"""

import argparse
import json
import warnings

import numpy as np

import bagwise as bw
from bagwise.planner import _fitted_error, plan

KEYS = [(2, 1), (3, 1), (10, 5), (10, 8), (50, 25), (50, 35)]
ERRORS = {"spectral": (0.1, 0.05, 0.03), "logistic": (0.1, 0.03, 0.01)}
MOST = 2e7


def spectral_error(d: int, q: int, k: int, m: int, seed: list[int]) -> float:
    truth = bw.LTF(np.eye(d)[0])
    bags = bw.BagOracle(truth, np.zeros(d), np.eye(d), size=q, count=k).sample(m, np.random.default_rng(seed))
    error = bw.SpectralLTF().fit(bags).ltf_.disagreement(truth, np.zeros(d), np.eye(d))
    return min(error, 1 - error) if 2 * k == q else error


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--learner", default="spectral", choices=list(ERRORS))
    parser.add_argument("--datasets", type=int, default=25)
    parser.add_argument("--save")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    inside = total = 0
    for d in (10, 50):
        for q, k in KEYS:
            for error in ERRORS[options.learner]:
                m = plan(d, q, k, error, learners=[options.learner]).n_bags[options.learner]
                if m is None or m * q * d > MOST:
                    print(f"d={d} ({q},{k}) error {error}: {m} bags, left out", flush=True)
                    continue
                if options.learner == "spectral":
                    errors = [spectral_error(d, q, k, m, [7, d, q, k, i]) for i in range(options.datasets)]
                else:
                    errors = [_fitted_error(d, q, k, 0.0, m, [7, d, q, k, i]) for i in range(options.datasets)]
                ratio = float(np.mean(errors)) / error
                noise = float(np.std(errors, ddof=1)) / error / np.sqrt(len(errors))
                total, inside = total + 1, inside + (abs(ratio - 1) <= 0.2)
                print(f"d={d} ({q},{k}) error {error}: {m} bags, found / wanted {ratio:.2f} ± {noise:.2f}", flush=True)
                if options.save:
                    row = {"d": d, "q": q, "k": k, "error": error, "n_bags": m, "ratio": ratio, "noise": noise}
                    with open(options.save, "a") as file:
                        file.write(json.dumps(row | {"learner": options.learner}) + "\n")
    print(f"{options.learner}: {inside} of {total} cells within 20 %")


if __name__ == "__main__":
    main()
