"""The certificate is violated no more often than it says, also with four keys mixed.

Draws the number of unsatisfied bags of a model with known (1 - TPR, FPR) and compares each bound with the truth.
The bags' outcomes are drawn bag by bag as Bin(k, a) != Bin(q - k, b); the bounds are those of `certify`.

    python benchmarks/certificate_holds.py [replications]
"""

import sys

import numpy as np

from bagwise.claims.certificate import _Keys, _Region, upper_bag_error

DESIGNS = {
    "(10, 8)": [(10, 8)],
    "(10, 5)": [(10, 5)],
    "(50, 35)": [(50, 35)],
    "4 keys": [(10, 8), (10, 5), (4, 1), (20, 6)],
}
RATES = [(0.0, 0.02), (0.02, 0.0), (0.01, 0.01)]


def bounds(keys: _Keys, unsatisfied: int, n_bags: int, share: float) -> tuple[float, float, float]:
    """Bounds at any share of positives, at one half and at that of the bags."""
    region = _Region.below(keys, upper_bag_error(unsatisfied, n_bags, 0.95))
    return (
        max(region.largest(lambda a, b: a), region.largest(lambda a, b: b)),
        region.largest(lambda a, b: (a + b) / 2),
        region.largest(lambda a, b: share * a + (1 - share) * b),
    )


def violations(design: list[tuple[int, int]], a: float, b: float, n_bags: int, replications: int) -> np.ndarray:
    """Share of replications in which each of the three bounds is below the true error."""
    rng = np.random.default_rng([len(design), design[0][0], int(1e4 * a), int(1e4 * b)])
    q, k = np.array(design * (n_bags // len(design))).T
    weights = np.full(len(design), 1 / len(design))
    k_of, q_of = np.array([k for _, k in design]), np.array([q for q, _ in design])
    keys = _Keys(k_of, q_of - k_of, weights)
    share = float(k.sum() / q.sum())
    missed, taken = rng.binomial(k, a, (replications, len(k))), rng.binomial(q - k, b, (replications, len(k)))
    unsatisfied = (missed != taken).sum(axis=1)
    truth = np.array([max(a, b), (a + b) / 2, share * a + (1 - share) * b])
    seen = {int(s): np.array(bounds(keys, int(s), len(k), share)) for s in np.unique(unsatisfied)}
    return np.mean([seen[int(s)] < truth for s in unsatisfied], axis=0)


def main() -> None:
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"share of {replications:,} replications in which a 95 % bound is below the truth; 500 bags")
    print(f"{'bags':10} {'1 - TPR':>8} {'FPR':>6}   {'any':>7} {'one half':>9} {'bags':>7}")
    for name, design in DESIGNS.items():
        for a, b in RATES:
            of_any, half, of_bags = violations(design, a, b, 500, replications)
            print(f"{name:10} {a:8.3f} {b:6.3f}   {of_any:7.2%} {half:9.2%} {of_bags:7.2%}", flush=True)


if __name__ == "__main__":
    main()
