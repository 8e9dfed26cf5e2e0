"""Claim: drawing bags costs at most two standard_normal of the same shape plus one matrix product.

    python benchmarks/oracle_is_two_normals.py

Prints, for each width and bag size, nanoseconds per row (best of several runs, all in this process) and the ratio
oracle / (2 standard_normal + product), whose target is at most 1.
"""

import time
from collections.abc import Callable

import numpy as np

import bagwise as bw

N_NUMBERS = 4_000_000
REPEATS = 5


def best_seconds(run: Callable[[], object]) -> float:
    """Least wall-clock time of a few runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"{'d':>4} {'q':>5} {'flip':>5} {'normals':>9} {'product':>9} {'oracle':>9} {'ratio':>6}   (ns per row)")
    for d in (10, 50):
        root = rng.standard_normal((d, d))
        ltf = bw.LTF(rng.standard_normal(d), 0.5)
        for q in (2, 10, 100, 1000):
            for flip in (0.0, 0.1):
                m = N_NUMBERS // d // q
                n = m * q
                oracle = bw.BagOracle(ltf, np.zeros(d), root @ root.T / d + np.eye(d), q, (7 * q + 5) // 10, flip=flip)
                rows = rng.standard_normal((n, d))
                normals = best_seconds(lambda n=n, d=d: rng.standard_normal((n, d)))
                product = best_seconds(lambda rows=rows, root=root: rows @ root)
                bags = best_seconds(lambda oracle=oracle, m=m: oracle.sample(m, rng))
                ns = [t / n * 1e9 for t in (normals, product, bags)]
                ratio = bags / (2 * normals + product)
                print(f"{d:>4} {q:>5} {flip:>5} {ns[0]:>9.0f} {ns[1]:>9.0f} {ns[2]:>9.0f} {ratio:>6.2f}")


if __name__ == "__main__":
    main()
