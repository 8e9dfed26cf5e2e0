"""Claim: bags of mixed sizes and counts are learnt from together, where the pooled algorithm is blind or reversed.

The paper's estimator pooled over all bags sees (Sigma_D - 2 Sigma_B) ~ pbar(1 - pbar) - q Var p: nothing in bags formed
at random, the wrong end of the spectrum where counts vary more than that. Centring within each (size, count) needs many
bags per key. ``SpectralLTF`` weighs pairs and means by their noise and needs neither.

    python benchmarks/mixed_bags_need_no_special_case.py [--datasets 25]

Prints the mean instance error in per cent (exact under the Gaussian; sign and offset by the same sweep for all).
"""

import argparse
import warnings

import numpy as np
from scipy.stats import betabinom, binom

import bagwise as bw
from bagwise.errors import NotIdentifiableError
from bagwise.learn.directions import combined_direction, slope_direction
from bagwise.learn.offsets import best_threshold
from bagwise.stats.linalg import eigenpairs
from bagwise.stats.moments import key_moments


def pooled(bags):
    """The paper's pencil (Sigma_D, Sigma_B) over all bags, whatever their keys."""
    moments = bw.BagMoments.from_bags(bags).finalize()
    return eigenpairs(moments.cov_diff, moments.cov_bag)[1][:, -1]


def by_key(bags):
    """The same with bags centred within their (size, count)."""
    keys = list(key_moments(bags).values())
    within = sum(key.within for key in keys)
    between = sum(key.between[1:, 1:] for key in keys)
    return eigenpairs(within, within + between)[1][:, -1]


def ours(bags):
    return combined_direction(bw.BagMoments.from_bags(bags).finalize()).normal


def means(bags):
    return slope_direction(bw.BagMoments.from_bags(bags).finalize()).normal


def constant(q, k):
    return lambda problem, rng: bw.BagOracle(*problem, size=q, count=k).sample(500, rng)


def at_random(q):
    law = binom.pmf(np.arange(q + 1), q, 0.5)
    return lambda problem, rng: bw.BagOracle(*problem, size=q, count=law).sample(500, rng)


def over_dispersed(q):
    law = betabinom.pmf(np.arange(q + 1), q, 1, 1)
    return lambda problem, rng: bw.BagOracle(*problem, size=q, count=law).sample(500, rng)


def ragged(problem, rng):
    """600 random bags of 2 to 200 rows."""
    ltf, mean, cov = problem
    sizes = rng.integers(2, 201, size=600)
    X = rng.multivariate_normal(mean, cov, size=sizes.sum(), method="cholesky")
    counts = np.add.reduceat(ltf.predict(X), np.cumsum(sizes) - sizes)
    return bw.Bags.from_sizes(X, sizes, counts)


DESIGNS = {
    "(10, 8) in all bags": constant(10, 8),
    "q = 10, k by chance": at_random(10),
    "q = 20, k over-dispersed": over_dispersed(20),
    "q from 2 to 200, 600 bags": ragged,
}
METHODS = {"pooled pairs": pooled, "pairs by key": by_key, "means": means, "SpectralLTF": ours}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=25)
    datasets = parser.parse_args().datasets
    print(f"{'d':>3} {'bags':28}" + "".join(f"{name:>18}" for name in METHODS) + "   error in %, standard error")
    for d in (10, 50):
        for name, draw in DESIGNS.items():
            errors = {method: [] for method in METHODS}
            for dataset in range(datasets):
                rng = np.random.default_rng([d, dataset])
                A = rng.standard_normal((d, d))
                normal = rng.standard_normal(d)
                problem = bw.LTF(normal / np.linalg.norm(normal), 0.0), np.zeros(d), A @ A.T / d + np.eye(d)
                bags = draw(problem, rng)
                for method, direction in METHODS.items():
                    try:
                        r = direction(bags)
                    except NotIdentifiableError:
                        continue
                    found = best_threshold(bags.X @ r, bags)
                    learnt = bw.LTF(found.sign * r, -found.threshold)
                    errors[method].append(100 * bw.instance_error(learnt, *problem))
            cells = [
                f"{np.mean(e):10.2f} ±{np.std(e, ddof=1) / np.sqrt(len(e)):5.2f}" if len(e) > 1 else f"{'refused':>17}"
                for e in errors.values()
            ]
            print(f"{d:3} {name:28}" + " ".join(cells), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
