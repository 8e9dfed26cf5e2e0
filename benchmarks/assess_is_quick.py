"""Seconds of `assess` on 100,000 bags of ten rows, all figures with intervals; beside it those of predicting them.

python benchmarks/assess_is_quick.py
"""

import time

import numpy as np

import bagwise as bw


def main() -> None:
    oracle = bw.BagOracle(bw.LTF([1.0, 1.0]), np.zeros(2), np.eye(2), size=10, count=8)
    model, bags = bw.LTF([1.0, 0.7]), oracle.sample(100_000, np.random.default_rng(0))
    bw.assess(model, bags[:200])  # loads the kernels
    for _ in range(3):
        began = time.perf_counter()
        found = bw.assess(model, bags)
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        model.predict(bags.X)
        print(f"assess {seconds:.2f} s, predict {time.perf_counter() - began:.3f} s; accuracy {found.accuracy!r}")


if __name__ == "__main__":
    main()
