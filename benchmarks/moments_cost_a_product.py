"""Claim: the moments of all pairs of every bag cost at most 1.5 times one X.T @ X from 16 rows a bag on, 2.0 below.

    python benchmarks/moments_cost_a_product.py [--threads N]

Rows are not reordered and no pair loop is run. Prints the time of both per row (best of several runs, alternating, in
this process) and their ratio, for bags of one size and for ragged ones.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

import bagwise as bw

N_NUMBERS = 10_000_000
REPEATS = 7


def best_seconds(*runs: Callable[[], object]) -> list[float]:
    """Least wall-clock time of each, taken in turns so that a slow moment hits all alike."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(REPEATS):
        for run, taken in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def designs(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Sizes of bags that add up to about n rows."""
    equal = {str(q): np.full(n // q, q) for q in (2, 4, 8, 10, 15, 16, 32, 100, 1000)}
    ragged = rng.integers(2, 201, size=n // 101)
    skewed = np.minimum(2 + rng.geometric(0.1, size=n // 12), 1000)
    return equal | {"2..200": ragged, "2.., mean 12": skewed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, help="of the linear algebra; by default what it takes itself")
    with threadpool_limits(parser.parse_args().threads):
        rng = np.random.default_rng(0)
        print(f"{'d':>4} {'bag size':>13} {'X.T @ X':>9} {'moments':>9} {'ratio':>6} {'target':>6}   (ns per row)")
        for d in (10, 50, 200):
            for name, sizes in designs(N_NUMBERS // d, rng).items():
                n = int(sizes.sum())
                X = rng.standard_normal((n, d))
                bags = bw.Bags.from_sizes(X, sizes, rng.integers(0, sizes + 1))
                product, moments = best_seconds(lambda X=X: X.T @ X, lambda bags=bags: bw.BagMoments.from_bags(bags))
                target = 1.5 if sizes.mean() >= 16 else 2.0
                ns = [t / n * 1e9 for t in (product, moments)]
                print(
                    f"{d:>4} {name:>13} {ns[0]:>9.1f} {ns[1]:>9.1f} {moments / product:>6.2f} {target:>6}", flush=True
                )


if __name__ == "__main__":
    main()
