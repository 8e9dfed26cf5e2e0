"""Claim: a spectral fit costs at most 2 times one X.T @ X of the same array plus one sort of the projections.

    python benchmarks/spectral_fit_costs_two_products.py [--threads N]

The whole of ``SpectralLTF().fit(bags)``, from bags in memory to sign and offset. Prints times per row (best of several
runs, alternating, in this process) and the ratio of the fit to 2 products and a sort, whose target is at most 1.

The claim holds from d = 50 and q = 10 on. It does not at d = 10 for bags of up to about a hundred rows, nor, by a few
per cent, for pairs (q = 2) at d = 50 and 200: there the Gram matrix of the bag means is half another product, and the
ends of the bags' intervals are as many as the rows. docs/decisions/005-cost-of-a-spectral-fit.md has the parts.
"""

import argparse

import numpy as np
from moments_cost_a_product import best_seconds
from threadpoolctl import threadpool_limits

import bagwise as bw

N_NUMBERS = 10_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, help="of the linear algebra; by default what it takes itself")
    with threadpool_limits(parser.parse_args().threads):
        rng = np.random.default_rng(0)
        print(f"{'d':>4} {'q':>5} {'X.T @ X':>9} {'sort':>9} {'fit':>9} {'ratio':>6}   (ns per row)")
        for d in (10, 50, 200):
            for q in (2, 10, 100, 1000):
                m = N_NUMBERS // d // q
                oracle = bw.BagOracle(bw.LTF(rng.standard_normal(d), 0.5), np.zeros(d), np.eye(d), q, (7 * q + 5) // 10)
                bags = oracle.sample(m, rng)
                scores = bags.X @ rng.standard_normal(d)
                product, sort, fit = best_seconds(
                    lambda X=bags.X: X.T @ X,
                    lambda scores=scores: np.sort(scores),
                    lambda bags=bags: bw.SpectralLTF().fit(bags),
                )
                ns = [t / bags.n_rows * 1e9 for t in (product, sort, fit)]
                print(f"{d:>4} {q:>5} {ns[0]:>9.1f} {ns[1]:>9.1f} {ns[2]:>9.1f} {fit / (2 * product + sort):>6.2f}")


if __name__ == "__main__":
    main()
